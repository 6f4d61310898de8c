"""The published schema of a report's JSON is that of every report, and says what each key means."""

import inspect
import json

import pytest
from jsonschema import Draft202012Validator

import documents
from prony.figures.versus import Versus
from prony.reading.load import LoadReading
from prony.report.formats.as_json import report_schema, schema_of
from prony.report.tune import TryReading
from prony.tune.reading import TuneReading
from report.page import studies

NAMES = tuple(studies.STUDIES)


def strict(schema):
    """Return a schema that refuses what it does not name."""
    match schema:
        case {"properties": dict()} if "additionalProperties" not in schema:
            return {name: strict(value) for name, value in schema.items()} | {"additionalProperties": False}
        case dict():
            return {name: strict(value) for name, value in schema.items()}
        case list():
            return list(map(strict, schema))
    return schema


@pytest.fixture(scope="module")
def validator():
    return Draft202012Validator(strict(report_schema()))


@pytest.mark.parametrize("name", NAMES)
def test_a_reports_json_has_the_keys_and_types_that_are_published_and_no_others(name, validator):
    assert [one.message for one in validator.iter_errors(studies.json_of(name))] == []


def test_a_key_without_a_type_and_a_value_of_another_type_are_seen(validator):
    data = dict(studies.json_of("one_subject"))
    assert not validator.is_valid(data | {"surprise": 1})
    assert not validator.is_valid(data | {"plan": 3})


def test_each_object_has_a_type_of_its_own():
    """Two types of one name would share what is published of the first."""
    schema = report_schema()
    assert [name for name, found in schema["$defs"].items() if not found.get("properties")] == []


def test_each_key_of_a_cell_says_what_it_means():
    cell = report_schema()["$defs"]["MeasuredCell"]["properties"]
    assert [name for name, value in cell.items() if not inspect.cleandoc(value.get("description", ""))] == []


@pytest.mark.parametrize("name", documents.LOADS)
def test_a_loads_json_has_the_keys_and_types_that_are_published_and_no_others(name):
    kind = Versus if name == "two in pairs" else LoadReading
    _, data = documents.LOADS[name]()
    published = Draft202012Validator(strict(schema_of(kind)))
    assert [one.message for one in published.iter_errors(json.loads(json.dumps(data)))] == []


@pytest.mark.parametrize(("name", "kind"), [("tune", TuneReading), ("tune: one setting tried", TryReading)])
def test_a_searchs_json_has_the_keys_and_types_that_are_published_and_no_others(name, kind):
    _, data = documents.REPORTS[name](None)
    published = Draft202012Validator(strict(schema_of(kind)))
    assert [one.message for one in published.iter_errors(json.loads(json.dumps(data)))] == []
