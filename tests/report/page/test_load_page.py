"""The page of one load: whole, true to its JSON, and written where it is asked for."""

import json
from functools import cache

import pytest

from golden import build
from prony.model.json_codec import encode
from prony.reading.load import read_load
from prony.report.formats.as_json import document_json
from prony.report.page.load import page_of_load
from recordings import with_parts
from report.page.walk import Parsed, wrong_numbers, wrong_rows

LOADS = {
    "closed": (build.ClosedLoop(4), [1_000_000 + 7919 * k for k in range(2000)], {}),
    "failing": (build.OpenLoop(100.0), [2_000_000 + 7919 * k for k in range(80)], {"reset": 20}),
    "nothing": (build.ClosedLoop(1), [], {"connect_refused": 3}),
}


@cache
def reading_of(name):
    loop, values, errors = LOADS[name]
    workload = build.Workload(loop, build.DurationStop(build.SECOND))
    spec = {"target": {"host": "<b>x", "port": 8000}, "workload": encode(workload)}
    return read_load(with_parts(build.recording(workload, values, errors), spec=spec))


@pytest.mark.parametrize("name", LOADS)
def test_every_number_of_a_loads_page_is_the_value_at_its_place_in_the_json(name):
    data = json.loads(json.dumps(document_json(reading_of(name))))
    assert wrong_numbers(page_of_load(reading_of(name)), data) == []


@pytest.mark.parametrize("name", ["closed", "failing"])
def test_every_row_of_a_loads_charts_shows_and_says_the_value_at_its_place_in_the_json(name):
    data = json.loads(json.dumps(document_json(reading_of(name))))
    assert wrong_rows(page_of_load(reading_of(name)), data) == []


@pytest.mark.parametrize("name", LOADS)
def test_no_two_parts_of_a_loads_page_share_an_identifier(name):
    found = [one["id"] for _, one in Parsed(page_of_load(reading_of(name))).tags if "id" in one]
    assert sorted(found) == sorted(set(found))


def test_a_load_with_replies_has_its_percentiles_and_seconds_as_charts():
    page = page_of_load(reading_of("failing"))
    assert {'id="percentiles-all"', 'id="seconds-all"'} <= {
        part for part in page.split() if part[:3] == "id="
    }


def test_a_target_with_a_hostile_name_stays_text():
    page = page_of_load(reading_of("failing"))
    assert "<b>x" not in page
    assert "&lt;b&gt;x" in page
