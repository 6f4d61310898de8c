"""D01: connections arrived when the listen queue was full.

*Source*: the kernel's LINUX_MIB_LISTENOVERFLOWS, net/ipv4/tcp_ipv4.c, tcp_v4_syn_recv_sock: a completed
handshake is dropped when the accept queue is full. The client's SYN is repeated after 1, 3 and 7 s. The
counter is of a network namespace: on the host's own network, of every server of the machine.
"""

from prony.diagnosis.evidence import Confidence, Evidence, Finding

__all__ = ["listen_queue"]

_COUNTERS = ("ListenOverflows", "TcpExt.ListenOverflows", "TcpExtListenOverflows")


def listen_queue(evidence: Evidence) -> list[Finding]:
    """Return a finding when the kernel counted overflows of the listen queue in the window."""
    counters = evidence.trial.counters
    overflows = next((counters[name] for name in _COUNTERS if name in counters), 0)
    if overflows <= 0:
        return []
    backlog = evidence.subject.facts.get("backlog") if evidence.subject else None
    behind = evidence.subject is not None and bool(evidence.subject.facts.get("frontend"))
    # Behind a frontend there is another queue, and the kernel counts both in one.
    limit = f" of {backlog}" if backlog is not None and not behind else ""
    ours = evidence.subject is None or evidence.subject.sandbox.get("network") != "host"
    sentence = (
        f"{overflows} connections arrived when the listen queue{limit} was full"
        if ours
        else f"{overflows} connections on this machine arrived when a listen queue was full, "
        f"perhaps this server's{limit}"
    )
    return [
        Finding(
            rule="D01",
            confidence=Confidence.CERTAIN if ours else Confidence.POSSIBLE,
            sentence=f"{sentence}: their clients wait 1, 3 or 7 s",
            numbers={"overflows": overflows},
            advice="raise the server's backlog (and net.core.somaxconn if lower), or its number of workers",
        )
    ]
