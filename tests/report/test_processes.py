"""The table of processes by role: its rows add up, or say what no sample shows."""

from dataclasses import replace

import pytest

from golden import build
from prony.archive import open_archive
from prony.figures.summary import estimate_mean
from prony.reading.study import read_archive
from prony.report.sections.sandbox import processes


@pytest.fixture(scope="module")
def reading(tmp_path_factory):
    path = tmp_path_factory.mktemp("processes") / "a.prony"
    with open_archive(build.closed_study(path)) as archive:
        return read_archive(archive)


def rows_of(reading, *unsampled):
    """Return the rows of the first subject where its trials leave so much of its CPU without a sample."""
    (group,) = reading.groups
    first, *others = group.cells
    changed = replace(first, metrics={**first.metrics, "cpu_unsampled_percent": estimate_mean(unsampled)})
    (section,) = processes(replace(reading, groups=(replace(group, cells=(changed, *others)),)))
    rows = [[str(entry.text) for entry in row] for row in section.blocks[0].rows]
    other = next(k for k, row in enumerate(rows) if row[0] == others[0].name)
    return rows[:other], section


def test_cpu_that_no_sample_shows_has_a_row_and_its_reason(reading):
    rows, section = rows_of(reading, 20.0, 22.0)
    assert [row[1] for row in rows] == ["master", "worker", "between samples", "total"]
    mark = rows[2][3][-1]
    assert rows[2][3].startswith("21")
    assert set(rows[2][4:]) == {""}
    (reason,) = [str(text) for own, text in section.blocks[1].items if own == mark]
    assert reason.startswith("CPU of processes that lived between two samples")


def test_a_difference_of_clocks_has_none(reading):
    rows, _ = rows_of(reading, 1.5, 1.6)
    assert [row[1] for row in rows] == ["master", "worker", "total"]
