"""A study of many loads says where each subject saturates."""

from golden import build
from prony.archive import open_archive
from prony.model.facts import Fingerprint
from prony.model.plan import Cell, Plan
from prony.model.workload import ClosedLoop, DurationStop, Workload
from prony.reading.study import read_archive
from prony.report.formats.markdown import markdown
from prony.report.study import study_report

# Replies in 2 s, by subject and connections.
CURVES = {
    "a+hello": {10: 400, 100: 1960, 1000: 2000},
    "b+hello": {10: 400, 20: 600, 100: 800, 1000: 1600},
}
ALL = (10, 100, 1000)


def text(tmp_path, loads=ALL, others=None, never=()):
    """Return the page of a study: a under these loads, b under the same or ``others``; ``never``: loads
    under which no trial was run.
    """
    under = [("a+hello", load) for load in loads] + [("b+hello", load) for load in others or loads]
    cells = [
        Cell(k, build.subject(name), Workload(ClosedLoop(load), DurationStop(2 * build.SECOND)))
        for k, (name, load) in enumerate(under)
    ]
    with build.create(
        tmp_path / "a.prony", Plan("s", "S", "", "quick", tuple(cells), 2, 1), Fingerprint()
    ) as writer:
        for block in range(2):
            for k, cell in enumerate(cells):
                if cell.workload.loop.connections in never:
                    continue
                count = CURVES[cell.subject.name][cell.workload.loop.connections]
                writer.append(build.trial(cell, block, k, [1_000_000] * count))
        writer.finish(build.RunStatus.FINISHED)
    with open_archive(tmp_path / "a.prony") as archive:
        return markdown(study_report(read_archive(archive)))


def test_the_knee_of_each_subject_is_told_or_that_there_is_none(tmp_path):
    found = text(tmp_path).partition("Saturation, over connections")[2].splitlines()
    first, second = (next(line for line in found if line.startswith(f"| {name}")) for name in ("a", "b"))
    assert [part.strip(" *") for part in first.split("|")[2:7]] == [
        "100",
        "980 /s",
        "950 µs",
        "1,000 /s",
        "1,000",
    ]
    assert "not up to 1,000" in second


def test_two_loads_are_no_curve(tmp_path):
    assert "Saturation" not in text(tmp_path, (10, 100))


def test_subjects_under_other_loads_are_told_apart_from_a_grid(tmp_path):
    found = text(tmp_path, others=(20,))
    grid = found.partition("Valid replies per second, /s, against connections")[2].partition("##")[0]
    assert "a+hello" in grid and "b+hello" not in grid
    assert "not measured under this load" not in found
    headings = [line for line in found.splitlines() if line.startswith("## Closed loop")]
    assert headings == ["## Closed loop, 20 connections, 2 s"]


def test_a_load_of_which_nothing_was_run_has_no_table_and_no_answer(tmp_path):
    found = text(tmp_path, (10, 100), never=(100,))
    assert "## Closed loop, 10 connections, 2 s" in found and "100 connections" not in found
    (tmp_path / "none").mkdir()
    none = text(tmp_path / "none", (10, 100), never=(10, 100))
    assert "## Closed loop, 10 connections, 2 s" in none and "## Closed loop, 100 connections, 2 s" in none
