"""How long a request takes that has the server to itself: a short load of one connection after the window.

With the rate under load it says how many requests the server worked on at a time (Little's law), and so
whether more connections can carry more. Where that is one at a time, requests far apart show whether it is
busy with one for that long, or only lets so many through. Counters: ``alone.requests``, ``alone.service_ns``
and ``alone.mean_ns``, the median and the mean service time of valid replies, and ``alone.spaced_ns``, the
median of requests that are due four times as far apart as it answered.
"""

from collections.abc import Mapping
from dataclasses import replace

from prony.core.errors import EngineError
from prony.core.units import MILLISECOND_NS, SECOND_NS, seconds
from prony.engine.generator import Engine
from prony.figures.latency import read_distribution
from prony.model.address import Address
from prony.model.plan import Cell
from prony.model.recording import Distribution, Recording
from prony.model.sandbox import EngineSeat
from prony.model.workload import ELSEWHERE, ClosedLoop, DurationStop, Loop, OpenLoop, Workload, is_fleet

# A median of fewer says little; of ten all but the first have a warm connection.
_LEAST_REPLIES, _REPLIES = 3, 10
_SHORTEST_NS, _LONGEST_NS = 300 * MILLISECOND_NS, 2 * SECOND_NS
# Three replies of a page that waits for more than half a second.
_PATIENT_NS = 5 * SECOND_NS
# A study of shorter windows looks for something else, and has its answer sooner.
_LEAST_WINDOW_NS = 2 * SECOND_NS
# Of one request at a time, by Little's law; by how much further apart requests are then due.
_ONE, _APART = (0.7, 1.35), 4


def alone(
    engine: Engine, cell: Cell, loaded: Recording, where: tuple[Address, EngineSeat]
) -> Mapping[str, int]:
    """Return the counters, after the window that ``loaded`` recorded; none by other generators, after a short
    window, of pages of which fewer than three fit into 5 s, of a server that fails.
    """
    length_ns = _length_ns(cell, loaded)
    if length_ns is None:
        return {}
    own = ClosedLoop(1)
    found = _times_of(engine, _short(cell.workload, own, length_ns), where)
    if found is None and length_ns == _LONGEST_NS:
        found = _times_of(engine, _short(cell.workload, own, _PATIENT_NS), where)
    if found is None:
        return {}
    replies, median_ns, mean_ns = found
    counters = {"alone.requests": replies, "alone.service_ns": median_ns, "alone.mean_ns": mean_ns}
    per_s = loaded.completed.ok * SECOND_NS / (loaded.window.length_ns or SECOND_NS)
    if not _ONE[0] <= per_s * seconds(median_ns) <= _ONE[1]:
        return counters
    apart = OpenLoop(per_s / _APART, connections=1)
    spaced_ns = min(max(round(_REPLIES * _APART / per_s * SECOND_NS), _SHORTEST_NS), _LONGEST_NS)
    spaced = _times_of(engine, _short(cell.workload, apart, spaced_ns), where)
    return counters | ({"alone.spaced_ns": spaced[1]} if spaced else {})


def _times_of(
    engine: Engine, load: Workload, where: tuple[Address, EngineSeat]
) -> tuple[int, int, int] | None:
    """Return how many valid replies a short load had, their median time and their mean; None: too few, or a
    failure.
    """
    try:
        found = engine.run(load, *where, lambda _: None)
    except EngineError:
        return None
    times = found.distributions.ok_service
    replies, median_ns = found.completed.ok, _median_ns(times)
    if times is None or median_ns is None or replies < _LEAST_REPLIES or found.completed.failed:
        return None
    return replies, median_ns, round((times.sum_ns or 0) / times.count)


def may_load_again(cell: Cell, loaded: Recording) -> bool:
    """Return whether a short load may follow a window: of one own generator, and of 2 s or more."""
    name, window_ns = cell.engine.name, loaded.window.length_ns or 0
    is_one = cell.engine.is_built_in and name != ELSEWHERE and not is_fleet(name)
    return is_one and window_ns >= _LEAST_WINDOW_NS and not loaded.window.interrupted


def _length_ns(cell: Cell, loaded: Recording) -> int | None:
    """Return for how long one connection asks, for ten replies if each takes as long as beside others; None:
    not at all.
    """
    if not may_load_again(cell, loaded):
        return None
    median_ns = _median_ns(loaded.distributions.ok_service)
    return None if median_ns is None else min(max(_REPLIES * median_ns, _SHORTEST_NS), _LONGEST_NS)


def _median_ns(found: Distribution | None) -> int | None:
    times = read_distribution(found)
    return times.histogram.value_at_quantile(0.5) if times and times.histogram else None


def _short(load: Workload, loop: Loop, length_ns: int) -> Workload:
    stop = DurationStop(length_ns)
    return replace(load, loop=loop, stop=stop, streams=1, warmup_ns=0, grace_ns=_LONGEST_NS)
