"""Sessions count once each: variance within and between, a range below five, then intervals over days."""

from dataclasses import replace

import numpy as np
import pytest

from cells import cell_of, measured
from prony.figures.across_sessions import over_rows
from prony.figures.answer import answer
from prony.figures.by_session import in_sessions
from prony.figures.statistics.compare import Terms, Verdict, compare_all

TERMS = Terms(by_session=True)


def sessions_of(rng, means, sessions, blocks=5, noise=0.01, day=0.0):
    """Tables of logarithms: each subject has `noise` in a trial, and a deviation of its own on each `day`."""
    return [
        np.log(means)
        + day * rng.normal(size=len(means))
        + 0.05 * rng.normal(size=(blocks, 1))
        + noise * rng.normal(size=(blocks, len(means)))
        for _ in range(sessions)
    ]


def within(table):
    return compare_all({f"s{k}+hello": dict(enumerate(values)) for k, values in enumerate(table.T.tolist())})


def cells_of(tables, absent=()):
    """Cells of subjects in these sessions; ``absent``: in which sessions each of them has no figure."""
    found, blocks = [], len(tables[0])
    for k in range(tables[0].shape[1]):
        lacking = absent[k] if k < len(absent) else ()
        values = np.exp(np.concatenate([table[:, k] for table in tables])).tolist()
        cell = measured(cell_of(f"s{k}+hello", number=k + 1), ok_per_s=values)
        dated = (replace(one, session=one.block // blocks) for one in cell.counted)
        found.append(replace(cell, counted=tuple(one for one in dated if one.session not in lacking)))
    return in_sessions(found)


def over(tables, absent=()):
    cells = cells_of(tables, absent)
    return over_rows(answer(cells, TERMS), cells, [within(table) for table in tables], {})


def test_fewer_than_five_sessions_have_a_range_and_no_interval():
    _, second = over(sessions_of(np.random.default_rng(1), [1.0, 0.8], 4))
    found = second.ratio.over
    assert (found.low, found.high, found.verdict) == (None, None, Verdict.TOO_FEW_SESSIONS)
    assert found.least <= found.effect <= found.most
    assert found.least == pytest.approx(-0.2, abs=0.03)


def test_five_sessions_have_an_interval_and_a_verdict():
    _, second = over(sessions_of(np.random.default_rng(1), [1.0, 0.8], 5))
    found = second.ratio.over
    assert found.verdict is Verdict.LOWER
    assert found.low < found.effect < found.high < -0.02


def test_one_with_too_few_sessions_comes_last_and_is_compared_with_nobody():
    found = over(sessions_of(np.random.default_rng(1), [1.0, 0.8, 1.2], 6), [(), (), (0, 1)])
    assert [(row.name, row.sessions, row.ratio is None) for row in found] == [
        ("s0+hello", 6, True),
        ("s1+hello", 6, False),
        ("s2+hello", 4, True),
    ]
    assert found[2].values[1] is None


def test_the_spread_of_trials_and_that_of_sessions_are_kept_apart():
    found = over(sessions_of(np.random.default_rng(2), [1.0, 1.0], 200, noise=0.02, day=0.1))
    for row in found:
        # Within: noise and the drift that blocks share.
        assert row.within == pytest.approx(np.hypot(0.02, 0.05), rel=0.1)
        assert row.between == pytest.approx(0.1, rel=0.15)
    assert found[1].ratio.between == pytest.approx(0.1 * 2**0.5, rel=0.15)
    # What blocks show and no more: intervals are wider, for what few blocks cannot show.
    assert found[1].ratio.within == pytest.approx(0.02 * (2 / 5) ** 0.5, rel=0.1)


def test_without_days_there_is_nothing_between_sessions():
    found = over(sessions_of(np.random.default_rng(3), [1.0, 1.0], 200, noise=0.02))
    assert found[1].ratio.between <= 0.004


def test_where_days_differ_one_session_misses_the_truth_that_intervals_over_sessions_cover():
    rng, studies = np.random.default_rng(4), 300
    single = pooled = 0
    for _ in range(studies):
        tables = sessions_of(rng, [1.0, 1.0, 1.0], 5, day=0.05)
        single += any(one.low > 0 or one.high < 0 for one in within(tables[0]).values())
        figures = {f"s{k}": {n: t[:, k].mean() for n, t in enumerate(tables)} for k in range(3)}
        found = compare_all(figures, TERMS).values()
        pooled += any(one.low > 0 or one.high < 0 for one in found)
    assert single / studies > 0.5
    assert pooled / studies <= 0.05 + 3 * (0.05 * 0.95 / studies) ** 0.5


def test_verdicts_that_are_not_the_same_in_every_session_are_named():
    rng = np.random.default_rng(5)
    calm, turned = sessions_of(rng, [1.0, 0.8], 1), sessions_of(rng, [0.8, 1.0], 1)
    first, second = over([*calm, *calm, *turned])
    assert second.ratio.changes
    assert first.values[0] == first.values[1] != first.values[2]
    assert not over([*calm, *calm])[1].ratio.changes


def test_one_subject_is_compared_with_nobody():
    found = over(sessions_of(np.random.default_rng(7), [1.0], 3))
    assert [row.ratio for row in found] == [None]
