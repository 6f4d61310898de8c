"""How long a request takes that has the server to itself: a short load of one connection after the window.

With the rate under load it says how many requests the server worked on at a time (Little's law), and so
whether more connections can carry more. Counters: ``alone.requests``, and ``alone.service_ns``, the median
service time of valid replies. Must not know rules.
"""

from collections.abc import Mapping
from dataclasses import replace

from prony.analysis.distribution import read_distribution
from prony.engine.base import Engine
from prony.errors import EngineError
from prony.model.address import Address
from prony.model.plan import Cell
from prony.model.recording import Distribution, Recording
from prony.model.workload import ELSEWHERE, ClosedLoop, DurationStop, Workload, is_fleet
from prony.seat import EngineSeat
from prony.units import MILLISECOND_NS, SECOND_NS

# A median of fewer says little; of ten all but the first have a warm connection.
_LEAST_REPLIES, _REPLIES = 3, 10
_SHORTEST_NS, _LONGEST_NS = 300 * MILLISECOND_NS, 2 * SECOND_NS
# A study of shorter windows looks for something else, and has its answer sooner.
_LEAST_WINDOW_NS = 2 * SECOND_NS


def alone(
    engine: Engine, cell: Cell, loaded: Recording, where: tuple[Address, EngineSeat]
) -> Mapping[str, int]:
    """Return the counters, after the window that ``loaded`` recorded; none by other generators, after a short
    window, of pages of which fewer than three fit into 2 s, of a server that fails.
    """
    length_ns = _length_ns(cell, loaded)
    if length_ns is None:
        return {}
    try:
        found = engine.run(_of_one(cell.workload, length_ns), *where, lambda _: None)
    except EngineError:
        return {}
    replies, median_ns = found.completed.ok, _median_ns(found.distributions.ok_service)
    if median_ns is None or replies < _LEAST_REPLIES or found.completed.failed:
        return {}
    return {"alone.requests": replies, "alone.service_ns": median_ns}


def may_load_again(cell: Cell, loaded: Recording) -> bool:
    """Return whether a short load may follow a window: of one own generator, and of 2 s or more."""
    name, window_ns = cell.engine.name, loaded.window.length_ns or 0
    is_one = cell.engine.is_built_in and name != ELSEWHERE and not is_fleet(name)
    return is_one and window_ns >= _LEAST_WINDOW_NS and not loaded.window.interrupted


def _length_ns(cell: Cell, loaded: Recording) -> int | None:
    """Return for how long one connection asks, for ten replies if each takes as long as beside others; null:
    not at all.
    """
    if not may_load_again(cell, loaded):
        return None
    median_ns = _median_ns(loaded.distributions.ok_service)
    return None if median_ns is None else min(max(_REPLIES * median_ns, _SHORTEST_NS), _LONGEST_NS)


def _median_ns(found: Distribution | None) -> int | None:
    times = read_distribution(found)
    return times.histogram.value_at_quantile(0.5) if times and times.histogram else None


def _of_one(load: Workload, length_ns: int) -> Workload:
    loop, stop = ClosedLoop(1), DurationStop(length_ns)
    return replace(load, loop=loop, stop=stop, streams=1, warmup_ns=0, grace_ns=_LONGEST_NS)
