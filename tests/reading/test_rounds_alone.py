"""Blocks that have rounds alone: throughput and CPU rest on all blocks, the rest on those with trials."""

import re
from dataclasses import replace
from random import Random

import pytest

from golden import build
from prony.archive import open_archive
from prony.figures.missing import Missing
from prony.model.observation import Slice
from prony.model.trial import Fault, FaultKind, Invalid, Ok, Trial, TrialRecord, TrialRole
from prony.reading.study import read
from prony.reading.traces import primary_cells, traces
from prony.report.brief import brief_report
from prony.report.formats.as_json import reading_json
from prony.report.formats.markdown import markdown
from prony.report.page.study import page_of_study
from prony.report.study import study_report

HALF_NS, CPU_NS = build.SECOND // 2, build.SECOND // 4
SPEEDS = {1: 5000, 2: 4990, 3: 2500}
WHOLE, ALONE = 6, 8


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    with open_archive(
        build.closed_study(tmp_path_factory.mktemp("golden") / "study.prony", WHOLE)
    ) as archive:
        return archive.plan(), archive.runs(), archive.subjects(), list(archive.trials())


def slices(rng, per_s):
    for number in range(5):
        ok = round(per_s / 2 * (1 + 0.02 * rng.gauss(0, 1)))
        at = number * build.SECOND
        yield Slice(number, 0, at, at, at + HALF_NS, at + HALF_NS, ok, ok, 0, CPU_NS, 0, 0, 0)


def in_rounds(cell_id, block, rng):
    trial = Trial(cell_id, block, 0, 0, TrialRole.SUBJECT, Ok(), build.STARTED, build.STARTED)
    return replace(trial, slices=tuple(slices(rng, SPEEDS[cell_id])))


def read_with(study, more):
    plan, runs, subjects, records = study
    plan = replace(plan, design=replace(plan.design, rounds=5, whole_blocks=WHOLE))
    added = [TrialRecord(1000 + k, 1, trial) for k, trial in enumerate(more)]
    return read(plan, runs, subjects, [*records, *added])


@pytest.fixture(scope="module")
def reading(study):
    rng = Random(1)
    every = [in_rounds(cell, block, rng) for block in range(WHOLE, WHOLE + ALONE) for cell in SPEEDS]
    return read_with(study, every)


def test_throughput_rests_on_all_blocks_and_latencies_on_those_with_windows(reading):
    group = reading.groups[0]
    assert group.answer.blocks == WHOLE + ALONE
    for cell in group.cells:
        counts = {name: cell.known(name).count for name in ("ok_per_s", "service_ok_p50", "service_all_p50")}
        assert counts == {"ok_per_s": WHOLE + ALONE, "service_ok_p50": WHOLE, "service_all_p50": WHOLE}
        assert (cell.ok, cell.total) == (WHOLE + ALONE, WHOLE + ALONE)
        assert isinstance(cell.by_block[WHOLE]["service_ok_p50"], Missing)


def test_more_blocks_see_smaller_differences(study, reading):
    alone = read_with(study, ())
    assert reading.groups[0].power.difference < alone.groups[0].power.difference


def test_the_scatter_of_starts_and_rounds_is_that_of_all_blocks_that_have_them(reading):
    assert reading.groups[0].levels.rounds == 5


def test_what_windows_showed_is_as_without_the_rounds(study, reading):
    usual = read_with(study, ())
    mine, theirs = (one.groups[0].cells for one in (reading, usual))
    for one, other in zip(mine, theirs, strict=True):
        for name in ("steadiness", "account", "roles", "censored_from", "at_least", "unqualified"):
            assert getattr(one, name) == getattr(other, name)
    assert reading.limited == usual.limited
    assert reading.findings == usual.findings
    assert reading.order_effect == usual.order_effect


def test_a_bound_of_the_windows_is_the_bound_of_the_rounds(study, reading):
    usual = read_with(study, ())
    mine, theirs = ({one.name: one.rate_reach for one in each.groups[0].cells} for each in (reading, usual))
    assert mine == pytest.approx(theirs)


