"""What Prony's own parts cost: which surroundings are compared, and what is made of the trials."""

from collections import Counter
from dataclasses import replace
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden import build
from prony.archive import open_archive
from prony.figures.statistics.compare import Verdict
from prony.model.trial import Failed, Fault, FaultKind, Invalid, Ok
from prony.study.calibration.overheads import (
    METRICS,
    contrasts,
    figures_of,
    lost,
    measured_changes,
    setups,
    shuffled,
)

WORDS = {
    "bare": "a bare process",
    "namespace": "in a namespace",
    "group": "in a group",
    "unwatched": "not watched",
}


@pytest.fixture(scope="module")
def trial(tmp_path_factory):
    """A trial of a closed loop in which every request was answered."""
    with open_archive(build.closed_study(tmp_path_factory.mktemp("o") / "closed.prony")) as archive:
        return next(
            record.trial
            for record in archive.trials()
            if isinstance(record.trial.outcome, Ok) and None not in figures_of(record.trial).values()
        )


def column(*values):
    return [{"ok_per_s": value, "service_ok_p99": None if value is None else 1e9 / value} for value in values]


# --- the surroundings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own_network", "groups", "names", "expected"),
    [
        (True, True, ["bare", "namespace", "group", "unwatched"], 3),
        (True, False, ["bare", "namespace", "unwatched"], 2),
        (False, True, ["bare", "group", "unwatched"], 2),
        (False, False, ["bare", "unwatched"], 1),
    ],
)
def test_what_a_machine_does_not_offer_is_left_out(own_network, groups, names, expected):
    found = setups(own_network, groups)
    assert list(found) == names
    assert len(contrasts(found)) == expected


@pytest.mark.parametrize("own_network", [True, False])
@pytest.mark.parametrize("groups", [True, False])
def test_the_setups_of_a_contrast_differ_in_that_one_thing(own_network, groups):
    found = setups(own_network, groups)
    for one in contrasts(found):
        having, without = found[one.having], found[one.without]
        differ = {
            "the monitors": having.is_watched and not without.is_watched,
            "a network namespace": having.sandbox.network != without.sandbox.network,
            "a control group": having.sandbox.kind != without.sandbox.kind,
        }
        assert [name for name, differs in differ.items() if differs] == [one.name]


@given(st.integers(0, 2**63), st.integers(0, 30))
def test_each_block_has_every_setup_once_in_an_order_that_the_seed_repeats(seed, block):
    order = shuffled(WORDS, seed, block)
    assert Counter(order) == Counter(list(WORDS))
    assert order == shuffled(WORDS, seed, block)


def test_the_order_differs_between_blocks():
    assert len({tuple(shuffled(WORDS, 1, block)) for block in range(20)}) > 5


# --- what is made of the trials ---------------------------------------------------------------------------


def test_a_cost_is_the_change_with_it_against_without_it_in_pairs():
    # The machine drifts to half its speed; the monitors take a tenth in each block.
    without = [1000, 900, 800, 700, 500]
    bare = column(*(0.9 * one for one in without))
    found = measured_changes({"bare": bare, "unwatched": column(*without)}, WORDS)
    rate, tail = found
    assert (rate.name, rate.against, rate.metric, rate.blocks) == (
        "the monitors",
        "not watched",
        "ok_per_s",
        5,
    )
    assert rate.effect == pytest.approx(-0.1)
    assert rate.verdict == Verdict.LOWER.value
    assert tail.metric == "service_ok_p99"
    assert tail.effect == pytest.approx(1 / 0.9 - 1)


def test_no_difference_is_no_cost():
    values = [1000.0, 1010.0, 990.0, 1005.0, 1000.0, 1001.0, 998.0, 1002.0, 999.0, 1000.0]
    same = measured_changes({"bare": column(*values), "unwatched": column(*reversed(values))}, WORDS)[0]
    assert same.low < 0 < same.high
    assert same.verdict == Verdict.EQUIVALENT.value


def test_a_block_in_which_one_of_a_pair_does_not_count_is_left_out():
    found = measured_changes({"bare": column(1, None, 1, 1), "unwatched": column(2, 2, None, 2)}, WORDS)[0]
    assert (found.blocks, found.verdict) == (2, Verdict.TOO_FEW.value)
    assert found.effect == pytest.approx(-0.5)


def test_without_a_pair_there_is_no_figure():
    found = measured_changes({"bare": column(None), "unwatched": column(1)}, WORDS)[0]
    assert (found.blocks, found.effect, found.low) == (0, None, None)


def test_the_comparisons_share_one_error():
    figures = {name: column(*range(1000, 1010)) for name in WORDS}
    found = measured_changes(figures, WORDS)
    assert len(found) == 3 * len(METRICS)
    assert all(one.level <= 0.05 for one in found)
    assert min(one.level for one in found) == pytest.approx(0.05 / len(found))


def test_the_figures_of_a_trial_are_its_metrics(trial):
    found = figures_of(trial)
    assert list(found) == list(METRICS)
    assert log(found["ok_per_s"]) > 0


def test_a_trial_that_failed_or_lost_requests_has_no_figures(trial):
    account = replace(trial.recording.account, ok=trial.recording.account.ok // 2)
    spoilt = replace(trial, recording=replace(trial.recording, account=account))
    for one in (replace(trial, outcome=Failed("start", "x")), spoilt, replace(trial, recording=None)):
        assert set(figures_of(one).values()) == {None}


def test_what_was_lost_and_what_was_disturbed_is_told(trial):
    broken = replace(trial, outcome=Invalid("the generator: no port"))
    noisy = replace(trial, fault=Fault(FaultKind.STOLEN_TIME, share=0.09))
    told = lost({"bare": [trial, broken], "unwatched": [noisy, trial]}, WORDS)
    assert told == (
        "1 of 2 trials a bare process do not count: the generator: no port",
        "1 of 4 trials were disturbed: the hypervisor gave 9% of the CPUs' time to others",
    )
    assert lost({"bare": [trial]}, WORDS) == ()
