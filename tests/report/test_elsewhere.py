"""The first screen's lines for other loads: who leads there, against whom, and who was left out, and why."""

import json

import pytest

from golden import build
from prony.archive import open_archive
from prony.model.plan import Design
from prony.reading.brief import brief_of
from prony.reading.study import read_archive
from prony.report.brief import brief_report
from prony.report.formats.as_json import reading_json
from prony.report.formats.markdown import markdown

FAILS = {"reset": 40}


def study(path, loads, blocks=5):
    """Write a study of which 1000 connections are the main load; by load, each subject's replies a second in
    each block, and what failed.
    """
    by_load = {1000: {"a+x": (300, None), "b+x": (200, None)}, **loads}
    cells, made = [], []
    for many, subjects in by_load.items():
        for name, (rates, errors) in subjects.items():
            load = build.Workload(build.ClosedLoop(many), build.DurationStop(build.SECOND))
            cells.append(build.Cell(len(cells) + 1, build.subject(name), load))
            made.append(([rates] * blocks if isinstance(rates, int) else rates, errors))
    design = Design(primary={"connections": 1000})
    plan = build.Plan("study", "", "", "quick", tuple(cells), blocks, 1, design=design)
    with build.create(path, plan, build.FINGERPRINT) as writer:
        for block in range(blocks):
            for k, (cell, (rates, errors)) in enumerate(zip(cells, made, strict=True)):
                rate = rates[block]
                died = None if rate else build.Failed("load", "it died")
                values = [1_000_000] * (rate + (block * (k + 2)) % 3) if rate else []
                writer.append(build.trial(cell, block, k, values, outcome=died, errors=errors))
        writer.finish(build.RunStatus.FINISHED)
    with open_archive(path) as archive:
        return read_archive(archive)


def line(reading):
    text = " ".join(markdown(brief_report(reading)).split())
    return next(part for part in text.split("- ") if part.startswith("10 connections"))


@pytest.mark.parametrize(
    ("subjects", "said"),
    [
        ({"a+x": (300, None), "b+x": (200, None)}, "a+x is best"),
        ({"a+x": (300, None)}, "a+x ran alone"),
        (
            {"a+x": (100, None), "b+x": (50, FAILS)},
            "a+x is the only one to qualify",
        ),
        (
            {"a+x": (100, None), "b+x": (400, FAILS)},
            "a+x is the only one to qualify; better, but not ranked: b+x (its requests fail)",
        ),
        (
            {
                **{"a+x": (100, None), "b+x": (400, FAILS), "c+x": (90, None), "d+x": (300, FAILS)},
                "e+x": ([200, 200, 200, 0, 0], None),
            },
            "a+x is best; better, but not ranked: b+x, d+x (its requests fail), "
            "e+x (2 of 5 trials did not count)",
        ),
        (
            {"a+x": ([100, 100, 100, 100, 70], None), "b+x": (40, None)},
            "a+x is best but for its stalled trials",
        ),
    ],
)
def test_another_load_names_its_leader_as_what_it_is_and_whom_it_left_out(tmp_path, subjects, said):
    found = line(study(tmp_path / "a.prony", {10: subjects}))
    assert found.strip().startswith(f"10 connections: {said}")
    assert found.count("not ranked") == said.count("not ranked")


def test_loads_with_other_ones_left_out_have_lines_of_their_own(tmp_path):
    reading = study(
        tmp_path / "a.prony",
        {
            10: {"a+x": (100, None), "b+x": (400, FAILS)},
            20: {"a+x": (100, None), "b+x": (50, FAILS)},
            30: {"a+x": (100, None), "b+x": (40, FAILS)},
        },
    )
    assert [one.groups for one in brief_of(reading).elsewhere] == [(1,), (2, 3)]


def test_the_json_has_who_was_left_out(tmp_path):
    reading = study(tmp_path / "a.prony", {10: {"a+x": (100, None), "b+x": (400, FAILS)}})
    (one,) = json.loads(json.dumps(reading_json(reading)))["answer"]["elsewhere"]
    assert (one["leader"], one["alone"], one["others_ran"], one["stalled"]) == ("a+x", True, True, False)
    assert one["ahead"] == [{"name": "b+x", "reason": "its requests fail"}]
