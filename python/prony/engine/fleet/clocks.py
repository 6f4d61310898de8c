"""How far another machine's clock is from this one's: from probes, with a bound that holds.

A probe reads the other clock between two readings of this one. It was read at some moment in between, so the
offset is known to within half the round trip, whatever each way took. Pure.

>>> probes = [Probe(sent_ns=1_000, received_ns=1_400, remote_ns=51_200)]
>>> offset_at(probes, 1_200)
Offset(ns=50000, bound_ns=202)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

MOST_DRIFT_PPM = 500
"""The most that CLOCK_MONOTONIC of two machines may drift apart: what `adjtimex` lets a clock be slewed."""

_MILLION = 1_000_000
# Each reading is rounded down to a nanosecond, and so is the drift.
_ROUNDING = 1


@dataclass(frozen=True, slots=True)
class Probe:
    """The other clock read between two readings of this one: CLOCK_MONOTONIC of both machines."""

    sent_ns: int
    received_ns: int
    remote_ns: int

    @property
    def round_trip_ns(self) -> int:
        """From the first reading to the second."""
        return self.received_ns - self.sent_ns


@dataclass(frozen=True, slots=True)
class Offset:
    """By how much the other clock is ahead of this one, to within ``bound_ns`` either way."""

    ns: int
    bound_ns: int


@dataclass(frozen=True, slots=True)
class ClockDrift:
    """By how much the other clock gains on this one: at least and at most so many parts in a million."""

    low_ppm: float
    high_ppm: float


def offset_at(probes: Sequence[Probe], at_ns: int) -> Offset | None:
    """Return the offset at a moment of this clock; None without a probe, or where they contradict each other.

    *Definition*: a probe that was sent at s, received at r and read w bounds the offset by [w - r, w - s] at
    its time; at t it is wider on both sides by the drift times the distance from t to the farther of s and
    r. All hold at once, so the offset lies where they overlap: the middle of that is returned, and half its
    width.

    *Assumptions*: the clocks drift apart by at most MOST_DRIFT_PPM, and neither jumps; a machine that was
    suspended contradicts itself. That the ways take equally long is not assumed.
    """
    bounds = [_bounds(probe, at_ns) for probe in probes]
    low = max((low for low, _ in bounds), default=1)
    high = min((high for _, high in bounds), default=0)
    if low > high:
        return None
    return Offset((low + high) // 2, (high - low + 1) // 2)


def _bounds(probe: Probe, at_ns: int) -> tuple[int, int]:
    # Within the round trip it is not known when the clock was read: the farther end counts.
    age_ns = max(abs(at_ns - probe.sent_ns), abs(at_ns - probe.received_ns))
    wider_ns = -(-age_ns * MOST_DRIFT_PPM // _MILLION) + _ROUNDING
    return probe.remote_ns - probe.received_ns - wider_ns, probe.remote_ns - probe.sent_ns + wider_ns


def drift_of(probes: Sequence[Probe]) -> ClockDrift | None:
    """Return the drift between the first probes and the last; None where they do not bound it.

    *Definition*: of two probes that bound the offset by [a, b] and [c, d] it changed by c - b to d - a
    between their readings, which are apart by the other clock's time.

    *Assumptions*: the drift is the same all the time.
    """
    slopes = list(_slopes(probes))
    low = max((low for low, _ in slopes), default=1.0)
    high = min((high for _, high in slopes), default=0.0)
    return ClockDrift(low, high) if low <= high else None


# Pairs of the best probes only: all pairs of an hour of them would take minutes.
_BEST = 40


def _slopes(probes: Sequence[Probe]) -> Iterator[tuple[float, float]]:
    best = sorted(sorted(probes, key=lambda probe: probe.round_trip_ns)[:_BEST], key=_remote)
    for first, last in combinations(best, 2):
        apart_ns = last.remote_ns - first.remote_ns
        if apart_ns <= 0:
            continue
        least = (last.remote_ns - last.received_ns) - (first.remote_ns - first.sent_ns) - _ROUNDING
        most = (last.remote_ns - last.sent_ns) - (first.remote_ns - first.received_ns) + _ROUNDING
        yield least / apart_ns * _MILLION, most / apart_ns * _MILLION


def _remote(probe: Probe) -> int:
    return probe.remote_ns
