"""Change points are the best there are, and windows are classified by what they hold."""

from dataclasses import replace
from itertools import combinations, pairwise
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden import build
from prony.figures.missing import Missing
from prony.figures.steady_state import Kind, classify, segments, steady_state
from prony.model.workload import ClosedLoop, DurationStop, OpenLoop, Workload
from recordings import with_parts

CLOSED = ClosedLoop(4)


def noisy(*levels, spread=0.005, seed=1):
    """Return a series of (length, level) with noise in proportion."""
    rng = np.random.default_rng(seed)
    return [float(level * (1 + spread * rng.normal())) for length, level in levels for _ in range(length)]


def test_a_flat_series_is_flat():
    found = classify(noisy((30, 1000)))
    assert (found.kind, found.segments[-1].start) == (Kind.FLAT, 0)


def test_a_slow_start_is_a_warm_up_that_spills_over():
    found = classify(noisy((5, 700), (25, 1000)))
    assert (found.kind, found.segments[-1].start) == (Kind.WARM_UP, 5)


def test_a_dip_that_is_made_good_is_a_warm_up():
    assert classify(noisy((5, 1000), (5, 600), (20, 1000))).kind is Kind.WARM_UP


def test_a_last_level_below_an_earlier_one_is_a_slowdown():
    found = classify(noisy((10, 1000), (20, 800)))
    assert (found.kind, found.segments[-1].start) == (Kind.SLOWDOWN, 10)


def test_a_change_in_the_second_half_leaves_no_steady_state():
    assert classify(noisy((20, 1000), (10, 1200))).kind is Kind.NONE
    assert len(classify(noisy((20, 1000), (10, 1200))).segments) == 2


def test_levels_within_one_per_cent_are_one():
    assert classify(noisy((15, 1000), (15, 1008), spread=0.0005)).kind is Kind.FLAT
    assert classify(noisy((15, 1000), (15, 1030), spread=0.0005)).kind is Kind.WARM_UP


def test_the_segments_are_in_order_and_cover_the_window():
    found = classify(noisy((8, 500), (8, 900), (14, 1000)))
    assert [(one.start, one.end) for one in found.segments] == [(0, 8), (8, 16), (16, 30)]


def test_counters_that_repeat_exactly_have_no_changes_but_real_ones():
    assert classify([550.0] * 30).kind is Kind.FLAT
    assert classify([550.0, 551.0] * 15).kind is Kind.FLAT
    assert classify([0.0] * 10).kind is Kind.FLAT


def cost(pace, marks, variance):
    parts = [np.asarray(pace[a:b]) for a, b in pairwise(marks)]
    return sum(((part - part.mean()) ** 2).sum() for part in parts) / variance + 3 * log(len(pace)) * (
        len(parts) - 1
    )


@given(st.lists(st.integers(50, 150).map(float), min_size=6, max_size=14))
def test_no_other_partition_is_better(pace):
    from prony.figures.steady_state import _variance

    found = segments(pace)
    marks = [0, *(one.end for one in found)]
    assert all(one.end - one.start >= 3 for one in found)
    others = (
        [0, *middle, len(pace)]
        for count in range(len(pace) // 3)
        for middle in combinations(range(3, len(pace) - 2), count)
    )
    allowed = [other for other in others if min(np.diff(other)) >= 3]
    variance = _variance(pace)
    best = min(cost(pace, other, variance) for other in allowed)
    assert cost(pace, marks, variance) == pytest.approx(best)


def persistent(seconds, correlation, rng, normal=True):
    """Return a stationary series whose neighbours are so correlated, with a spread of 5 %."""
    shocks = rng.normal(size=seconds) if normal else rng.standard_t(3, size=seconds) / 3**0.5
    values = [shocks[0]]
    for shock in shocks[1:]:
        values.append(correlation * values[-1] + (1 - correlation**2) ** 0.5 * shock)
    return [float(1000 * np.exp(0.05 * value)) for value in values]


@pytest.mark.parametrize("normal", [True, False], ids=["normal", "heavy tails"])
@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.5])
@pytest.mark.parametrize("seconds", [6, 10, 30])
def test_noise_alone_is_seldom_taken_for_a_change(seconds, correlation, normal):
    rng = np.random.default_rng(1)
    found = [classify(persistent(seconds, correlation, rng, normal)).kind for _ in range(400)]
    assert sum(kind is not Kind.FLAT for kind in found) / 400 <= 0.05


