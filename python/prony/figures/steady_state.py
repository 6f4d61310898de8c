"""How the pace of one window developed: change points on its 1-s series. Whether a subject is steady shows
over its trials (`steadiness`).

>>> found = classify([50.0] * 4 + [100.0, 101.0, 99.0, 100.0, 100.5, 99.5, 100.0, 101.0])
>>> found.kind, found.segments[-1].start
(<Kind.WARM_UP: 'warm-up'>, 4)

>>> warm_after([50, 70, 85, 95, 100, 101, 99, 100, 100, 101, 99, 100], 0.02)
4
>>> warm_after([50, 60, 70, 80, 90, 100], 0.02) is None
True
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from math import fsum, log, sqrt
from statistics import fmean, median
from typing import TYPE_CHECKING

from prony.core.units import SECOND_NS
from prony.figures.latency import read_distribution
from prony.figures.missing import Missing
from prony.figures.statistics.effects import student_t
from prony.model.facts import PilotStep
from prony.model.json_codec import at
from prony.model.recording import Account, Distribution, Recording, Second
from prony.model.trial import Trial

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LEAST_SEGMENT = 3
# Two segments of the least length: with fewer seconds no change can be found.
_LEAST_SECONDS = 2 * _LEAST_SEGMENT
_LEAST_PACES = 2
_NO_LOAD = "there was no load"
# Shares of fewer requests are so coarse that several trials often have the same ones.
_LEAST_DUE = 10
_ALIKE = 0.01
# The chance that noise alone looks like a change.
_LEVEL = 0.05
# Neighbouring seconds are correlated: at a correlation of 0.6 their means vary sqrt(1.6 / 0.4) times as
# much as those of as many independent ones.
_PERSISTENCE = 2.0
_LONG_ENOUGH = 0.5
# Standard deviation over median absolute deviation of a normal, and of the difference of two.
_DEVIATION = 1.4826 / 2**0.5
# Counters repeat exactly, and with a spread of zero every unit would be a change.
_LEAST_DEVIATION = 0.001


Paces = Mapping[str, Sequence[float]]
"""The paces of a window by measure, one for each second; more is better."""


class Kind(StrEnum):
    """How the pace of a server developed over the window (Barrett et al. 2017)."""

    FLAT = "flat"
    WARM_UP = "warm-up"
    SLOWDOWN = "slowdown"
    NONE = "no steady state"


@dataclass(frozen=True, slots=True)
class Segment:
    """Seconds [start, end) of the window with one level."""

    start: int = field(metadata=at("start_s"))
    end: int = field(metadata=at("end_s"))
    mean: float


@dataclass(frozen=True, slots=True)
class SteadyState:
    """The kind, and its segments."""

    kind: Kind
    segments: tuple[Segment, ...] = field(metadata=at("levels"))


def steady_state(recording: Recording | None) -> SteadyState | Missing:
    """Return how a trial's pace developed over its window, or why that is unknown.

    *Definition*: on the whole seconds of the window, valid replies per second; in an open loop, where the
    arrivals set these, 1 / the median latency of each second.
    *Errors*: Missing when the generator records no seconds, the window has fewer than 6 whole ones, or, in an
    open loop, one of them no reply.
    """
    pace = pace_of(recording)
    if isinstance(pace, Missing):
        return pace
    if len(pace) < _LEAST_SECONDS:
        return Missing(f"the window has {len(pace)} whole seconds; a change shows from {_LEAST_SECONDS} on")
    return classify(pace)


def pace_of(recording: Recording | None) -> Sequence[float] | Missing:
    """Return what shows best how a server's pace developed, for each whole second: the rate in a closed loop,
    the latency in an open one; or why it is unknown.
    """
    if recording is None:
        return Missing(_NO_LOAD)
    rows = _whole_seconds(recording)
    if isinstance(rows, Missing):
        return rows
    return _latencies(rows) if recording.is_open else _rates(rows)


def paces_of(recording: Recording | None) -> Paces | Missing:
    """Return a window's paces by measure, one for each whole second, or why they are unknown.

    *Definition*: `rate`, in a closed loop: valid replies per second. `latency`: 1 / the median latency of the
    valid replies of each second, where each second has one. `share`, in an open loop, whose arrivals set the
    rate: of the requests due in each second, the part that got a valid reply, whenever it came.
    *Errors*: Missing when the generator records no seconds, the window has fewer than 2 whole ones, or, in an
    open loop, neither measure is known.
    """
    if recording is None:
        return Missing(_NO_LOAD)
    rows = _whole_seconds(recording)
    if isinstance(rows, Missing):
        return rows
    found = (
        {"latency": _latencies(rows), "share": _shares(recording.account, rows)}
        if recording.is_open
        else {"rate": _rates(rows), "latency": _latencies(rows)}
    )
    known = {name: values for name, values in found.items() if not isinstance(values, Missing)}
    return known or Missing("; ".join(one.reason for one in found.values() if isinstance(one, Missing)))


def _whole_seconds(recording: Recording) -> list[Second] | Missing:
    if not recording.series:
        return Missing("its generator records no figures of single seconds")
    whole = int(recording.window.duration_s or 0)
    rows = [row for row in recording.series if row.second < whole]
    if len(rows) < _LEAST_PACES:
        return Missing(f"the window has {len(rows)} whole seconds; expected {_LEAST_PACES}")
    return rows


def _rates(rows: Sequence[Second]) -> list[float]:
    return [float(row.ok) for row in rows]


def _latencies(rows: Sequence[Second]) -> list[float] | Missing:
    """Return 1 / the median latency of each second, or why it is unknown."""
    known = [SECOND_NS / value for row in rows if (value := _median_latency(row.latency))]
    if len(known) < len(rows):
        return Missing(f"no valid reply in {len(rows) - len(known)} of {len(rows)} seconds")
    return known


def _shares(account: Account, rows: Sequence[Second]) -> list[float] | Missing:
    """Return the share of valid replies to the requests of each second, or why it is unknown."""
    open_at_end = account.count("in_flight_at_end") + account.count("not_sent_end")
    if open_at_end:
        return Missing(f"{open_at_end} requests were open when the load ended")
    if min(row.scheduled for row in rows) < _LEAST_DUE:
        return Missing(f"fewer than {_LEAST_DUE} requests were due in a second")
    shares = [row.due_ok / row.scheduled for row in rows if row.due_ok is not None]
    if len(shares) < len(rows):
        return Missing("valid replies were not counted by when their requests were due")
    return shares


def _median_latency(value: Distribution | None) -> int | None:
    found = read_distribution(value)
    return None if found is None or found.histogram is None else found.histogram.value_at_quantile(0.5)


def classify(pace: Sequence[float]) -> SteadyState:
    """Return the kind of a series of at least 6 paces (more is better), one for each second.

    *Definition*: neighbours are joined whose means differ by at most 1 % of the larger, or by no more than
    persistent noise may set them apart: 2 t s sqrt(1/a + 1/b), where a and b are their lengths, s is the
    standard deviation about the means of the k segments, and t the two-sided quantile of Student's t with
    n - k degrees of freedom at 5 %, divided by the n - 5 places that a change may have. Flat: one segment is
    left. No steady state: the last one is shorter than half of the window. Warm-up: its mean is the highest,
    or within 1 % of that. Slowdown: it is not.
    *Assumptions*: the correlation of neighbouring seconds is at most 0.6.
    *Source*: E. Barrett, C. F. Bolz-Tereick, R. Killick, S. Mount and L. Tratt, "Virtual machine warmup blows
    hot and cold", Proc. ACM Program. Lang. 1, OOPSLA (2017), section 4.
    """
    found = _merged(segments(pace), pace)
    last, best = found[-1], max(one.mean for one in found)
    if len(found) == 1:
        return SteadyState(Kind.FLAT, found)
    if _length(last) < _LONG_ENOUGH * len(pace):
        return SteadyState(Kind.NONE, found)
    return SteadyState(Kind.WARM_UP if _alike(last.mean, best) else Kind.SLOWDOWN, found)


def _alike(first: float, second: float) -> bool:
    return abs(first - second) <= _ALIKE * max(abs(first), abs(second))


def _segment(pace: Sequence[float], start: int, end: int) -> Segment:
    return Segment(start, end, fsum(pace[start:end]) / (end - start))


def _merged(found: Sequence[Segment], pace: Sequence[float]) -> tuple[Segment, ...]:
    """Return the segments after joining neighbours that are not separated, the least distinct first."""
    while len(found) > 1:
        reach = _reach(len(pace), len(found)) * _spread(found, pace)
        pairs = [
            (_distance(a, b), k)
            for k, (a, b) in enumerate(pairwise(found))
            if _alike(a.mean, b.mean) or _distance(a, b) <= reach
        ]
        if not pairs:
            break
        _, at = min(pairs)
        joined = _segment(pace, found[at].start, found[at + 1].end)
        found = (*found[:at], joined, *found[at + 2 :])
    return tuple(found)


def _distance(first: Segment, second: Segment) -> float:
    """Return the distance of two means, scaled as if one were of one second and the other of very many."""
    return abs(first.mean - second.mean) / sqrt(1 / _length(first) + 1 / _length(second))


def _length(segment: Segment) -> int:
    return segment.end - segment.start


def _spread(found: Sequence[Segment], pace: Sequence[float]) -> float:
    """Return the standard deviation of the seconds about the means of their segments."""
    squares = fsum((value - one.mean) ** 2 for one in found for value in pace[one.start : one.end])
    deviation = sqrt(squares / (len(pace) - len(found)))
    return max(deviation, _LEAST_DEVIATION * abs(fsum(pace)) / len(pace))


def _reach(seconds: int, count: int) -> float:
    """Return how many deviations apart persistent noise may set two of so many segments."""
    places = seconds - _LEAST_SECONDS + 1
    return _PERSISTENCE * student_t(1 - _LEVEL / 2 / places, seconds - count)


def _variance(pace: Sequence[float]) -> float:
    """Return the square of the spread within segments, from the differences of neighbours: few of them
    straddle a change.
    """
    return max(_deviation(pace), _LEAST_DEVIATION * abs(fsum(pace)) / len(pace)) ** 2


def segments(pace: Sequence[float]) -> tuple[Segment, ...]:
    """Return the segments of at least 3 s that fit a series best: its change points.

    *Definition*: the partition that minimises the sum over segments of the squares about their means / s^2,
    plus 3 ln n for each change; s is 1.4826 times the median absolute deviation of the differences of
    neighbours / sqrt(2).
    *Assumptions*: seconds vary independently about their level; positive correlation finds too many changes.
    *Source*: B. Jackson et al., "An algorithm for optimal partitioning of data on an interval", IEEE Signal
    Process. Lett. 12 (2005), exact; N. R. Zhang and D. O. Siegmund, "A modified Bayes information criterion",
    Biometrics 63 (2007), for the penalty.
    """
    import numpy as np

    values, count = np.asarray(pace, dtype=float), len(pace)
    values = values - values.mean()
    sums = np.concatenate(([0.0], np.cumsum(values)))
    squares = np.concatenate(([0.0], np.cumsum(values**2)))
    variance = _variance(pace) or 1.0
    penalty = 3 * log(count)
    best = np.full(count + 1, np.inf)
    best[0] = -penalty
    last = np.zeros(count + 1, dtype=int)
    for end in range(_LEAST_SEGMENT, count + 1):
        starts = np.arange(end - _LEAST_SEGMENT + 1)
        costs = squares[end] - squares[starts] - (sums[end] - sums[starts]) ** 2 / (end - starts)
        totals = best[starts] + costs / variance + penalty
        last[end] = int(totals.argmin())
        best[end] = totals[last[end]]
    return tuple(_segment(pace, start, end) for start, end in pairwise(_marks(last, count)))


def _marks(last: "NDArray[np.int_]", count: int) -> list[int]:
    """Return where segments begin and end, following the best last change back from the end."""
    marks = [count]
    while marks[-1] > 0:
        marks.append(int(last[marks[-1]]))
    return marks[::-1]


# --- from which second on a fresh server's pace is the one that it keeps ----------------------------------


LEAST_SECONDS = 6
"""The shortest load of a pilot, in seconds: three parts of two."""

_LEAST_PART = 2
# In standard errors: how far two equal parts of a window may lie apart.
_REACH = 2.0
# Standard deviation over median absolute deviation of a normal, and of the difference of two.


def warm_after(pace: Sequence[float], margin: float) -> int | None:
    """Return after how many seconds a pace of at least 6 s no longer changes; None: it still does at its end.

    *Definition*: the number of first seconds to leave out, d, that minimises the sum of the squares about the
    mean of the n - d others, over (n - d)^2 (the marginal standard error rule); 0 if the means of both parts
    differ by no more than ``margin`` and two standard errors, the deviation of seconds being that of the
    differences of neighbours. It still changes: the last two thirds differ by more than that, or d is
    half of the seconds, the most that is looked at.
    *Assumptions*: noise of neighbouring seconds is not much alike; else a server is taken to warm up longer
    than it does.
    *Source*: K. P. White, "An effective truncation heuristic for bias reduction in simulation output",
    Simulation 69 (1997); K. Hoad, S. Robinson and R. Davies, "Automating warm-up length estimation", J. Oper.
    Res. Soc. 61 (2010).
    """
    part = max(_LEAST_PART, len(pace) // 3)
    deviation = _deviation(pace)
    if _differ(pace[-2 * part : -part], pace[-part:], margin, deviation):
        return None
    most = len(pace) // 2
    cut = min(range(most + 1), key=lambda first: _standard_error(pace[first:]))
    if not cut or not _differ(pace[:cut], pace[cut:], margin, deviation):
        return 0
    return None if cut == most else cut


def _differ(first: Sequence[float], rest: Sequence[float], margin: float, deviation: float) -> bool:
    """Return whether two parts differ by more than the margin and what noise may set them apart."""
    noise = _REACH * deviation * sqrt(1 / len(first) + 1 / len(rest))
    return abs(fmean(first) - fmean(rest)) > margin * fmean(rest) + noise


def _deviation(pace: Sequence[float]) -> float:
    steps = [after - before for before, after in pairwise(pace)]
    middle = median(steps)
    return _DEVIATION * median(abs(step - middle) for step in steps)


def _standard_error(pace: Sequence[float]) -> float:
    mean = fmean(pace)
    return sum((value - mean) ** 2 for value in pace) / len(pace) ** 2


def judge_pilot(trial: Trial, cell_id: int, seconds: int, margin: float) -> PilotStep:
    """Return what a pilot of ``seconds`` shows of the warm-up of a cell."""
    pace = pace_of(trial.recording)
    if isinstance(pace, Missing):
        return PilotStep(cell_id, seconds, reason=pace.reason)
    if len(pace) < LEAST_SECONDS:
        return PilotStep(cell_id, seconds, reason=f"{len(pace)} whole seconds; expected {LEAST_SECONDS}")
    if not min(pace) > 0:
        return PilotStep(cell_id, seconds, reason="a second without a valid reply")
    after = warm_after(pace, margin)
    return PilotStep(cell_id, seconds, changes=after is None, after_s=after)


def warmup_ns(planned_ns: int, longest_ns: int, step: PilotStep | None) -> int:
    """Return the warm-up of a cell's trials: what its last pilot found, at least as planned, and at most
    ``longest_ns`` where that is longer.
    """
    if step is None or step.reason:
        return planned_ns
    found_ns = longest_ns if step.after_s is None else min(step.after_s * SECOND_NS, longest_ns)
    return max(planned_ns, found_ns)
