"""D05: the server, or its frontend, found no free port for a connection to another server.

Who closes a connection first keeps its port for 60 s (TIME_WAIT). The kernel counts such sockets of all
programs together: those that were there before the trial, and one for each connection of the generator, are
none of the server's. They wait at its own port, which costs none, or take the generator's ports, which is a
finding about the generator. *Source*: RFC 9293, section 3.6.1; kernel,
Documentation/networking/ip-sysctl.rst, ip_local_port_range and tcp_tw_reuse; errno EADDRNOTAVAIL.
"""

import re

from prony.diagnosis.evidence import Advice, Confidence, Evidence, Finding, Symptom
from prony.model.recording import Recording

__all__ = ["server_ports"]

_SAYS_SO = re.compile(r"(?i)cannot assign requested address|EADDRNOTAVAIL")
# Of the ports that the kernel gives out; the rest are those of connections that are open.
_NEARLY_ALL = 0.8


def server_ports(evidence: Evidence) -> list[Finding]:
    """Return a finding when its log says so, or most ports wait after connections to others that were closed.

    Certain: both. Possible: they wait, and no request failed; over loopback tcp_tw_reuse lets them be used
    again.
    """
    counters = evidence.trial.counters
    ports, waiting = counters.get("ports"), _of_its_own(evidence)
    said = _SAYS_SO.search(evidence.trial.log.text) is not None
    full = ports is not None and waiting >= _NEARLY_ALL * ports
    if not (said or full):
        return []
    if said and full:
        sure = Confidence.CERTAIN
    else:
        sure = Confidence.LIKELY if said or _any_failed(evidence) else Confidence.POSSIBLE
    return [
        Finding(
            rule="D05",
            kind=Symptom.SERVER_WITHOUT_PORTS,
            confidence=sure,
            numbers={"waiting": waiting} | ({} if ports is None else {"ports": ports}),
            advice=Advice.KEEP_CONNECTIONS,
        )
    ]


def _of_its_own(evidence: Evidence) -> int:
    """Return the sockets in TIME_WAIT that only its own connections to others explain; at least so many."""
    counters = evidence.trial.counters
    waiting = counters.get("TimeWaitAtClose", 0) - counters.get("CarriedTimeWait", 0)
    return max(0, waiting - _connects(evidence.trial.recording))


def _connects(recording: Recording | None) -> int:
    """Return the generator's connects, with those of the warm-up, of which only the requests are counted."""
    if recording is None or not recording.completed.all:
        return 0
    connections, done = recording.connections, recording.completed.all
    return (connections.opened or 0) * max(connections.requests_sent or 0, done) // done


def _any_failed(evidence: Evidence) -> bool:
    recording = evidence.trial.recording
    return recording is not None and recording.completed.failed > 0
