"""Figures of the rounds of a block: short windows on servers that stay, in turn.

Each round sees the machine in one state, so what it does to all servers alike cancels in a ratio. Must not
know how a round is run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log, log1p, sqrt
from typing import TYPE_CHECKING

from prony.core.units import SECOND_NS
from prony.figures.account import rates_of
from prony.figures.statistics.effects import change_of, ratio_of, student_t
from prony.model.observation import Slice
from prony.model.recording import Recording

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LEAST_SLICES = 3
# Of the CPUs' time in a turn. Smaller disturbances meet all servers alike over the rounds.
_MOST_DISTURBED = 0.10
# Of a turn's time on one CPU. A server that is not idle between its turns takes from all others, never from
# itself: that does not cancel.
_MOST_OF_NEIGHBOURS = 0.01
_MOST_FAILED = 0.01
_MOST_APART = 0.05
# Of a server, to compare its rounds with its own windows; their scatter is that of all servers' blocks.
_LEAST_PAIRS = 3


def is_disturbed(one: Slice, cpus: int) -> bool:
    """Return whether other programs and the hypervisor had more than 10 % of the CPUs' time in a turn, or the
    block's other servers more than 1 % of one CPU's.
    """
    turn_ns = max(1, one.ended_ns - one.began_ns)
    is_taken = one.others_ns + one.steal_ns > _MOST_DISTURBED * cpus * turn_ns
    return is_taken or has_busy_neighbours(one)


def has_busy_neighbours(one: Slice) -> bool:
    """Return whether the block's other servers had more than 1 % of one CPU's time in a turn."""
    return one.neighbours_ns > _MOST_OF_NEIGHBOURS * max(1, one.ended_ns - one.began_ns)


def _counted(slices: Sequence[Slice]) -> list[Slice]:
    """Return the slices that make figures; none where they are too few, or too many of their requests
    failed.
    """
    counted = [one for one in slices if one.counts and one.close_ns > one.open_ns]
    answered, failed = sum(one.answered for one in counted), sum(one.failed for one in counted)
    is_sound = len(counted) >= LEAST_SLICES and all(one.ok for one in counted)
    return counted if is_sound and failed <= _MOST_FAILED * answered else []


def slice_metrics(slices: Sequence[Slice]) -> dict[str, float]:
    """Return the figures that rounds give better than a trial's window; none with fewer than three slices, or
    where more than 1 % of the requests failed.

    *Definition*: sums over the slices that count, as if they were one window. ``ok_per_s``: valid replies /
    length; ``duration_ns_per_request``: length / requests that ended; ``cpu_ns_per_request``: CPU time of the
    server's processes / requests that ended.
    *Assumptions*: a window of half a second on fresh connections, after a lead of 0.2 s, sees the server as a
    long one does: a reply takes less than the lead. A mean of logarithms would not: where work comes in
    bursts, as a collector's or a compiler's, most slices have none of it.
    """
    counted = _counted(slices)
    if not counted:
        return {}
    length_ns, answered = sum(map(_length_ns, counted)), sum(one.answered for one in counted)
    found = {
        "ok_per_s": SECOND_NS * sum(one.ok for one in counted) / length_ns,
        "duration_ns_per_request": length_ns / answered,
    }
    cpu_ns = [one.cpu_ns for one in counted if one.cpu_ns]
    return found | ({"cpu_ns_per_request": sum(cpu_ns) / answered} if len(cpu_ns) == len(counted) else {})


def _length_ns(one: Slice) -> int:
    return one.close_ns - one.open_ns


def paces_by_round(slices: Sequence[Slice]) -> dict[int, float]:
    """Return the logarithm of ``ok_per_s`` in each round that counts."""
    return {one.round: log(SECOND_NS * one.ok / _length_ns(one)) for one in _counted(slices)}


def beside_window(slices: Sequence[Slice], recording: Recording | None) -> float | None:
    """Return the logarithm of a trial's throughput by its rounds over that by its own window; None without
    one of them.
    """
    in_rounds = slice_metrics(slices).get("ok_per_s")
    own = rates_of(recording)["ok_per_s"] if recording else None
    return log(in_rounds / own) if in_rounds and own else None


def apart(each: Mapping[str, Sequence[float]]) -> tuple[dict[str, float], float | None]:
    """Return the servers whose rounds do not show what their own windows do, with the ratio; and by how much
    those of any may differ at most, null where that is not known.

    *Definition*: ``each``: of each server, `beside_window` in its blocks, three at least. The interval of its
    mean, one of all at 95 %, by the larger of its own variance and of all servers' about their means, lies
    beyond 5 %. At most: the end of these intervals that is farthest from no difference.
    """
    known = {name: logs for name, logs in each.items() if len(logs) >= _LEAST_PAIRS}
    if not known:
        return {}, None
    freedom = sum(len(logs) - 1 for logs in known.values())
    squares = {name: _squares(logs) for name, logs in known.items()}
    usual, times = sum(squares.values()) / freedom, student_t(1 - 0.025 / len(each), freedom)
    found, most = dict[str, float](), 0.0
    for name, logs in known.items():
        centre = sum(logs) / len(logs)
        half = times * sqrt(max(usual, squares[name] / (len(logs) - 1)) / len(logs))
        most = max(most, abs(centre) + half)
        if abs(centre) - half > log1p(_MOST_APART):
            found[name] = ratio_of(centre)
    return found, change_of(most)


def _squares(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return sum((one - mean) ** 2 for one in values)


@dataclass(frozen=True, slots=True)
class Levels:
    """How throughput scatters, as ratios: what the machine did to all servers alike is taken out."""

    rounds: float
    """How many rounds a trial has on average."""
    within: float
    """Standard error of a trial's figure by its rounds: of one start of the server."""
    between: float
    """Standard deviation from start to start, without what the rounds alone explain."""
    apart: Mapping[str, float] = field(default_factory=dict)
    """Throughput by rounds over that by own windows, of the servers where they differ by more than 5 %."""
    agree_within: float | None = None
    """By how much these two differ at most, of any server, as far as its blocks show; null below three."""


