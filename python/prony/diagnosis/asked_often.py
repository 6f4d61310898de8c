"""D44: each request asked others many times, or opened a connection to them.

How much of a page's time that is, nobody measured: many questions are the cause where threads wait for others
most of their time, and else said beside it; so are connections always, which may be quick to open.
*Source*: tcp_info(7), data segments that were sent; RFC 4022, tcpActiveOpens.
"""

from prony.core.units import MILLISECOND_NS
from prony.diagnosis.consumption import Consumption, consumption_of, opened_by_others, outgoing_of
from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Experiment, Meaning, Symptom, Traits
from prony.diagnosis.shared import OF_THE_WAITING
from prony.diagnosis.time_spent import ThreadState

ASK_ONCE = Advice("ask once", "ask for all of it at once: a join, a list of keys, or a cache")
KEEP_OPEN = Advice(
    "keep connections to others", "make one client or pool when the app starts, and use it for all requests"
)
ASKED_OFTEN = Symptom(
    "many questions a request",
    Meaning(
        Bearing.LIMITS_IDLE,
        OF_THE_WAITING,
        Experiment("fewer questions", "measure a page that asks once; throughput rises"),
        ASK_ONCE,
    ),
    "for each request it sent {sent:.0f} messages to others (port {port:d}): as many questions, one "
    "after the other",
    shared="for each request it sent many messages to others",
    traits=Traits(cause="how often each request asks others"),
)
"""``sent`` for each request, most to ``port``."""
CONNECTED_OFTEN = Symptom(
    "connects for each request",
    Meaning(
        Bearing.ADDS,
        OF_THE_WAITING,
        Experiment("connections that are kept", "measure with connections that stay open; throughput rises"),
        KEEP_OPEN,
    ),
    "for each request it opened {connects:.1f} connections to others, {opened} in all",
    shared="for each request it opened connections to others",
)
"""``connects`` for each request, ``opened`` in all: by the whole machine where that is its network."""

_LEAST_SENT, _LEAST_CONNECTS = 20, 0.5
# Of a page that takes so long alone, and uses the CPU for so little of that.
_LEAST_SENT_OF_LONG, _LONG_NS, _MOST_OF_CPU = 8, 10 * MILLISECOND_NS, 0.2
# Of its threads' time.
_MOSTLY = 0.5
_LEAST_REQUESTS = 20
# Of a page that does little else: a question and its reply on one machine, with the driver's work.
_MOST_A_QUESTION_NS = MILLISECOND_NS


def asked_often(evidence: Evidence) -> list[Finding]:
    """Return a finding when it sent 20 messages or opened half a connection to others for each request; or
    eight messages, where the page is long and uses hardly any CPU.
    """
    usage, outgoing = consumption_of(evidence), outgoing_of(evidence)
    if usage is None or not evidence.is_ok or usage.done < _LEAST_REQUESTS:
        return []
    found = []
    opened = opened_to_others(evidence)
    if opened >= _LEAST_CONNECTS * usage.done:
        numbers = {"connects": opened / usage.done, "opened": float(opened)}
        # Others may have opened them on the host's network, and a router to its own workers.
        found.append(Finding(CONNECTED_OFTEN, Confidence.POSSIBLE, numbers))
    least = _LEAST_SENT_OF_LONG if _is_long(evidence, usage) else _LEAST_SENT
    if outgoing is not None and outgoing.sent is not None and outgoing.sent >= least:
        numbers = {"sent": outgoing.sent, "port": float(outgoing.port)}
        found.append(Finding(ASKED_OFTEN, _sure(evidence, usage, outgoing.sent), numbers))
    return found


def opened_to_others(evidence: Evidence) -> int:
    """Return how many connections were opened in its network that are not the generator's; none where nobody
    else is known to be asked: a frontend, or a server's own router, opens some to its workers.
    """
    facts = evidence.facts
    asks = facts.services or any(name.startswith("asked.") for name in evidence.trial.counters)
    return 0 if facts.frontend or not asks else opened_by_others(evidence) or 0


def _sure(evidence: Evidence, usage: Consumption, sent: float) -> Confidence:
    """Likely: its threads wait for others most of the time; a page alone is as long as its questions, or
    waits nearly all of its time, under load as alone.
    """
    waits = bool(usage.slots) and usage.time.get(ThreadState.DOWNSTREAM, 0.0) >= _MOSTLY
    alone_ns = evidence.trial.counters.get("alone.service_ns")
    asks = alone_ns is not None and alone_ns <= _MOST_A_QUESTION_NS * sent
    as_alone = usage.has_each_alone and _is_long(evidence, usage)
    return Confidence.LIKELY if waits or asks or as_alone else Confidence.POSSIBLE


def _is_long(evidence: Evidence, usage: Consumption) -> bool:
    """Return whether a page takes long alone, and hardly any of that is CPU time."""
    alone_ns = evidence.trial.counters.get("alone.service_ns", 0)
    return alone_ns >= _LONG_NS and (usage.page_cpu_ns or alone_ns) <= _MOST_OF_CPU * alone_ns
