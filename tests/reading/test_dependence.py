"""The dependence of blocks in a study: read off calibration and subjects, heeded by intervals, and said."""

from dataclasses import replace

import pytest

from golden import build
from prony.analysis.answer import answer
from prony.archive import open_archive
from prony.faces.json_report import reading_json
from prony.faces.markdown import markdown
from prony.model import TrialRole
from prony.reading.study import read_archive
from prony.report.study import study_report

BLOCKS = 12
NAMES = ("a+x", "b+x", "c+x")


def planted(path, rate, blocks=BLOCKS):
    """Write a study of three subjects; `rate`: their rates, by block and subject."""
    load = build.Workload(build.ClosedLoop(4), build.DurationStop(build.SECOND))
    cells = tuple(build.Cell(k + 1, build.subject(name), load) for k, name in enumerate(NAMES))
    with build.create(
        path, build.Plan("study", "", "", "quick", cells, blocks, 1), build.FINGERPRINT
    ) as writer:
        for block in range(blocks):
            for k, cell in enumerate(cells):
                writer.append(build.trial(cell, block, k, [1_000_000] * rate(block, k)))
        writer.finish(build.RunStatus.FINISHED)
    with open_archive(path) as archive:
        return read_archive(archive)


def persistent(block, k):
    """In stretches of three blocks, each subject is fast or slow by itself."""
    return 1000 + 60 * ((block // 3 * (k + 1) + k) % 3) + (block * 7 + k * 5) % 11


def changing(block, k):
    return 1000 + 60 * ((block * (k + 1) + k) % 3) + (block * 7 + k * 5) % 11


def said(reading):
    return " ".join(markdown(study_report(reading)).split())


def test_where_it_is_shown_intervals_widen_and_the_report_says_so(tmp_path):
    reading = planted(tmp_path / "a.prony", persistent)
    assert reading.dependence.shown
    assert reading.dependence.widening > 1.2
    assert "Blocks resemble the block before (correlation 0." in said(reading)
    cells = reading.groups[0].cells
    narrow = answer(cells).comparisons
    for name, found in reading.groups[0].answer.comparisons.items():
        assert found.spread == pytest.approx(reading.dependence.widening * narrow[name].spread)
    assert reading_json(reading)["dependence"]["shown"] is True


def test_where_it_is_not_shown_the_report_says_with_what_power(tmp_path):
    reading = planted(tmp_path / "a.prony", changing)
    assert not reading.dependence.shown
    assert reading.dependence.widening == 1
    assert "No block was seen to resemble the block before it (3 series of 12 blocks; " in said(reading)


def test_the_calibrations_of_a_block_are_series_of_one_subject(tmp_path):
    load = build.Workload(build.OpenLoop(200.0), build.DurationStop(build.SECOND))
    cell = build.Cell(1, build.subject("a+x"), load)
    plan = build.Plan("study", "", "", "quick", (cell,), 6, 1)
    with build.create(tmp_path / "a.prony", plan, build.FINGERPRINT) as writer:
        for block in range(6):
            writer.append(build.trial(cell, block, 0, [1_000_000] * 200))
            for k in range(3):
                slow = 1_000_000 + 10_000 * ((block * 3 + k * 5) % 7)
                calibration = build.trial(cell, block, k + 1, [slow] * 200)
                writer.append(replace(calibration, role=TrialRole.CALIBRATION))
    with open_archive(tmp_path / "a.prony") as archive:
        found = read_archive(archive).dependence
    assert (found.series, found.blocks) == (3, 6)


@pytest.mark.parametrize("blocks", [3])
def test_few_blocks_say_nothing_of_it(tmp_path, blocks):
    with open_archive(build.study_two(tmp_path / "a.prony", blocks)) as archive:
        reading = read_archive(archive)
    assert reading.dependence is None
    assert "resemble" not in said(reading)


def test_blocks_say_what_a_dependence_that_they_cannot_show_would_cost(tmp_path):
    few, some, many = (planted(tmp_path / f"{blocks}.prony", changing, blocks) for blocks in (5, 12, 24))
    words = "of such studies separate subjects that are equal"
    assert f"up to {100 * few.dependence.cost:.0f}% {words}" in said(few)
    assert f"up to {100 * some.dependence.cost:.0f}% {words}" in said(some)
    assert reading_json(few)["dependence"]["cost"] > reading_json(some)["dependence"]["cost"] > 0.075
    assert words not in said(many)
    assert reading_json(many)["dependence"]["cost"] is None
