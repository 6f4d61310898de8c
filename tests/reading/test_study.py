"""Claims are held to the study's own trials, and subjects that were not measured are named."""

from dataclasses import replace

import pytest

from cells import cell_of
from golden import build
from prony.figures.claim_parts import ClaimVerdict
from prony.model.facts import Fingerprint, RunFacts
from prony.model.plan import Claim, ClaimKind, Design, Plan
from prony.model.recording import GeneratorMachine
from prony.model.trial import Invalid, Run, TrialRecord
from prony.reading.study import read

CELLS = cell_of("a+hello", number=1), cell_of("b+hello", number=2)
CLAIM = Claim("c", "a is the fastest", ClaimKind.HIGHEST, "ok_per_s", "a+*")


def reading(counts, left_out=None, margin=0.02):
    """A Reading of five blocks with so many replies of each cell, by number."""
    plan = Plan("shop", "Shop", "", "quick", CELLS, 5, 1, claims=(CLAIM,), design=Design(margin=margin))
    facts = RunFacts(left_out=left_out or {})
    run = Run(1, "1.0", 0, 1, build.RunStatus.FINISHED, Fingerprint(), facts)
    records = [
        TrialRecord(0, 1, build.trial(cell, block, 0, [1_000_000] * (counts[cell.id] + block * cell.id)))
        for block in range(5)
        for cell in CELLS
        if cell.id in counts
    ]
    return read(plan, (run,), {}, records)


@pytest.mark.parametrize(
    ("others", "verdict"), [(2000, "holds"), (2100, "cannot tell"), (2200, "does not hold")]
)
def test_a_claim_is_held_to_the_trials_whatever_is_of_interest_in_the_study(others, verdict):
    for margin in (0.02, 0.2):
        ((claim, result),) = reading({1: 2100, 2: others}, margin=margin).claims
        assert (claim, result.verdict, result.n) == (CLAIM, ClaimVerdict(verdict), 5)


def test_subjects_without_a_trial_are_named_with_the_reason_that_the_run_gives():
    assert reading({1: 2100, 2: 2000}).unmeasured == {}
    assert reading({1: 2100}).unmeasured == {"b+hello": "no trial was run"}
    told = {"2": "its generator is not here"}
    assert reading({1: 2100}, left_out=told).unmeasured == {"b+hello": "its generator is not here"}


@pytest.mark.parametrize(("first", "second", "found"), [(119, 0, []), (0, 119, [2]), (119, 119, [2])])
def test_findings_are_those_of_the_attempts_that_count(first, second, found):
    plan = Plan("shop", "Shop", "", "quick", CELLS, 2, 1)
    run = Run(1, "1.0", 0, 1, build.RunStatus.FINISHED, Fingerprint(), RunFacts())
    records = [
        TrialRecord(0, 1, _attempt(block, attempt, dropped))
        for block in range(2)
        for attempt, dropped in ((1, first), (2, second))
    ]
    findings = read(plan, (run,), {}, records).findings
    assert [one.trials for one in findings if one.finding.rule == "D01"] == found
    assert all(one.of == 2 for one in findings)


def test_a_generator_is_counted_in_the_last_attempt_at_each_trial():
    own = (GeneratorMachine("far-1", requests=10),)
    records = [
        TrialRecord(0, 1, replace(trial, recording=replace(trial.recording, machines=own)))
        for trial in (_attempt(block, attempt, 0) for block in range(2) for attempt in (1, 2))
    ]
    (found,) = read(Plan("shop", "Shop", "", "quick", CELLS[:1], 2, 1), (), {}, records).machines
    assert (found.name, found.trials, found.requests) == ("far-1", 2, 20)


def _attempt(block, attempt, dropped):
    counters = {"ListenOverflows": dropped, "ListenDrops": dropped}
    trial = build.trial(CELLS[0], block, 0, [1_000_000] * 2000, attempt=attempt, counters=counters)
    return trial if attempt > 1 else replace(trial, outcome=Invalid("steal"))
