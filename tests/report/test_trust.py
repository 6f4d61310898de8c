"""How far figures can be trusted: a bound that says nothing stands beside no word of quiet."""

from dataclasses import replace
from math import ceil, log

import pytest

from golden.build import closed_study
from prony.archive import open_archive
from prony.figures.drift import Drift
from prony.figures.rounds import Levels
from prony.figures.statistics.power import Needed, Sight
from prony.model.facts import AskedProgram
from prony.reading.checks import Calibrations
from prony.reading.study import StudyResults, read_archive
from prony.report.formats.markdown import markdown
from prony.report.sections.brief_trust import trust_lines
from prony.report.study import study_report


@pytest.fixture(scope="module")
def reading(tmp_path_factory):
    with open_archive(closed_study(tmp_path_factory.mktemp("trust") / "a.prony", 6)) as archive:
        return read_archive(archive)


def said(reading, what):
    return next(str(one.sentence) for one in trust_lines(reading) if one.verdict == what)


def drifting(low, high):
    return Calibrations(7, 7, {"response_ok_p50": Drift(7, 1e6, 0.001, low, high)})


@pytest.mark.parametrize(
    ("calibrated", "words"),
    [
        (None, "no disturbance seen; not calibrated"),
        (drifting(-0.02, 0.031), "no disturbance seen; in 7 calibrations no drift above 3.1 %"),
        (drifting(-0.1, 0.031), "no disturbance seen; in 7 calibrations no drift above 10 %"),
        (drifting(-0.2, 0.65), "in 7 calibrations only a drift of more than 65 % would have been seen"),
        (drifting(-0.2, 12.17), "in 7 calibrations only a drift of more than tenfold would have been seen"),
        (
            Calibrations(3, 3, {"response_ok_p50": Drift(3, 1e6)}),
            "no disturbance seen; 3 calibrations, too few",
        ),
    ],
)
def test_a_drift_that_could_not_have_been_seen_is_not_called_quiet(reading, monkeypatch, calibrated, words):
    monkeypatch.setattr(StudyResults, "calibrations", property(lambda _: calibrated))
    assert said(reading, "machine").startswith(words)
    assert ("no disturbance" in said(reading, "machine")) == ("no disturbance" in words)


@pytest.mark.parametrize(
    ("difference", "short", "long"),
    [
        (0.046, "find differences of 4.6 % or more", "find a difference of 4.6 % between"),
        (2.3544, "find differences of 235 % or more", "find a difference of 235 % between"),
        (
            12.1655,
            "find only differences of more than tenfold",
            "find a difference of more than tenfold between",
        ),
    ],
)
def test_what_the_blocks_can_find_is_said_in_plain_words(reading, difference, short, long):
    (group,) = reading.groups
    power = Sight(6, difference, None, 0.02)
    shown = replace(reading, groups=(replace(group, power=power),))
    assert short in said(shown, "trials")
    assert long in " ".join(markdown(study_report(shown)).split())


def test_who_shares_the_first_place_gets_the_length_that_finds_half_of_the_difference(reading):
    (group,) = reading.groups
    shown = replace(reading, groups=(replace(group, power=Sight(6, 0.3, None, 0.02)),))
    assert group.answer.ties
    assert "find differences of 30 % or more: half of it with --for " in said(shown, "trials")
    taken = [trial.started_unix_ns for trial in reading.trials]
    times = (log(1.3 / 1.02) / log(1.15 / 1.02)) ** 2
    assert f"--for {ceil(times * (max(taken) - min(taken)) / 60e9)}m" in said(shown, "trials")


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(lambda group: {"power": Sight(6, 0.039, None, 0.02)}, id="half is of no interest"),
        pytest.param(lambda group: {"answer": replace(group.answer, ties=())}, id="nobody shares it"),
    ],
)
def test_no_length_is_said_where_none_helps(reading, other):
    (group,) = reading.groups
    shown = replace(reading, groups=(replace(group, **{"power": Sight(6, 0.3, None, 0.02), **other(group)}),))
    assert "--for" not in said(shown, "trials")