def levels(blocks: Sequence[Sequence[Mapping[int, float]]]) -> Levels | None:
    """Return the two levels of scatter; None below two blocks, two servers or two rounds in common.

    *Definition*: ``blocks``: for each block that all servers share, each server's ``paces_by_round``. Within:
    sqrt(w / r), w the mean square of what is left of a block's logarithms without the means of rounds and of
    servers, r the rounds. Between: sqrt(max(0, b - w / r)), b the same of the trials' means without those of
    blocks and of servers.
    *Source*: S. R. Searle, G. Casella, C. E. McCulloch, Variance Components (1992), chapter 4.
    """
    import numpy as np

    tables = [table for each in blocks if min((table := _table(each)).shape, default=0) >= 2]
    if len(tables) < 2:
        return None
    rounds = sum(table.shape[1] for table in tables) / len(tables)
    left = sum(float((_centred(table) ** 2).sum()) for table in tables)
    freedom = sum((table.shape[0] - 1) * (table.shape[1] - 1) for table in tables)
    within = left / freedom / rounds
    means = np.array([table.mean(axis=1) for table in tables])
    between = float((_centred(means) ** 2).sum()) / ((means.shape[0] - 1) * (means.shape[1] - 1))
    return Levels(rounds, sqrt(within), sqrt(max(0.0, between - within)))


def _table(each: Sequence[Mapping[int, float]]) -> "NDArray[np.float64]":
    """Return servers x rounds that all of them have."""
    import numpy as np

    common = sorted(set.intersection(*(set(one) for one in each))) if each else []
    return np.array([[one[number] for number in common] for one in each], dtype=float)


def _centred(table: "NDArray[np.float64]") -> "NDArray[np.float64]":
    left: NDArray[np.float64] = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
    return left
