"""Published figures beside new ones: like beside like, or the reason why there is none."""

from dataclasses import replace

import pytest

from golden import build
from prony.archive import open_archive
from prony.figures.missing import Missing
from prony.figures.summary import estimate_mean
from prony.model.plan import Original
from prony.reading.checks import beside
from prony.reading.study import read_archive
from prony.report.sections.claims import originals

NAME = "bjoern+hello"


@pytest.fixture(scope="module")
def reading(tmp_path_factory):
    path = tmp_path_factory.mktemp("originals") / "a.prony"
    with open_archive(build.closed_study(path)) as archive:
        return read_archive(archive)


def published(reading, *figures):
    return replace(reading, plan=replace(reading.plan, originals=figures))


def each(role):
    return Original(NAME, "rss_per_process", 9_129_984, role=role)


def test_a_figure_of_a_role_stands_beside_that_of_the_same_role(reading):
    (found,) = published(reading, each("worker")).originals
    assert found.measured == found.cell.roles["worker"]["rss_per_process"]
    assert found.measured is not found.cell.metrics["rss_per_process"]


def test_each_role_has_a_table_of_its_own(reading):
    sections = list(originals(published(reading, each("master"), each("worker"), each(""))))
    assert [str(section.heading) for section in sections] == [
        f"As published, and here: resident memory of a process{role}"
        for role in (", role master", ", role worker", "")
    ]


def test_a_role_that_nothing_here_has_leaves_no_figure_of_something_else(reading):
    found = published(reading, each("thread"))
    assert found.originals[0].measured == Missing("no process here has the role thread")
    (section,) = originals(found)
    table, notes = section.blocks[1:]
    assert str(table.rows[0][2].text).startswith("—")
    assert [str(text) for _, text in notes.items] == ["no process here has the role thread"]


@pytest.mark.parametrize(
    ("values", "unit", "shown"),
    [
        ([9_396 * 1024, 8_916 * 1024], "KiB", "8,916–9,396"),
        # Published in MB, and in MiB.
        ([16_000_000, 20_000_000], "MiB", "15.3–19.1"),
        ([9 * 1024**2], "MiB", "9.00"),
    ],
)
def test_memory_that_was_published_in_whole_kilobytes_stays_so(reading, values, unit, shown):
    figures = (Original(NAME, "rss_per_process", value, role="worker") for value in values)
    (section,) = originals(published(reading, *figures))
    table = section.blocks[1]
    assert [str(column.group).rpartition(", ")[2] for column in table.columns[1:3]] == [unit, unit]
    assert str(table.rows[0][1].text) == shown


def test_figures_of_all_processes_are_of_all(reading):
    (found,) = published(reading, Original(NAME, "rss_peak", 1e6)).originals
    cell = replace(found.cell, metrics={**found.cell.metrics, "rss_peak": estimate_mean([5e6, 5e6])})
    assert beside((cell,), (found.original,))[0].measured.mean == 5e6
