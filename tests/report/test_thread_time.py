"""Where the time of a server's threads goes: a bar in `prony why`, a table in the full report, a chart."""

from dataclasses import replace

import pytest

from diagnosis.test_conclusion import loaded, record
from diagnosis.test_rules import CELL
from prony.diagnosis import observe
from prony.diagnosis.conclusion import conclude
from prony.diagnosis.evidence import Evidence
from prony.reading.limits import LimitedCell
from prony.report.diagnoses import time_heading, time_rows, time_table
from prony.report.document import Bars, Table
from prony.report.page.charts.resources import thread_times
from prony.report.page.scene import scene_of
from prony.report.why import why_document
from report.page import studies

LOOKS = {"threads.looks": 50, "threads.sleep": 30, "threads.downstream": 10, "threads.awake": 10}
SCHEDULED = {"threads.run_ns": 20, "threads.queue_ns": 5, "threads.alive_ns": 100}


def watched(**more):
    trial = loaded()
    counters = {**trial.counters, **LOOKS, **SCHEDULED, **more}
    return conclude([observe(Evidence(CELL, replace(trial, counters=counters), record()))] * 2)


def test_the_bar_adds_up_to_the_whole():
    rows = list(time_rows(watched(), ""))
    assert sum(figure.value for _, figure in rows) == pytest.approx(1.0)
    assert [label for label, _ in rows] == ["a sleep", "running", "another server", "ready to run"]
    assert [str(figure) for _, figure in rows][1:] == ["20 %", "19 %", "5 %"]


def test_its_resolution_is_the_number_of_looks_over_the_trials():
    assert str(time_heading(watched(), "")).startswith("Where its threads' time goes, by 100 looks")


def test_subjects_stand_side_by_side_with_a_column_for_each_state():
    table = time_table([("a", watched(), ""), ("b", watched(**{"threads.file": 20}), "")])
    assert [str(column.title) for column in table.columns][-1] == "a file"
    assert [str(entry.text) for entry in table.rows[0]][-1] == ""


def test_without_looks_there_is_neither_table_nor_bar():
    unwatched = conclude([observe(Evidence(CELL, loaded(), record()))])
    assert time_table([("a", unwatched, "")]) is None
    assert list(time_rows(unwatched, "")) == []


@pytest.fixture(scope="module")
def study():
    return studies.read("study_two")


def test_the_page_has_a_bar_for_each_subject_whose_threads_were_looked_at(study):
    reading, traces = study
    group = reading.measured[0]
    first = group.cells[0].cell.id
    timed = replace(reading, diagnoses={**reading.diagnoses, first: watched()})
    group = timed.measured[0]
    chart = thread_times(scene_of(timed, traces), group)
    rows = chart.spec["data"]["values"]
    assert {row["name"] for row in rows} == {group.cells[0].name}
    assert sum(row["value"] for row in rows) == pytest.approx(100.0)
    assert all(row["at"].endswith(f"/diagnosis/time/{row['state']}") for row in rows)
    assert thread_times(scene_of(reading, traces), group) is None


def test_why_draws_the_bar_under_the_table_of_resources(study):

    group = study[0].measured[0]
    document = why_document("Why", [LimitedCell("a", group, 0, "/groups/0/cells/0/diagnosis", watched())])
    kinds = [type(block) for block in document.sections[0].blocks]
    assert kinds.index(Bars) > kinds.index(Table)
