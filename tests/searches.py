"""Searches for a rate, as Prony makes them, of simulated servers whose true rate is known.

A server answers with the p99 of a window of 10 s after 3 s of warm-up, or with failures alone. The truth is
the rate at which half of the trials without stalls meet the objective. A search begins at half of what the
server can carry, give or take 35 %.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from math import ceil, exp, inf, log

import numpy as np

from prony.figures.find_rate import found_rate, next_rate, next_test
from prony.model.facts import Fingerprint, FoundRate, RateStep, RunFacts
from prony.model.trial import Run, RunStatus
from prony.reading.saturation import Confirmed, confirmed_rates

FRESH = 5
STALLED = 0.1
CARRIES_PER_S = 500.0
_SERVICE_S = 1 / CARRIES_PER_S
_WINDOW_S, _WARMUP_S, _STALL_S = 10.0, 3.0, 0.3
_BOUNDARY_PER_S = 437.0

Answers = Callable[[np.random.Generator, float, float], float]
"""ln(figure / limit) of one trial, from a random source, a rate, and the chance of a stall."""


def _queue(rng, rate, stalls, *, limit_s, spread, at_random):
    """Return it for one queue with a constant service time, which differs from trial to trial."""
    count = int(rate * (_WARMUP_S + _WINDOW_S))
    gaps = rng.exponential(1 / rate, count) if at_random else np.full(count, 1 / rate)
    service = np.full(count, _SERVICE_S * exp(spread * rng.normal()))
    if rng.random() < stalls:
        service[rng.integers(count // 4, count)] += _STALL_S
    # Lindley's recursion, by sums.
    sums = np.concatenate(([0.0], np.cumsum(service[:-1] - gaps[1:])))
    times = (sums - np.minimum.accumulate(sums) + service)[np.cumsum(gaps) >= _WARMUP_S]
    place = ceil(0.99 * len(times)) - 1
    return log(float(np.partition(times, place)[place]) / limit_s)


def _step(rng, rate, stalls, *, spread):
    """Return it for a server that fails all above its boundary, which differs from trial to trial."""
    fails = rng.random() < stalls or rate >= _BOUNDARY_PER_S * exp(spread * rng.normal())
    return inf if fails else -inf


def _cliff(rng, rate, stalls, *, spread):
    """Return it for a server whose times are flat, a little below the limit, up to where they jump."""
    flat = log(0.8) + 0.03 * rng.normal()
    return flat if _step(rng, rate, stalls, spread=spread) < 0 else 2.0


def _answers(kind, **known) -> Answers:
    return lambda rng, rate, stalls: kind(rng, rate, stalls, **known)


CURVES = {
    "M/D/1": _answers(_queue, limit_s=0.010, spread=0.0, at_random=True),
    "M/D/1 + noise": _answers(_queue, limit_s=0.010, spread=0.03, at_random=True),
    "M/D/1, busy": _answers(_queue, limit_s=0.030, spread=0.0, at_random=True),
    "D/D/1 + noise": _answers(_queue, limit_s=0.010, spread=0.03, at_random=False),
    "step": _answers(_step, spread=0.02),
    "step, sharp": _answers(_step, spread=0.0),
    "cliff": _answers(_cliff, spread=0.02),
}


@cache
def truth(curve: str) -> float:
    """Return the rate at which half of the trials without stalls meet the objective."""
    rng, low, high = np.random.default_rng(0), 100.0, 1000.0
    for _ in range(12):
        middle = (low + high) / 2
        meets = np.mean([CURVES[curve](rng, middle, 0.0) < 0 for _ in range(400)])
        low, high = (middle, high) if meets > 0.5 else (low, middle)
    return low


def search(curve: str, stalls: float, rng: np.random.Generator) -> FoundRate:
    """Return what Prony finds of a server."""

    def tried(rate: float) -> RateStep:
        above = CURVES[curve](rng, rate, stalls)
        return RateStep(rate, above < 0, above=above if abs(above) < inf else None)

    steps: tuple[RateStep, ...] = ()
    fresh: tuple[RateStep, ...] = ()
    first = 0.5 * CARRIES_PER_S * exp(rng.uniform(-0.35, 0.35))
    while (rate := next_rate(steps, first, 1e6)) is not None:
        steps += (tried(rate),)
    while (rate := next_test(steps, fresh)) is not None:
        fresh += tuple(tried(rate) for _ in range(FRESH))
    return found_rate(curve, steps, fresh)


@cache
def searches(curve: str, stalls: float, count: int, seed: int) -> tuple[FoundRate, ...]:
    """Return so many searches."""
    rng = np.random.default_rng(seed)
    return tuple(search(curve, stalls, rng) for _ in range(count))


def rows(found) -> tuple[Confirmed, ...]:
    """Return the rows of a study that found these rates, each of a subject of its own."""
    named = tuple(replace(one, subject=f"s{k}") for k, one in enumerate(found))
    facts = RunFacts(found_rates=named)
    return confirmed_rates([Run(1, "1", 0, 1, RunStatus.FINISHED, Fingerprint(), facts)])


@dataclass(frozen=True)
class Quality:
    """Shares of searches of one server that came within 5 % of the truth, that have it in their interval, and
    whose rate most fresh trials met; and the mean number of their windows.
    """

    close: float
    covered: float
    confirmed: float
    windows: float


def quality(curve: str, stalls: float, count: int, seed: int) -> Quality:
    """Return how good so many searches are."""
    each, true = searches(curve, stalls, count, seed), truth(curve)
    ends = [one.boundary for one in each]
    return Quality(
        close=float(np.mean([abs(one.rate_per_s / true - 1) <= 0.05 for one in ends])),
        covered=float(np.mean([one.low_per_s <= true <= one.high_per_s for one in ends])),
        confirmed=float(np.mean([2 * one.met > one.of for one in each])),
        windows=float(np.mean([len(one.steps) + sum(test.of for test in one.tests) for one in each])),
    )


def told_apart(found, k: int, studies: int) -> float:
    """Return in which share of studies of ``k`` equal servers two have no letter in common; each study is
    drawn from these searches.
    """
    rng = np.random.default_rng(k)
    drawn = (rng.choice(len(found), k, replace=False) for _ in range(studies))
    studied = (rows([found[at] for at in places]) for places in drawn)
    return float(np.mean([any(one.letters not in ("", "a") for one in study) for study in studied]))