def test_a_disturbed_window_bounds_its_own_block_alone(study):
    plan, runs, subjects, records = study
    fault = Fault(FaultKind.OTHER_LOAD, share=0.25)
    trial = replace(records[1].trial, outcome=Invalid("others"), fault=fault, attempt=2)
    disturbed = (plan, runs, subjects, [*records, TrialRecord(900, 1, trial)])
    rng = Random(4)
    more = [in_rounds(cell, block, rng) for block in range(WHOLE, WHOLE + ALONE) for cell in SPEEDS]
    of = trial.cell_id - 1
    few, many = (read_with(disturbed, one).groups[0].cells[of].rate_reach for one in ((), more))
    assert few > 1.005
    assert many == pytest.approx(few ** (WHOLE / (WHOLE + ALONE)))


def test_blocks_beyond_the_planned_number_are_no_session_of_their_own(study):
    plan, *others = study
    found = read_with((replace(plan, blocks=2), *others), ())
    assert (found.sessions, found.blocks) == (1, WHOLE)
    assert found.groups[0].answer.leader


def test_the_report_says_how_many_blocks_had_rounds_alone(reading):
    text = re.sub(r"\[([^]]+)\]\(#[^)]+\)", r"\1", " ".join(markdown(study_report(reading)).split()))
    blocks = WHOLE + ALONE
    words = f"{3 * blocks} trials: 3 cells, each once in each of {blocks} blocks, {ALONE} of rounds alone"
    assert words in text
    assert f"of {WHOLE} of its {blocks} trials" in text
    extent = reading_json(reading)["extent"]
    assert (extent["blocks"], extent["blocks_of_rounds"], extent["limited"]["of"]) == (blocks, ALONE, 18)


def test_where_every_window_was_disturbed_rounds_have_its_bound(study):
    plan, runs, subjects, records = study
    fault = Fault(FaultKind.OTHER_LOAD, share=0.25)
    all_disturbed = [
        replace(one, trial=replace(one.trial, outcome=Invalid("others"), fault=fault)) for one in records
    ]
    rng = Random(5)
    more = [in_rounds(cell, WHOLE, rng) for cell in SPEEDS]
    few, many = (
        read_with((plan, runs, subjects, all_disturbed), one).groups[0].cells[0] for one in ((), more)
    )
    assert many.at_least
    assert many.rate_reach == pytest.approx(few.rate_reach)
    assert few.rate_reach > 1.04


def test_the_short_report_says_which_figures_are_without_rounds(study, reading):
    said = "blocks of rounds alone have no latency, err and MiB"
    assert said in " ".join(markdown(brief_report(reading)).split())
    assert said not in " ".join(markdown(brief_report(read_with(study, ()))).split())


def test_where_a_part_of_the_cpu_is_a_databases_rounds_say_nothing_of_it(study):
    plan, runs, subjects, records = study
    asked = {"asked.database.cpu_ns": CPU_NS}
    with_database = [
        replace(one, trial=replace(one.trial, counters={**one.trial.counters, **asked})) for one in records
    ]
    rng = Random(3)
    more = [in_rounds(cell, WHOLE, rng) for cell in SPEEDS]
    cell = read_with((plan, runs, subjects, with_database), more).groups[0].cells[0]
    assert cell.known("ok_per_s").count == WHOLE + 1
    assert isinstance(cell.by_block[WHOLE]["cpu_ns_per_request"], Missing)
    usual = read_with(study, more).groups[0].cells[0]
    assert usual.by_block[WHOLE]["cpu_ns_per_request"] > 0


def test_its_page_shows_a_window_where_it_shows_one_trial(study, reading):
    records = study[3]
    found = traces(reading, records, primary_cells(reading.groups))
    assert {one.median for one in found.picked.values()} <= set(found.trials)
    assert f"{ALONE}</data> of rounds alone" in page_of_study(reading, found)
