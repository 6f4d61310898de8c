"""Connections that wait to be accepted, and those that are established, from the samples' gauges.

*Source*: docs/reference/evidence.md, Gauges; listen(2): the limit is the backlog that the server asked for,
or net.core.somaxconn if that is less.

Whether a server answered only some of its connections, and nothing on the others.

Latency and error counts do not show it: they describe only the served connections.

How full each listener of a trial was, and how unevenly those that share an address were.

*Source*: docs/reference/evidence.md, Each listener.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from prony.figures.missing import Missing, Value
from prony.model.observation import ListenerUsage, Sample
from prony.model.recording import Answered, Recording
from prony.model.trial import Trial

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


# Beyond this share of connections without a single reply, figures describe only those that the server chose
# to serve.
_MOST_WITHOUT_REPLY = 0.1

# A fair server serves its connections in rounds: their counts of replies differ by one, or by two where the
# window cuts two rounds. Below this, connections without a reply only mean that the window was short.
_LEAST_MOST_REPLIES = 3


@dataclass(frozen=True, slots=True)
class Starvation:
    """How many connections there were, and how many of them got a reply in the window."""

    connections: int
    served: int


def starvation(recording: Recording | None) -> Starvation | None:
    """Return how few connections of a closed loop were answered; None if enough were, or in an open loop.

    *Definition*: more than a tenth of the connections got no reply in the window, while some other got
    three or more.
    *Assumptions*: a slow but fair server, whose window is shorter than one round of its connections, gives
    none of them three.
    *Source*: cheroot issue 91: ten threads kept ten connections, and only those were seen.
    """
    if recording is None or recording.is_open or recording.connections.answered is None:
        return None
    return starved_of(recording.connections.answered)


def starved_of(answered: Answered) -> Starvation | None:
    """Return the same from the spread of a closed loop's replies over its connections.

    >>> starved_of(Answered(connections=100, without_reply=90, min=0, max=40))
    Starvation(connections=100, served=10)
    """
    connections, without = answered.connections, answered.without_reply
    starved = are_many(without, connections) and answered.max >= _LEAST_MOST_REPLIES
    return Starvation(connections, connections - without) if starved else None


def are_many(without_reply: int, connections: int) -> bool:
    """Return whether so many connections without a reply are more than a tenth of all.

    >>> are_many(11, 100), are_many(10, 100)
    (True, False)
    """
    return without_reply > _MOST_WITHOUT_REPLY * connections


_NOT_READ = Missing("the listeners were not read in the window")


@dataclass(frozen=True, slots=True)
class AcceptQueue:
    """The most connections that waited at a process's listener in one sample, and how many may."""

    process: str
    longest: int
    limit: int

    @property
    def full(self) -> bool:
        """Whether there was no room left: a queue holds one more than its limit."""
        return self.longest > self.limit


def accept_queues(window: Sequence[Sample]) -> dict[str, AcceptQueue]:
    """Return the fullest state of each process's accept queue, by the process's name."""
    states: dict[str, list[AcceptQueue]] = {}
    for gauges in (sample.gauges for sample in window):
        for name, queued in gauges.items():
            process = name.removeprefix("listen.").removesuffix(".queued")
            limit = gauges.get(f"listen.{process}.limit")
            if name == f"listen.{process}.queued" and limit is not None:
                states.setdefault(process, []).append(AcceptQueue(process, queued, limit))
    return {process: max(each, key=_filled) for process, each in states.items()}


def overflows_of(trial: Trial) -> int:
    """Return how many connections the kernel turned away in the window for a full accept queue; 0 too where
    that was not counted.
    """
    return trial.counters.get("ListenOverflows", 0)


def entrance(window: Sequence[Sample]) -> str:
    """Return the name of the process that clients connect to."""
    names = {name for sample in window for name in sample.gauges}
    return "frontend" if {"established.frontend", "listen.frontend.queued"} & names else "server"


def accept_queue_metrics(window: Sequence[Sample]) -> dict[str, Value]:
    """Return queue and connections by metric name; of several processes' queues the fullest."""
    queues, first = accept_queues(window).values(), entrance(window)
    if not queues:
        names = ("accept_queue_peak", "accept_queue_longest", "accept_queue_limit")
        return {**dict.fromkeys(names, _NOT_READ), **_established(window, first)}
    fullest = max(queues, key=lambda one: (_filled(one), one.process == first))
    return {
        "accept_queue_peak": _filled(fullest),
        "accept_queue_longest": float(fullest.longest),
        "accept_queue_limit": float(fullest.limit),
        **_established(window, first),
    }


def _established(window: Sequence[Sample], process: str) -> dict[str, Value]:
    name = f"established.{process}"
    counts = [sample.gauges[name] for sample in window if name in sample.gauges]
    return {"connections_peak": float(max(counts)) if counts else _NOT_READ}


def _filled(queue: AcceptQueue) -> float:
    return queue.longest / max(queue.limit, 1)