@pytest.mark.parametrize(
    ("needed", "words"),
    [
        (Needed(65, 470), "; half of it would take 65 to 470 blocks."),
        (Needed(1100, 4000), "; half of it would take more than a thousand."),
        (None, "nine times in ten."),
    ],
)
def test_how_many_blocks_half_of_it_takes_is_a_range_or_nothing(reading, needed, words):
    (group,) = reading.groups
    shown = replace(reading, groups=(replace(group, power=Sight(12, 0.05, needed, 0.02)),))
    assert words in " ".join(markdown(study_report(shown)).split())


def in_rounds(reading, lacking, levels):
    """Return a reading whose first subject lacks the rounds of these blocks."""
    (group,) = reading.groups
    cells = tuple(
        replace(
            cell,
            counted=tuple(
                replace(one, by_round={} if place == 0 and one.block in lacking else {0: 1.0})
                for one in cell.counted
            ),
        )
        for place, cell in enumerate(group.cells)
    )
    return replace(reading, groups=(replace(group, cells=cells, levels=levels),))


@pytest.mark.parametrize(
    ("lacking", "words"),
    [
        (range(6), "no rounds of bjoern+hello: figures of their own windows"),
        ([2, 4], "no rounds of bjoern+hello in 2 of the blocks: figures of their own windows"),
    ],
)
def test_who_lacks_rounds_that_others_have_is_named(reading, lacking, words):
    assert words in said(in_rounds(reading, lacking, None), "trials")
    assert "no rounds" not in said(in_rounds(reading, [], None), "trials")


def test_a_scatter_of_starts_that_rounds_hide_is_not_called_nothing(reading):
    some, none = (Levels(5, 0.04, between, agree_within=0.11) for between in (0.03, 0.0))
    shown = said(in_rounds(reading, [], some), "trials")
    assert "throughput differs by 3 % from start to start, by 4 % within one (5 rounds)" in shown
    assert "rounds differ from own windows by at most 11 %" in shown
    hidden = said(in_rounds(reading, [], none), "trials")
    assert "differs by 4 % within a start (5 rounds), not visibly more between starts" in hidden


def test_a_program_that_may_not_be_seen_makes_the_figures_of_cpu_a_bound(reading):
    seen = AskedProgram("database", "postgres", "port 5432", 8)
    shown = replace(reading, asked=(seen, replace(seen, name="", place="port 6379", connections=1)))
    lines = [str(one.sentence) for one in trust_lines(shown) if one.verdict == "asks"]
    assert lines[0].startswith("postgres, a database at port 5432, over up to 8 connections: part of each")
    assert lines[1] == (
        "what listens at port 6379 (over up to 1 connection) may only be seen by root: CPU and memory are at "
        "least what is shown"
    )


@pytest.mark.parametrize(("settings", "levels"), [({"workers": 3}, {}), ({}, {"workers": 1})])
def test_a_number_of_workers_is_for_so_many_cpus(reading, settings, levels):
    assert said(reading, "machine").startswith("no disturbance seen")
    plan = reading.plan
    cells = tuple(
        replace(cell, subject=replace(cell.subject, settings=settings, levels=levels)) for cell in plan.cells
    )
    shown = replace(reading, plan=replace(plan, cells=cells))
    assert said(shown, "machine").startswith("1 of 2 CPUs (--share-cpus: all); no disturbance seen")


def answering(reading, statuses):
    """Return the reading of a study whose first subject's valid replies had these statuses."""
    (group,) = reading.groups
    first, *others = group.cells
    each = [(first, statuses), *((cell, {"200": 10}) for cell in others)]
    cells = tuple(replace(cell, account=replace(cell.account, ok_status=known)) for cell, known in each)
    return replace(reading, groups=(replace(group, cells=cells),))


@pytest.mark.parametrize(
    ("statuses", "words"),
    [
        ({"200": 10}, "all valid ones had status 200"),
        ({"200": 900, "204": 100}, "{}: 900 with status 200, 100 with status 204"),
        ({"200": 100, "304": 900}, "{}: 900 with status 304, 100 with status 200"),
        (
            {"200": 1, "302": 1200},
            "{}: 1,200 with status 302, 1 with status 200: most are redirects; --follow 3 follows them, with "
            "--expect-status 200 they are failures",
        ),
    ],
)
def test_what_counts_as_success_is_shown(reading, statuses, words):
    name = reading.groups[0].cells[0].name
    assert said(answering(reading, statuses), "replies") == words.format(name)


def test_of_a_generator_without_statuses_nothing_is_said(reading):
    assert "replies" not in [one.verdict for one in trust_lines(reading)]
