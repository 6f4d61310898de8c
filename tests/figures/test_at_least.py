"""Where the generator was the limit, figures are bounds: what they cannot show is not said."""

from dataclasses import replace
from math import inf

import pytest

from prony.figures.at_least import Bounded, Open, ends_of, heeded, is_at_least, open_end, rate_reach
from prony.figures.statistics.compare import Verdict, compare
from prony.model.limit import Limit, Limited, LimitKind

YES, SUSPECT = (Limit(LimitKind.BUSY, level, share=0.9) for level in (Limited.YES, Limited.SUSPECT))
NOISE = (0.0, 0.01, -0.01, 0.005, -0.005)
RATE, LATENCY, MEMORY = "ok_per_s", "response_ok_p99", "pss_end"
LIMITED = Verdict.LIMITED
BAR = 0.02


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
        (RATE, -0.2, Bounded(second=inf), LIMITED),
        (RATE, 0.2, Bounded(second=inf), Verdict.HIGHER),
        (RATE, 0.2, Bounded(first=inf), LIMITED),
        (RATE, -0.2, Bounded(first=inf), Verdict.LOWER),
        (LATENCY, 0.2, Bounded(second=inf), LIMITED),
        (LATENCY, -0.2, Bounded(second=inf), Verdict.LOWER),
        (LATENCY, 0.2, Bounded(first=inf), Verdict.HIGHER),
        (MEMORY, 0.2, Bounded(first=inf, second=inf), Verdict.HIGHER),
        (RATE, 0.2, Bounded(), Verdict.HIGHER),
    ],
)
def test_a_bound_is_never_worse_and_may_be_better(metric, effect, bounded, verdict):
    assert heeded(shifted(effect), metric, bounded, BAR).verdict is verdict


@pytest.mark.parametrize("bounded", [Bounded(first=inf), Bounded(second=inf)])
def test_a_bound_is_equivalent_to_nothing(bounded):
    found = shifted(0.0001, 0.1)
    assert found.verdict is Verdict.EQUIVALENT
    assert heeded(found, RATE, bounded, BAR).verdict is LIMITED


def test_two_bounds_say_nothing_of_each_other():
    both = Bounded(first=inf, second=inf)
    assert [heeded(shifted(effect), RATE, both, BAR).verdict for effect in (-0.2, 0.2)] == [LIMITED, LIMITED]


def test_a_verdict_stands_that_holds_for_the_best_that_a_bound_may_be():
    found = shifted(-0.2)  # an interval of some 2 % around 0.82
    reaches = (1.05, 1.15, 1.22, 1.3, inf)
    verdicts = [heeded(found, RATE, Bounded(second=reach), BAR).verdict for reach in reaches]
    assert verdicts == [Verdict.LOWER, Verdict.LOWER, LIMITED, LIMITED, LIMITED]


def test_what_waits_have_taken_from_a_throughput_is_no_more_than_their_share():
    waited = Limit(LimitKind.KEPT_WAITING, Limited.YES, share=0.2)
    late = Limit(LimitKind.LATE, Limited.YES, lag_ns=1)
    assert rate_reach([]) == 1.0
    assert rate_reach([late, waited]) == 1.25
    assert rate_reach([waited, SUSPECT]) == inf
    assert rate_reach([Limit(LimitKind.KEPT_WAITING, share=1.0)]) == inf


def test_blocks_do_not_decide_what_the_generator_limits():
    found = shifted(-0.03, 4)
    assert found.verdict is Verdict.NOT_SHOWN
    assert heeded(found, RATE, Bounded(second=inf), BAR) == replace(found, verdict=LIMITED)


def test_a_pair_and_its_mirror_say_the_same():
    for effect in (-0.2, -0.001, 0.001, 0.2):
        one = heeded(shifted(effect), RATE, Bounded(second=inf), BAR).verdict is LIMITED
        other = heeded(shifted(-effect), RATE, Bounded(first=inf), BAR).verdict is LIMITED
        assert one is other


def test_few_blocks_stay_too_few():
    found = compare([-0.2, -0.21, -0.19])
    assert heeded(found, RATE, Bounded(second=inf), BAR).verdict is Verdict.TOO_FEW


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (RATE, Open(above=inf)),
        (LATENCY, Open(below=inf)),
        ("cpu_percent", Open(above=inf)),
        ("error_ratio", Open(above=inf)),
        (MEMORY, Open()),
    ],
)
def test_the_truth_lies_where_more_load_would_bring_the_figure(metric, expected):
    assert open_end(metric, at_least=True) == expected
    assert open_end(metric, at_least=False) == Open()


def test_a_part_of_a_figure_is_open_by_the_same_part_of_its_logarithm():
    ends = Open(below=4.0, above=inf)
    assert (ends**0.5, ends**0) == (Open(below=2.0, above=inf), Open())


def test_a_ratio_is_open_where_either_of_its_figures_is():
    assert ends_of(RATE, Bounded(first=inf)) == Open(above=inf)
    assert ends_of(RATE, Bounded(second=inf)) == Open(below=inf)
    assert ends_of(RATE, Bounded(inf, inf)).widened((0.9, 1.1)) == (-inf, inf)


def test_a_ratio_is_open_by_no_more_than_its_figures_may_be_better():
    ends = ends_of(RATE, Bounded(first=1.25, second=2.0))
    assert ends == Open(below=2.0, above=1.25)
    assert ends.widened((0.8, 1.0)) == (0.4, 1.25)
    assert ends_of(MEMORY, Bounded(first=1.25)) == Open()
