"""Sessions count once each: variance within and between, a range below five, then intervals over days."""

from dataclasses import replace

import numpy as np
import pytest

from prony.analysis.across_sessions import SessionFigures, across
from prony.analysis.compare import Terms, Verdict, compare_all
from prony.metrics import Better

TERMS = Terms()


def sessions_of(rng, means, sessions, blocks=5, noise=0.01, day=0.0):
    """Sessions in which each subject has `noise` in a trial, and a deviation of its own on each `day`."""
    found = []
    for _ in range(sessions):
        own = np.log(means) + day * rng.normal(size=len(means))
        table = own + 0.05 * rng.normal(size=(blocks, 1)) + noise * rng.normal(size=(blocks, len(means)))
        logs = {f"s{k}": dict(enumerate(table[:, k].tolist())) for k in range(len(means))}
        found.append(SessionFigures(logs, compare_all(logs, TERMS)))
    return found


def over(found, leaders=None):
    return across(found, leaders or ["s0"] * len(found), Better.HIGHER, TERMS)


def test_fewer_than_five_sessions_have_a_range_and_no_interval():
    found = over(sessions_of(np.random.default_rng(1), [1.0, 0.8], 4))
    (ratio,) = (row.ratio for row in found.rows if row.ratio)
    assert (ratio.low, ratio.high, ratio.verdict) == (None, None, None)
    assert ratio.least <= ratio.effect <= ratio.most
    assert ratio.least == pytest.approx(-0.2, abs=0.03)


def test_five_sessions_have_an_interval_and_a_verdict():
    (_, second) = over(sessions_of(np.random.default_rng(1), [1.0, 0.8], 5)).rows
    assert second.ratio.verdict is Verdict.LOWER
    assert second.ratio.low < second.ratio.effect < second.ratio.high < -0.02


def test_fewer_than_five_sessions_have_no_leader_and_no_letters():
    found = over(sessions_of(np.random.default_rng(1), [1.0, 0.8], 4))
    assert (found.leader, found.decided, found.ties) == (None, False, ())
    assert [row.letters for row in found.rows] == ["", ""]


def test_over_five_sessions_those_that_are_not_separated_from_the_leader_are_its_ties():
    found = over(sessions_of(np.random.default_rng(1), [1.0, 1.0, 0.8], 5, day=0.02))
    first, second, third = (row.name for row in found.rows)
    assert (found.leader, found.ties, third) == (first, (second,), "s2")
    assert [row.letters for row in found.rows] == ["a", "a", "b"]


def test_a_subject_with_too_few_sessions_does_not_lead_and_has_no_letter():
    sessions = sessions_of(np.random.default_rng(1), [1.0, 0.8], 6)
    fewer = [replace(one, logs={"s1": one.logs["s1"]}, pairs={}) for one in sessions[:2]]
    found = over(fewer + sessions[2:])
    assert [(row.name, row.letters, row.sessions) for row in found.rows] == [("s1", "", 6), ("s0", "", 4)]
    assert (found.leader, found.decided, found.ties) == (None, False, ())


def test_one_with_too_few_sessions_is_in_no_pair_of_those_that_have_enough():
    sessions = sessions_of(np.random.default_rng(1), [1.0, 0.8, 1.2], 6)
    two = [replace(one, logs={name: one.logs[name] for name in ("s0", "s1")}) for one in sessions[:2]]
    found = over(two + sessions[2:])
    assert [(row.name, row.letters, row.sessions) for row in found.rows] == [
        ("s0", "a", 6),
        ("s1", "b", 6),
        ("s2", "", 4),
    ]
    assert (found.leader, found.ties) == ("s0", ())


def test_one_that_lacks_a_session_leads_where_it_is_shown_to_be_better():
    sessions = sessions_of(np.random.default_rng(1), [1.0, 0.8], 6)
    found = over([replace(sessions[0], logs={"s1": sessions[0].logs["s1"]}), *sessions[1:]])
    assert [(row.name, row.sessions) for row in found.rows] == [("s0", 5), ("s1", 6)]
    assert (found.leader, found.ties) == ("s0", ())


def test_the_spread_of_trials_and_that_of_sessions_are_kept_apart():
    found = over(sessions_of(np.random.default_rng(2), [1.0, 1.0], 400, noise=0.02, day=0.1))
    for row in found.rows:
        # Within: noise and the drift that blocks share.
        assert row.within == pytest.approx(np.hypot(0.02, 0.05), rel=0.1)
        assert row.between == pytest.approx(0.1, rel=0.15)
    assert found.rows[1].ratio.between == pytest.approx(0.1 * 2**0.5, rel=0.15)
    # What blocks show and no more: intervals are wider, for what few blocks cannot show.
    assert found.rows[1].ratio.within == pytest.approx(0.02 * (2 / 5) ** 0.5, rel=0.1)


def test_without_days_there_is_nothing_between_sessions():
    found = over(sessions_of(np.random.default_rng(3), [1.0, 1.0], 400, noise=0.02))
    assert found.rows[1].ratio.between <= 0.004


def test_where_days_differ_one_session_misses_the_truth_that_intervals_over_sessions_cover():
    rng, studies = np.random.default_rng(4), 300
    single = pooled = 0
    for _ in range(studies):
        found = sessions_of(rng, [1.0, 1.0, 1.0], 5, day=0.05)
        single += any(one.low > 0 or one.high < 0 for one in found[0].pairs.values())
        ratios = [row.ratio for row in over(found).rows if row.ratio]
        pooled += any(ratio.low > 0 or ratio.high < 0 for ratio in ratios)
    assert single / studies > 0.5
    assert pooled / studies <= 0.05 + 3 * (0.05 * 0.95 / studies) ** 0.5


def test_verdicts_that_are_not_the_same_in_every_session_are_named():
    rng = np.random.default_rng(5)
    calm, turned = sessions_of(rng, [1.0, 0.8], 1), sessions_of(rng, [0.8, 1.0], 1)
    found = over([*calm, *calm, *turned], ["s0", "s0", "s1"])
    assert found.leader_changes
    assert found.rows[1].ratio.changes
    assert not over([*calm, *calm]).rows[1].ratio.changes


def test_a_subject_that_is_missing_in_a_session_has_no_value_there_and_comes_after_the_others():
    found = sessions_of(np.random.default_rng(6), [1.0, 2.0], 3)
    del found[1].logs["s1"]
    shown = over(found)
    assert [row.name for row in shown.rows] == ["s0", "s1"]
    assert shown.rows[1].values[1] is None


def test_one_subject_is_compared_with_nobody():
    found = over(sessions_of(np.random.default_rng(7), [1.0], 3))
    assert [row.ratio for row in found.rows] == [None]
