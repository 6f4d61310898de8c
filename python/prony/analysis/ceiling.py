"""How many requests a closed loop can make at most on a server that waits before each reply.

Near that a throughput is the server's delay divided among the connections, whichever generator makes it. Must
not know claims or reports.
"""

from prony.model.plan import Cell
from prony.model.records import SubjectRecord
from prony.model.workload import ClosedLoop
from prony.units import MILLISECOND_NS, seconds

# A generator of one process spends some per cent of 30 ms between a reply and its next request.
_NEAR = 0.9


def most_per_s(cell: Cell, record: SubjectRecord | None) -> float | None:
    """Return how many requests a second the cell's connections can make at most; null where its server does
    not wait, where the loop is open, or where that is not known.
    """
    delay_ms = record.settings.get("delay_ms") if record else None
    loop = cell.workload.loop
    if not isinstance(loop, ClosedLoop) or not isinstance(delay_ms, int) or delay_ms <= 0:
        return None
    return loop.connections * cell.workload.streams / seconds(delay_ms * MILLISECOND_NS)


def is_at_ceiling(per_s: float, most: float) -> bool:
    """Return whether a throughput is that of the server's delay: at least 0.9 of the most that is possible.

    >>> is_at_ceiling(2600, 2667), is_at_ceiling(1200, 2667)
    (True, False)
    """
    return per_s >= _NEAR * most