def test_one_stalled_second_is_no_change_of_level():
    rng = np.random.default_rng(1)
    for stalled in range(6):
        pace = persistent(6, 0.3, rng)
        pace[stalled] *= 0.05
        assert classify(pace).kind is Kind.FLAT


def test_half_the_pace_in_the_first_half_of_a_short_window_is_found():
    found = [classify(noisy((3, 500), (3, 1000), spread=0.05, seed=seed)).kind for seed in range(200)]
    assert sum(kind is Kind.WARM_UP for kind in found) / 200 >= 0.9


def test_a_change_of_five_times_the_noise_is_nearly_always_found():
    levels = ((10, 900), (20, 1000))
    found = [classify(noisy(*levels, spread=0.02, seed=seed)).kind for seed in range(200)]
    assert sum(kind is Kind.WARM_UP for kind in found) / 200 >= 0.9


# --- from a Recording -------------------------------------------------------------------------------------


def recorded(workload, per_second, latency_ms=None):
    """A Recording whose series has so many replies each second, with this median latency."""
    ok = [1_000_000] * sum(per_second)
    found = build.recording(workload, ok)
    milliseconds = latency_ms or [1.0] * len(per_second)
    series = [
        {
            "second": k,
            "scheduled": n,
            "ok": n,
            "failed": 0,
            "body_bytes": 0,
            "latency": build.distribution([int(ms * 1e6)] * n),
        }
        for k, (n, ms) in enumerate(zip(per_second, milliseconds, strict=True))
    ]
    return with_parts(found, series=series)


def seconds(count, loop=CLOSED):
    return Workload(loop, DurationStop(count * build.SECOND))


def test_a_closed_loop_is_read_by_its_throughput():
    assert steady_state(recorded(seconds(12), [50] * 4 + [100] * 8)).kind is Kind.WARM_UP


def test_an_open_loop_is_read_by_its_latency():
    workload = seconds(12, OpenLoop(100))
    found = steady_state(recorded(workload, [100] * 12, [5.0] * 4 + [1.0] * 8))
    assert (found.kind, found.segments[-1].start) == (Kind.WARM_UP, 4)
    assert steady_state(recorded(workload, [100] * 12, [1.0] * 6 + [5.0] * 6)).kind is Kind.SLOWDOWN


def test_a_generator_that_tells_no_seconds_tells_no_pace():
    found = steady_state(replace(recorded(seconds(8), [100] * 8), series=()))
    assert found == Missing("its generator records no figures of single seconds")


def test_seconds_after_the_window_do_not_count():
    assert steady_state(recorded(seconds(8), [100] * 8 + [3, 1])).kind is Kind.FLAT


def test_a_short_window_cannot_tell():
    found = steady_state(recorded(seconds(5), [100] * 5))
    assert found == Missing("the window has 5 whole seconds; a change shows from 6 on")


def test_seconds_without_a_reply_have_no_latency():
    found = steady_state(recorded(seconds(8, OpenLoop(100)), [100] * 7 + [0]))
    assert found == Missing("no valid reply in 1 of 8 seconds")


def test_a_stalled_second_of_a_closed_loop_is_one_without_throughput():
    assert steady_state(recorded(seconds(12), [100] * 6 + [0] * 6)).kind is Kind.SLOWDOWN


def test_without_load_there_is_nothing_to_tell():
    assert steady_state(None) == Missing("there was no load")
