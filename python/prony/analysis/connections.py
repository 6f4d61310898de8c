"""How the generator's connections ended, and how long its threads waited for their CPU. Pure.

>>> longest_wait_ns((WorkerThread(0, 0, 0, 0, 7), WorkerThread(1, 0, 0, 0, None)))
7

Ports of a trial's network: who found none, and how many wait after the server's own connections.

Pure. *Source*: RFC 9293, section 3.6.1: who closes a connection first keeps its port for 60 s (TIME_WAIT);
errno(3), EADDRNOTAVAIL; kernel, Documentation/networking/ip-sysctl.rst, ip_local_port_range.
"""

import re
from collections.abc import Sequence

from prony.analysis.generator import missing_reason
from prony.analysis.missing import Missing, Value
from prony.model.limit import LimitKind
from prony.model.recording import Recording, WorkerThread
from prony.model.trial import Trial

NEARLY_ALL_PORTS = 0.8
"""Of the ports that the kernel gives out: where so many wait, the rest are those of open connections."""

_NO_PORT = re.compile(r"(?i)cannot assign requested address|EADDRNOTAVAIL")
# A server that could not bind an address lacked that address, and no port.
_OF_LISTENERS = re.compile(r"(?i)\b(?:bind|listen)")


def server_lacked_ports(trial: Trial) -> bool:
    """Return whether the server's log says that it found no port."""
    lines = trial.log.text.splitlines()
    return any(_NO_PORT.search(line) and not _OF_LISTENERS.search(line) for line in lines)


def generator_lacked_ports(trial: Trial) -> bool:
    """Return whether the generator says that it found no port."""
    limits = () if trial.recording is None else trial.recording.generator.evidence
    return any(one.kind is LimitKind.PORTS for one in limits)


def own_waiting(trial: Trial) -> int:
    """Return the sockets in TIME_WAIT of its own, or its frontend's, connections to one other server.

    In a network of the trial's own they are counted at the window's end. Elsewhere
    at least so many: the kernel counts those of all programs together, of which those that were there before
    the trial, and one for each connection of the generator, are none of the server's.
    """
    if "ports.waiting" in trial.counters:
        return trial.counters["ports.waiting"]
    waiting = trial.counters.get("TimeWaitAtClose", 0) - trial.counters.get("CarriedTimeWait", 0)
    return max(0, waiting - _connects(trial.recording))


def _connects(recording: Recording | None) -> int:
    """Return the generator's connects, with those of the warm-up, of which only the requests are counted."""
    if recording is None or not recording.completed.all:
        return 0
    connections, done = recording.connections, recording.completed.all
    return (connections.opened or 0) * max(connections.requests_sent or 0, done) // done


# Of the valid replies: the rest went over connections that were kept.
_LEAST_CLOSED = 0.9


def connection_metrics(recording: Recording) -> dict[str, Value]:
    """Return by metric name how many connections were opened again and how many got no reply, and the wait.

    *Definition*: run queue: of the generator's thread that waited longest, the time that it was ready to run
    and had no CPU / window and drain.
    """
    absent = missing_reason(recording.engine, "connections")
    reconnects, answered = recording.connections.reconnects, recording.connections.answered
    return {
        "reconnects": absent if reconnects is None else float(reconnects),
        "connections_without_reply": absent if answered is None else float(answered.without_reply),
        "generator_run_queue_percent": _run_queue(recording),
    }


def closes_each(recording: Recording) -> bool:
    """Return whether the server closed a connection after nine of ten valid replies at least.

    *Definition*: connections that were opened in place of ended ones, over valid replies. A failed request
    may have ended one too, unless it did not connect at all, and so counts against it.
    """
    again, failures = recording.connections.reconnects, recording.connections.connect_failures or 0
    if again is None or not recording.completed.ok:
        return False
    lost = max(0, recording.completed.failed - failures)
    return again - lost >= _LEAST_CLOSED * recording.completed.ok


def _run_queue(recording: Recording) -> Value:
    length_ns, waited_ns = recording.window.drained_length_ns, longest_wait_ns(recording.generator.threads)
    if waited_ns is None or length_ns is None:
        return Missing("not recorded by this generator")
    return 100 * waited_ns / length_ns


def longest_wait_ns(threads: Sequence[WorkerThread]) -> int | None:
    """Return the longest time that one of the threads was ready and had no CPU; null: it is not known."""
    return max((one.run_queue_ns for one in threads if one.run_queue_ns is not None), default=None)
