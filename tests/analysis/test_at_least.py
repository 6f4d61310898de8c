"""Where the generator was the limit, figures are bounds: what they cannot show is not said."""

import pytest

from prony.analysis.at_least import Bounded, Open, ends_of, heeded, is_at_least, open_end
from prony.analysis.compare import Verdict, compare
from prony.model import Limit, Limited, LimitKind

YES, SUSPECT = (Limit(LimitKind.BUSY, level, share=0.9) for level in (Limited.YES, Limited.SUSPECT))
NOISE = (0.0, 0.01, -0.01, 0.005, -0.005)
RATE, LATENCY, MEMORY = "ok_per_s", "response_ok_p99", "pss_end"
LIMITED = Verdict.LIMITED


def shifted(effect, noise=1.0):
    return compare([effect + noise * one for one in NOISE])


@pytest.mark.parametrize(
    ("trials", "expected"),
    [
        ([], False),
        ([None] * 5, False),
        ([YES, None, None, None, None], True),
        ([SUSPECT, SUSPECT, None, None], False),
        ([SUSPECT, SUSPECT, SUSPECT, None, None], True),
    ],
)
def test_a_figure_is_a_bound_by_one_certain_trial_or_by_most_that_are_suspect(trials, expected):
    assert is_at_least(trials) is expected


@pytest.mark.parametrize(
    ("metric", "effect", "bounded", "verdict"),
    [
        (RATE, -0.2, Bounded(second=True), LIMITED),
        (RATE, 0.2, Bounded(second=True), Verdict.HIGHER),
        (RATE, 0.2, Bounded(first=True), LIMITED),
        (RATE, -0.2, Bounded(first=True), Verdict.LOWER),
        (LATENCY, 0.2, Bounded(second=True), LIMITED),
        (LATENCY, -0.2, Bounded(second=True), Verdict.LOWER),
        (LATENCY, 0.2, Bounded(first=True), Verdict.HIGHER),
        (MEMORY, 0.2, Bounded(first=True, second=True), Verdict.HIGHER),
        (RATE, 0.2, Bounded(), Verdict.HIGHER),
    ],
)
def test_a_bound_is_never_worse_and_may_be_better(metric, effect, bounded, verdict):
    assert heeded(shifted(effect), metric, bounded).verdict is verdict


@pytest.mark.parametrize("bounded", [Bounded(first=True), Bounded(second=True)])
def test_a_bound_is_equivalent_to_nothing(bounded):
    found = shifted(0.0001, 0.1)
    assert found.verdict is Verdict.EQUIVALENT
    assert heeded(found, RATE, bounded).verdict is LIMITED


def test_two_bounds_say_nothing_of_each_other():
    both = Bounded(first=True, second=True)
    assert [heeded(shifted(effect), RATE, both).verdict for effect in (-0.2, 0.2)] == [LIMITED, LIMITED]


def test_blocks_do_not_decide_what_the_generator_limits():
    found = shifted(-0.03, 4)
    assert (found.verdict, found.blocks_needed is None) == (Verdict.NOT_SHOWN, False)
    heard = heeded(found, RATE, Bounded(second=True))
    assert (heard.verdict, heard.blocks_needed) == (LIMITED, None)


def test_a_pair_and_its_mirror_say_the_same():
    for effect in (-0.2, -0.001, 0.001, 0.2):
        one = heeded(shifted(effect), RATE, Bounded(second=True)).verdict is LIMITED
        other = heeded(shifted(-effect), RATE, Bounded(first=True)).verdict is LIMITED
        assert one is other


def test_few_blocks_stay_too_few():
    found = compare([-0.2, -0.21, -0.19])
    assert heeded(found, RATE, Bounded(second=True)).verdict is Verdict.TOO_FEW


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (RATE, Open(above=True)),
        (LATENCY, Open(below=True)),
        ("cpu_percent", Open(above=True)),
        ("error_ratio", Open(above=True)),
        (MEMORY, Open()),
    ],
)
def test_the_truth_lies_where_more_load_would_bring_the_figure(metric, expected):
    assert open_end(metric, at_least=True) == expected
    assert open_end(metric, at_least=False) == Open()


def test_a_ratio_is_open_where_either_of_its_figures_is():
    assert ends_of(RATE, Bounded(first=True)) == Open(above=True)
    assert ends_of(RATE, Bounded(second=True)) == Open(below=True)
    assert ends_of(RATE, Bounded(True, True)).widened((0.9, 1.1)) == (float("-inf"), float("inf"))
