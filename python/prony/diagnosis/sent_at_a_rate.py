"""D46: each large reply took the same time, while its CPUs were idle: it is sent at a rate.

nginx's `limit_rate` and the like sleep between pieces of a reply. A page that waits for a timer takes the
same time too; only a large body says that it is the sending.
"""

from prony.core.units import MIB, MILLISECOND_NS, seconds
from prony.diagnosis.consumption import Resource, consumption_of, outgoing_of
from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Experiment, Meaning, Symptom, Traits
from prony.diagnosis.shared import OF_THE_LIMIT

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
_LEAST_NS, _LEAST_REPLIES = 100 * MILLISECOND_NS, 10
_MOST_APART, _MOST_CPU = 0.03, 0.1


def sent_at_a_rate(evidence: Evidence) -> list[Finding]:
    """Return a finding when ten large replies or more took the same time, 0.1 s at least, its CPUs were idle,
    and it asked nobody.
    """
    recording, usage = evidence.trial.recording, consumption_of(evidence)
    if recording is None or usage is None or not evidence.is_ok or outgoing_of(evidence):
        return []
    cpu, times = usage.shares.get(Resource.CPU, 1.0), recording.distributions.ok_service
    if times is None or times.count < _LEAST_REPLIES or cpu > _MOST_CPU or not usage.in_flight:
        return []
    length_ns = (times.sum_ns or 0) / times.count
    apart = ((times.max_ns or 0) - (times.min_ns or 0)) / max(length_ns, 1.0)
    a_second = (recording.bytes.received or 0) / seconds(evidence.length_ns or 1) / usage.in_flight
    size = a_second * seconds(round(length_ns))
    if length_ns < _LEAST_NS or apart > _MOST_APART or size < _LEAST_BYTES:
        return []
    numbers = {"size": size, "length_ns": length_ns, "apart": apart, "cpu_share": cpu, "rate": a_second}
    return [Finding(SENT_AT_A_RATE, Confidence.LIKELY, numbers)]
