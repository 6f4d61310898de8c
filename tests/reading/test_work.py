"""Subjects whose replies differ in size do not do the same work, and a report says so."""

from dataclasses import replace

import pytest

from golden import build
from prony.model.plan import Cell
from prony.reading.groups import unequal_replies
from prony.report.diagnoses import cause_note
from prony.report.sections.notes import work_notes
from recordings import with_parts
from report.page import studies

LOAD = build.Workload(build.ClosedLoop(10), build.DurationStop(2 * build.SECOND))


def study(path, **sizes):
    """Subjects whose replies have so many bytes; null: their generator does not say."""
    cells = tuple(Cell(k, build.subject(f"{name}+x"), LOAD) for k, name in enumerate(sizes))
    with build.create(path, build.Plan("s", "S", "", "quick", cells, 3, 1), build.FINGERPRINT) as writer:
        for block in range(3):
            for place, (cell, size) in enumerate(zip(cells, sizes.values(), strict=True)):
                trial = build.trial(cell, block, place, [1_000_000] * 200)
                received = None if size is None else 200 * size
                parts = with_parts(trial.recording, bytes={"received": received})
                writer.append(replace(trial, recording=parts))
        writer.finish()
    return studies.read_file(path)[0]


def test_the_smallest_and_the_largest_replies_are_told(tmp_path):
    (said,) = work_notes(study(tmp_path / "a.prony", a=150, b=120, c=243))
    assert str(said).startswith(
        "Replies are not of one size, from 120 B (b+x) to 243 B (c+x), heads included"
    )


@pytest.mark.parametrize("sizes", [{"a": 200, "b": 219}, {"a": 200, "b": None}, {"a": None, "b": None}])
def test_replies_of_about_one_size_and_unknown_ones_are_not(tmp_path, sizes):
    (group,) = study(tmp_path / "a.prony", **sizes).groups
    assert unequal_replies(group.cells) is None


def test_each_subject_is_told_beside_its_limit_whose_replies_differ_most_from_its_own(tmp_path):
    found = study(tmp_path / "a.prony", a=150, b=145, c=100, d=None)
    said = [
        [
            (one.finding.rule, dict(one.finding.names), dict(one.finding.numbers), one.trials)
            for one in found.diagnoses[cell.cell.id].beside
        ]
        for cell in found.cells
    ]
    assert said == [
        [("D32", {"other": "c+x"}, {"own_bytes": 150, "other_bytes": 100}, 3)],
        [("D32", {"other": "c+x"}, {"own_bytes": 145, "other_bytes": 100}, 3)],
        [("D32", {"other": "a+x"}, {"own_bytes": 100, "other_bytes": 150}, 3)],
        [],
    ]
    finding = found.diagnoses[0].beside[0].finding
    words = str(cause_note(finding, finding.confidence, ""))
    assert "a part of a difference in speed may be of the work" in words


def test_a_subject_without_others_is_compared_with_none(tmp_path):
    found = study(tmp_path / "a.prony", a=150)
    assert [one.beside for one in found.diagnoses.values()] == [()]


def test_a_size_is_of_all_that_was_answered(tmp_path):
    (group,) = study(tmp_path / "a.prony", a=150).groups
    assert group.cells[0].metrics["reply_bytes"].mean == 150
