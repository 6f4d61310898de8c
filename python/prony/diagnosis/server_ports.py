"""D05: the server, or its frontend, found no free port for a connection to another server.

Who closes a connection first keeps its port for 60 s (TIME_WAIT). The generator's own ports are a finding
about the generator. *Source*: RFC 9293, section 3.6.1; kernel, Documentation/networking/ip-sysctl.rst,
ip_local_port_range and tcp_tw_reuse; errno EADDRNOTAVAIL.
"""

import re

from prony.diagnosis.evidence import Advice, Confidence, Evidence, Finding, Symptom

__all__ = ["server_ports"]

_SAYS_SO = re.compile(r"(?i)cannot assign requested address|EADDRNOTAVAIL")
# Of the ports that the kernel gives out; the rest are those of connections that are open.
_NEARLY_ALL = 0.8


def server_ports(evidence: Evidence) -> list[Finding]:
    """Return a finding when its log says so, or most ports wait after connections that were closed.

    Certain: both. Possible: they wait, and no request failed; over loopback tcp_tw_reuse lets them be used
    again.
    """
    counters = evidence.trial.counters
    ports, waiting = counters.get("ports"), counters.get("TimeWaitAtClose", 0)
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


def _any_failed(evidence: Evidence) -> bool:
    recording = evidence.trial.recording
    return recording is not None and recording.completed.failed > 0
