"""D30 and D46: replies that are made soon and come late: held back by the kernel, or sent at a rate.

D30: replies waited for the client's delayed acknowledgement: some 40 ms each, whatever the server does.

A server that writes head and body apart, without TCP_NODELAY, has its second packet held back until the first
is acknowledged (Nagle), and Linux may delay that by 40 ms at least.
*Source*: RFC 896; RFC 1122, section 4.2.3.2; kernel, include/net/tcp.h, TCP_DELACK_MIN; hypercorn issue 64.

D46: each large reply took the same time, while its CPUs were idle: it is sent at a rate.

nginx's `limit_rate` and the like sleep between pieces of a reply. A page that waits for a timer takes the
same time too; only a large body says that it is the sending.
"""

from collections.abc import Mapping

from prony.core.units import MIB, MILLISECOND_NS, seconds
from prony.diagnosis.consumption import Resource, consumption_of, outgoing_of
from prony.diagnosis.cpu_time import full_process
from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Closely, Consequence, Experiment, Meaning, Symptom, Traits
from prony.diagnosis.knobs import Turned
from prony.diagnosis.shared import OF_THE_LIMIT
from prony.figures.latency import Times, read_distribution
from prony.model.recording import Distribution

WITH_A_DELAY = Consequence(
    "with a delay of the kernel's", "latency contains a delay of the kernel's, whatever the server does"
)
NO_DELAY = Experiment("no delay of packets", "measure with TCP_NODELAY; the delay ends")
SEND_AT_ONCE = Advice(
    "send replies at once",
    "set TCP_NODELAY, or write head and body of a reply at once",
    turned=(Turned.NO_DELAY,),
)
REPLIES_HELD_BACK = Symptom(
    "replies held back",
    Meaning(Bearing.LIMITS_IDLE, WITH_A_DELAY, NO_DELAY, SEND_AT_ONCE),
    "{share:.0%} of the replies took the {delay_ns:duration} of a delayed acknowledgement: it writes "
    "them in parts, and the kernel holds back the later ones (Nagle)",
    shared="replies took the time of a delayed acknowledgement: it writes them in parts, and the kernel "
    "holds back the later ones (Nagle)",
    traits=Traits(cause="replies that are held back", closely=Closely.WAITS),
)
"""``share``: of the replies, those that came after the time of a delayed acknowledgement,
    ``delay_ns``."""


# The kernel's timer of 40 ms, and what a reply takes besides, on a busy machine too.
_FROM_NS, _TO_NS, _DELAY_NS = 38 * MILLISECOND_NS, 60 * MILLISECOND_NS, 40 * MILLISECOND_NS
_LEAST_SHARE, _CERTAIN_SHARE = 0.05, 0.3
_LEAST_REPLIES = 20
# Neighbours of the spike, three quarters as wide each: a broad distribution fills them too.
_MOST_BESIDE = 0.3
# Acknowledgements that were delayed, of the replies that were held back.
_LEAST_ACKNOWLEDGED = 0.5
# Of the CPUs' time: a server whose replies are held back has little to do.
_MOST_CPU = 0.7


def held_back(evidence: Evidence) -> list[Finding]:
    """Return a finding when a narrow part of the replies took the time of a delayed acknowledgement, and so
    many acknowledgements were delayed; none where its CPUs are busy: of a request that lies unread for 40 ms
    the acknowledgement is delayed too, whatever the reply does.

    Likely: all of its workers and threads have requests, which may lie unread for that.
    """
    recording = evidence.trial.recording
    times = read_distribution(recording.distributions.ok_service) if recording else None
    if times is None or times.count < _LEAST_REPLIES or not evidence.is_ok:
        return []
    share, beside = _spike(times)
    delayed = evidence.trial.counters.get("DelayedACKs", 0)
    held = share * times.count
    if share < _LEAST_SHARE or beside > _MOST_BESIDE * share or delayed < _LEAST_ACKNOWLEDGED * held:
        return []
    usage = consumption_of(evidence)
    shares: Mapping[Resource, float] = usage.shares if usage else {}
    busy = max(shares.get(Resource.CPU, 0.0), shares.get(Resource.CORES, 0.0))
    if busy > _MOST_CPU or full_process(evidence):
        return []
    sure = share >= _CERTAIN_SHARE and shares.get(Resource.SLOTS, 0.0) < 1
    numbers = {"share": share, "delay_ns": _DELAY_NS}
    return [Finding(REPLIES_HELD_BACK, Confidence.CERTAIN if sure else Confidence.LIKELY, numbers)]


