"""D17: all workers and threads were busy while CPUs were idle: each waited for something.

A slot's time for each request is then slots / throughput; what of it is no CPU is waiting: a sleep, a lock, a
database, a slow client. Rules on what it waits for name that first.
"""

from prony.core.units import SECOND_NS
from prony.diagnosis.consumption import Consumption, Resource, consumption_of
from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.few_at_a_time import has_few, is_known, waits
from prony.diagnosis.kinds import Advice, Bearing, Closely, Experiment, Meaning, Symptom, Traits
from prony.diagnosis.knobs import Turned
from prony.diagnosis.one_core import full_process
from prony.diagnosis.shared import OF_THE_WAITING
from prony.diagnosis.thread_time import ThreadState
from prony.diagnosis.uneven_workers import has_idle_slots

# The generator's requests in flight include what is on its way; only more of them than slots must queue.
_LEAST_WAITING, _CERTAIN_WAITING = 1.2, 1.5
# Of the CPUs' time, or of the cores that its processes can fill: between the two the waiting is not the only
# limit.
_MOST_CPU, _CERTAIN_CPU = 0.7, 0.5

MORE_THREADS = Experiment(
    "more threads", "measure with twice as many; throughput doubles, until its CPUs are full"
)
ADD_THREADS = Advice(
    "add threads or workers",
    "add threads or workers, or shorten what each waits for",
    turned=(Turned.THREADS, Turned.PROCESSES),
)
SLOTS_BUSY = Symptom(
    "workers and threads busy",
    Meaning(Bearing.LIMITS_IDLE, OF_THE_WAITING, MORE_THREADS, ADD_THREADS),
    "its {slots:n worker or thread} had requests all the time, each for {held_ns:duration}, and "
    "others waited, while its CPUs were busy {cpu_share:.0%} of the time: it waits for something "
    "else{waits:, mostly}",
    shared="all its workers and threads had requests, and others waited, while its CPUs were not busy: it "
    "waits for something else{waits:, mostly}",
    traits=Traits(cause="its number of workers and threads", closely=Closely.WAITS),
)
"""All ``slots`` had one of the ``in_flight`` requests, for ``held_ns``; ``cpu_share``: of its CPUs.
    Name ``waits``: what its threads wait for most of their time, if known."""


# Of the threads' time; threads that only accept or hand out requests are among them.
_MOSTLY = 0.5


def busy_slots(evidence: Evidence) -> list[Finding]:
    """Return a finding when more requests waited than can be worked on at once, and it had CPUs to spare that
    it can use; none where those in its workers and threads are known to wait for one another (D43).

    Likely: a worker had fewer connections than it works on, so that some slots were idle; its threads
    mostly waited for requests, which may be on their way; or a request alone is far quicker, so that more
    slots may help little.
    """
    usage = consumption_of(evidence)
    sure = slots_busy(evidence, usage)
    wait_for_each_other = usage is not None and has_few(usage)
    if usage is None or sure is None or not evidence.is_ok or (wait_for_each_other and is_known(evidence)):
        return []
    idle = usage.time.get(ThreadState.IDLE, 0.0) > _MOSTLY
    sure = Confidence.LIKELY if idle or wait_for_each_other or has_idle_slots(evidence) else sure
    return [Finding(SLOTS_BUSY, sure, _numbers(usage), waits(usage))]


def _numbers(usage: Consumption) -> dict[str, float]:
    slots = usage.slots or 0
    held_ns = slots / usage.done_per_s * SECOND_NS
    cpu = usage.shares[Resource.CPU]
    return {"slots": slots, "in_flight": usage.in_flight, "cpu_share": cpu, "held_ns": held_ns}


def slots_busy(evidence: Evidence, usage: Consumption | None) -> Confidence | None:
    """Return how sure it is that more requests waited than can be worked on, with CPUs to spare that it can
    use; None: not. Threads that take turns on one core sleep until theirs comes: they wait for that.
    """
    if usage is None or not usage.slots or usage.contended or Resource.SLOTS not in usage.shares:
        return None
    if Resource.CPU not in usage.shares or full_process(evidence):
        return None
    cpu = max(usage.shares[Resource.CPU], usage.shares.get(Resource.CORES, 0.0))
    waiting = usage.in_flight / usage.slots
    if cpu > _MOST_CPU or waiting < _LEAST_WAITING:
        return None
    certain = cpu <= _CERTAIN_CPU and waiting >= _CERTAIN_WAITING
    return Confidence.CERTAIN if certain else Confidence.LIKELY
