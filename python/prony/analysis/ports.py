"""Ports of a trial's network: who found none, and how many wait after the server's own connections.

Pure. *Source*: RFC 9293, section 3.6.1: who closes a connection first keeps its port for 60 s (TIME_WAIT);
errno(3), EADDRNOTAVAIL; kernel, Documentation/networking/ip-sysctl.rst, ip_local_port_range.
"""

import re

from prony.model.limit import LimitKind
from prony.model.recording import Recording
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
