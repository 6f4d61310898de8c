"""Connections that wait to be accepted, and those that are established, from the samples' gauges.

*Source*: docs/reference/evidence.md, Gauges; listen(2): the limit is the backlog that the server asked for,
or net.core.somaxconn if that is less.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from prony.analysis.missing import Missing, Value
from prony.model.observation import Sample
from prony.model.trial import Trial

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
