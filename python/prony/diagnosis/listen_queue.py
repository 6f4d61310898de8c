"""D01: connections arrived when the listen queue was full.

*Source*: the kernel's LINUX_MIB_LISTENOVERFLOWS, net/ipv4/tcp_ipv4.c, tcp_v4_syn_recv_sock: a completed
handshake is dropped when the accept queue is full. The client's SYN is repeated after 1, 3 and 7 s. The
counter is of a network namespace: on the host's own network, of every server of the machine. A queue itself
is a listener's: it holds one more than its limit.
"""

from prony.analysis.accept_queue import AcceptQueue, accept_queues
from prony.analysis.resources import window_samples
from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.model import Network, SubjectFacts

__all__ = ["full_queues", "listen_queue"]

_COUNTERS = ("ListenOverflows", "TcpExt.ListenOverflows", "TcpExtListenOverflows")
_ADVICE = "raise the server's backlog (and net.core.somaxconn if lower), or its number of workers"


def full_queues(evidence: Evidence) -> list[AcceptQueue]:
    """Return the subject's accept queues that were seen full in the window."""
    queues = accept_queues(window_samples(evidence.trial.samples))
    return [queue for queue in queues.values() if queue.full]


def listen_queue(evidence: Evidence) -> list[Finding]:
    """Return a finding when the kernel counted overflows in the window, or a queue was seen full."""
    counters = evidence.trial.counters
    overflows = next((counters[name] for name in _COUNTERS if name in counters), 0)
    full = full_queues(evidence)
    if overflows > 0:
        return [_overflowed(evidence, overflows, full)]
    return [_full(queue) for queue in full]


def _overflowed(evidence: Evidence, overflows: int, full: list[AcceptQueue]) -> Finding:
    ours = bool(full) or evidence.subject is None or evidence.subject.sandbox.network is not Network.HOST
    limit = _limit(evidence, full)
    came = f"{overflows:,} connection{'' if overflows == 1 else 's'}"
    sentence = (
        f"{came} arrived when the listen queue{limit} was full"
        if ours
        else f"{came} on this machine arrived when a listen queue was full, perhaps this server's{limit}"
    )
    return Finding(
        rule="D01",
        confidence=Confidence.CERTAIN if ours else Confidence.POSSIBLE,
        sentence=f"{sentence}: their clients wait 1, 3 or 7 s",
        numbers={"overflows": overflows},
        advice=_ADVICE,
    )


def _full(queue: AcceptQueue) -> Finding:
    of = "" if queue.process == "server" else f" of the {queue.process}"
    return Finding(
        rule="D01",
        confidence=Confidence.CERTAIN,
        sentence=f"the listen queue{of} was full: {queue.longest} connections at a limit of {queue.limit}, "
        "one more would have been dropped",
        numbers={"longest": queue.longest, "limit": queue.limit},
        advice=_ADVICE,
    )


def _limit(evidence: Evidence, full: list[AcceptQueue]) -> str:
    """Return the limit in words: of the one queue that was seen full, else the server's own setting."""
    if len(full) == 1:
        whose = "" if full[0].process == "server" else f" ({full[0].process})"
        return f" of {full[0].limit}{whose}"
    facts = evidence.subject.facts if evidence.subject else SubjectFacts()
    backlog = facts.declared.backlog
    # Behind a frontend there is another queue, and the kernel counts both in one.
    return f" of {backlog}" if backlog is not None and facts.frontend is None else ""
