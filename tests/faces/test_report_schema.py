"""The published shape of a report's JSON is that of every report."""

import json

import pytest

from pages import studies
from prony.faces.report_schema import report_type

NAMES = tuple(studies.STUDIES)


@pytest.mark.parametrize("name", NAMES)
def test_a_reports_json_has_the_keys_and_types_that_are_published_and_no_others(name):
    """Read into the types and written again: a key that has none would be lost, a wrong one is refused."""
    data = studies.json_of(name)
    adapter = report_type()
    told = adapter.dump_json(adapter.validate_python(data))
    assert json.loads(told, object_hook=_without_paths) == data


def _without_paths(found):
    """Only cells of a mix have paths."""
    return {name: value for name, value in found.items() if (name, value) != ("paths", [])}


def test_a_key_without_a_type_and_a_value_of_another_type_are_seen():
    data, adapter = dict(studies.json_of("one_subject")), report_type()
    more = data | {"surprise": 1}
    assert json.loads(adapter.dump_json(adapter.validate_python(more))) != more
    with pytest.raises(ValueError, match="plan"):
        adapter.validate_python(data | {"plan": 3})
