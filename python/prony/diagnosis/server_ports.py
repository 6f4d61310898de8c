"""D05: the server, or its frontend, found no free port for a connection to another server.

Who closes a connection first keeps its port for 60 s (TIME_WAIT), towards the same peer: a database, another
server, or the server behind a frontend. Sockets that wait at its own port cost it none, and those of the
generator's connections are a finding about the generator. *Source*: RFC 9293, section
3.6.1; kernel, Documentation/networking/ip-sysctl.rst, ip_local_port_range and tcp_tw_reuse.
"""

from prony.diagnosis.clients import went_without
from prony.diagnosis.earlier_trials import earlier_trials
from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Experiment, Meaning, Symptom, Traits
from prony.diagnosis.knobs import Turned
from prony.diagnosis.shared import OF_ERRORS
from prony.figures.generator import NEARLY_ALL_PORTS, own_waiting, server_lacked_ports

MORE_PORTS = Experiment(
    "more ports", "measure with kept connections, or a wider range of ports; failures end"
)
KEEP_CONNECTIONS = Advice(
    "keep its connections to others",
    "keep its connections to others open, or widen net.ipv4.ip_local_port_range",
    turned=(Turned.UPSTREAM,),
)
SERVER_WITHOUT_PORTS = Symptom(
    "server without ports",
    Meaning(Bearing.LIMITS, OF_ERRORS, MORE_PORTS, KEEP_CONNECTIONS),
    "it ran out of ports for its own connections to others{process:, those of the}: {waiting:n "
    "socket} in TIME_WAIT",
    traits=Traits(cause="its ports"),
)
"""``ports`` of its network, ``waiting``: sockets in TIME_WAIT at the window's end; the name ``process``,
    where it is not the server that lacked them."""


# Of the ports: where so few wait after connections, others were free.
_REFUTED = 0.5


def server_ports(evidence: Evidence) -> list[Finding]:
    """Return a finding when its log says so, or most ports wait after connections to others that were closed.

    Certain: both. Possible: only one of them, and no client went without, or half of the ports at least were
    free, whatever its log says: it has lines from before the window too, and over loopback tcp_tw_reuse lets
    ports be used again. None where earlier trials keep more of them.
    """
    if any(one.confidence is not Confidence.POSSIBLE for one in earlier_trials(evidence)):
        return []
    counters, waiting = evidence.trial.counters, own_waiting(evidence.trial)
    ports, said = counters.get("ports", 0), server_lacked_ports(evidence.trial)
    full = ports > 0 and waiting >= NEARLY_ALL_PORTS * ports
    # Where they were not counted by their peers, there may be more.
    refuted = "ports.waiting" in counters and waiting + _most_open(evidence) < _REFUTED * ports
    if not (said or full):
        return []
    if said and full:
        sure = Confidence.CERTAIN
    else:
        sure = Confidence.LIKELY if went_without(evidence.trial) and not refuted else Confidence.POSSIBLE
    return [
        Finding(
            SERVER_WITHOUT_PORTS,
            sure,
            {"waiting": waiting} | ({"ports": ports} if ports else {}),
            _process(evidence, waiting) if full else {},
        )
    ]


def _most_open(evidence: Evidence) -> int:
    """Return the most connections to others that a look found open: each has a port too."""
    gauges = (one.gauges for one in evidence.samples)
    return max((one.get("downstream.connections", 0) for one in gauges), default=0)


def _process(evidence: Evidence, waiting: int) -> dict[str, str]:
    """Return that they are a frontend's, where the peer with the most of them is the server behind it."""
    of_frontend = evidence.trial.counters.get("ports.waiting_frontend")
    return {"process": "frontend"} if of_frontend == waiting else {}
