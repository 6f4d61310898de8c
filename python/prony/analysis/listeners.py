"""How full each listener of a trial was, and how unevenly those that share an address were.

*Source*: docs/reference/evidence.md, Each listener.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from prony.model.observation import ListenerUsage, Sample

# A share from which on a figure says nothing about the server.


@dataclass(frozen=True, slots=True)
class SharedAddress:
    """The listeners that shared a process's address in the window: ``count`` of them at the same time.

    ``longest`` of ``limit``: the fullest queue that one of them had; ``others``: the longest of the others.
    """

    process: str
    count: int
    longest: int
    limit: int
    others: int

    @property
    def filled(self) -> float:
        """The share of its limit that the fullest queue had."""
        return self.longest / max(self.limit, 1)


def shared_addresses(
    listeners: Sequence[ListenerUsage], window: Sequence[Sample]
) -> tuple[SharedAddress, ...]:
    """Return, of each process with several listeners at once, how unevenly they were filled.

    Those that merely followed each other, of a server that was restarted, share nothing.
    """
    counts = {
        process: max(sample.gauges.get(f"listen.{process}.sockets", 0) for sample in window)
        for process in dict.fromkeys(one.process for one in listeners if one.process)
        if window
    }
    return tuple(
        _shared(process, count, [one for one in listeners if one.process == process])
        for process, count in counts.items()
        if count > 1
    )


def _shared(process: str, count: int, listeners: Sequence[ListenerUsage]) -> SharedAddress:
    fullest = max(listeners, key=lambda one: (one.queued_max / max(one.limit, 1), one.queued_max))
    others = max((one.queued_max for one in listeners if one is not fullest), default=0)
    return SharedAddress(process, count, fullest.queued_max, fullest.limit, others)
