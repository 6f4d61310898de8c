"""The dependence of blocks in a study: read off what its answer rests on, heeded by intervals, and said."""

from dataclasses import replace

import numpy as np
import pytest

from golden import build
from prony.archive import open_archive
from prony.figures.answer import log_values
from prony.figures.statistics.effects import dependence
from prony.model.trial import TrialRole
from prony.reading.study import dependence_of, read_archive
from prony.report.formats.as_json import reading_json
from prony.report.formats.markdown import markdown
from prony.report.study import study_report

NAMES = ("a+x", "b+x", "c+x")


def planted(path, rate, blocks=12):
    """Write a study of three subjects; `rate`: their rates, by block and subject."""
    load = build.Workload(build.ClosedLoop(4), build.DurationStop(build.SECOND))
    cells = tuple(build.Cell(k + 1, build.subject(name), load) for k, name in enumerate(NAMES))
    with build.create(
        path, build.Plan("study", "", "", "quick", cells, blocks, 1), build.FINGERPRINT
    ) as writer:
        for block in range(blocks):
            for k, cell in enumerate(cells):
                writer.append(build.trial(cell, block, k, [1_000_000] * rate(block, k)))
                calibration = build.trial(cell, block, k + 3, [1_000_000 + 10_000 * (block // 4)] * 200)
                writer.append(replace(calibration, role=TrialRole.CALIBRATION))
        writer.finish(build.RunStatus.FINISHED)
    with open_archive(path) as archive:
        return read_archive(archive)


def persistent(block, k):
    """In stretches of four blocks, each subject is fast or slow by itself."""
    return 1000 + 60 * ((block // 4 * (k + 1) + k) % 3) + (block * 7 + k * 5) % 11


def changing(block, k):
    return 1000 + 60 * ((block * (k + 1) + k) % 3) + (block * 7 + k * 5) % 11


def said(reading):
    return " ".join(markdown(study_report(reading)).split())


@pytest.mark.parametrize(("rate", "least", "most"), [(persistent, 1.5, 4.0), (changing, 1.0, 1.2)])
def test_intervals_are_as_wide_as_the_blocks_ask_for_and_the_report_says_so(tmp_path, rate, least, most):
    reading = planted(tmp_path / "a.prony", rate)
    found = reading.dependence
    assert least < found.widening < most
    words = "Intervals are {:.2f} times as wide as normal noise would ask for"
    assert words.format(found.widening) in said(reading)
    assert f"(correlation {found.correlation:.1f}, as far as 12 blocks show it)" in said(reading)
    assert reading_json(reading)["dependence"] == {
        "correlation": found.correlation,
        "widening": found.widening,
        "blocks": 12,
    }


def test_it_is_that_of_the_figures_that_decide_and_of_no_calibration(tmp_path):
    reading = planted(tmp_path / "a.prony", persistent)
    cells = reading.groups[0].cells
    logs = [log_values(cell, "ok_per_s") for cell in cells]
    assert reading.dependence == dependence(np.array([[one[block] for one in logs] for block in range(12)]))


def test_comparisons_of_the_answer_are_as_wide_as_is_said(tmp_path):
    reading = planted(tmp_path / "a.prony", persistent, 20)
    answer = reading.groups[0].answer
    first = log_values(next(one for one in reading.groups[0].cells if one.name == answer.first), "ok_per_s")
    for cell in reading.groups[0].cells:
        if cell.name != answer.first:
            other = log_values(cell, "ok_per_s")
            spread = np.std([other[block] - first[block] for block in first], ddof=1)
            said_spread = answer.comparisons[cell.name].spread
            # Each pair's own variance is drawn to the usual one.
            assert said_spread == pytest.approx(reading.dependence.widening * spread, rel=0.25)


def test_a_study_whose_sessions_count_has_none(tmp_path):
    reading = planted(tmp_path / "a.prony", changing)
    group = reading.groups[0]
    assert dependence_of([group]) == reading.dependence
    assert dependence_of([replace(group, answer=replace(group.answer, by_session=True))]) is None
    assert dependence_of([replace(group, primary=False)]) is None
    assert dependence_of([replace(group, primary=False), group]) == reading.dependence


def test_few_blocks_say_nothing_of_it(tmp_path):
    with open_archive(build.study_two(tmp_path / "a.prony", 3)) as archive:
        reading = read_archive(archive)
    assert reading.dependence is None
    assert "resemble" not in said(reading)
    assert reading_json(reading)["dependence"] is None