def may_be_held_back(found: Distribution | None) -> bool:
    """Return whether any rule of this kind could ask for these latencies: a fifth of what it asks for."""
    times = read_distribution(found)
    return times is not None and times.count > 0 and _spike(times)[0] >= _LEAST_SHARE / 5


def _spike(times: Times) -> tuple[float, float]:
    """Return the share of replies in the spike, and in the parts beside it."""
    if times.histogram is None:
        return 0.0, 0.0
    width = 3 * (_TO_NS - _FROM_NS) // 4
    edges = (_FROM_NS - width, _FROM_NS, _TO_NS, _TO_NS + width)
    before, first, last, after = (times.histogram.count_below(edge) for edge in edges)
    return (last - first) / times.count, (first - before + after - last) / times.count


# --- D46 --------------------------------------------------------------------------------------------------

SENT_AT_A_RATE = Symptom(
    "replies sent at a rate",
    Meaning(
        Bearing.LIMITS_IDLE,
        OF_THE_LIMIT,
        Experiment("a smaller reply", "measure a reply of half the size; it takes half the time"),
        Advice("lift the rate", "look for a limit on how fast replies are sent (nginx: limit_rate)"),
    ),
    "each reply of {size:bytes} took {length_ns:duration}, within {apart:.1%}, with CPUs busy "
    "{cpu_share:.0%}: {rate:bytes} a second on each connection",
    shared="each reply took the same time, whatever else it did: so many bytes a second on each connection",
    traits=Traits(cause="a rate at which it sends each reply"),
)
"""Replies of ``size`` bytes took ``length_ns``, ``apart`` from the quickest to the slowest: ``rate`` bytes a
second; ``cpu_share``: of its CPUs."""

# A kernel holds less for a connection: the rest waits for the sender.
_LEAST_BYTES = MIB // 4
_LEAST_NS, _LEAST_LARGE = 100 * MILLISECOND_NS, 10
_MOST_APART, _MOST_CPU_OF_TIMER = 0.03, 0.1


def sent_at_a_rate(evidence: Evidence) -> list[Finding]:
    """Return a finding when ten large replies or more took the same time, 0.1 s at least, its CPUs were idle,
    and it asked nobody.
    """
    recording, usage = evidence.trial.recording, consumption_of(evidence)
    if recording is None or usage is None or not evidence.is_ok or outgoing_of(evidence):
        return []
    cpu, times = usage.shares.get(Resource.CPU, 1.0), recording.distributions.ok_service
    if times is None or times.count < _LEAST_LARGE or cpu > _MOST_CPU_OF_TIMER or not usage.in_flight:
        return []
    length_ns = (times.sum_ns or 0) / times.count
    apart = ((times.max_ns or 0) - (times.min_ns or 0)) / max(length_ns, 1.0)
    a_second = (recording.bytes.received or 0) / seconds(evidence.length_ns or 1) / usage.in_flight
    size = a_second * seconds(round(length_ns))
    if length_ns < _LEAST_NS or apart > _MOST_APART or size < _LEAST_BYTES:
        return []
    numbers = {"size": size, "length_ns": length_ns, "apart": apart, "cpu_share": cpu, "rate": a_second}
    return [Finding(SENT_AT_A_RATE, Confidence.LIKELY, numbers)]
