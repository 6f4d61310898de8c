"""D16, D17, D34 and D35: what the server's threads wait for while its CPUs are idle.

D17: all workers and threads were busy while CPUs were idle: each waited for something.

A slot's time for each request is then slots / throughput; what of it is no CPU is waiting: a sleep, a lock, a
database, a slow client. Rules on what it waits for name that first.

D16: threads that had requests stood before one lock, while CPUs were idle.

Whoever holds it waits for something else: a sleep, a disk, another server. A pool's idle threads may stand at
one lock too, so all slots must have requests.
*Source*: proc(5), /proc/PID/task/TID/syscall: futex(2) and its address; Little's law.

D34: the server's threads waited for the disk, most of the time in which they did anything.

A log that is written line by line to the disk is the usual cause. *Source*: proc(5), the system calls in
which threads sleep: fsync, fdatasync, pread and pwrite.

D35: all connections of the server to others, a database for example, were waited on all the time.

What it asks is then its limit, or how many connections it has to ask with. Where each of its workers and
threads has a connection of its own, more of these are more connections (D17); where it is known how many
requests it worked on, that says more (D43).
*Source*: Little's law.
"""

from prony.core.units import SECOND_NS
from prony.diagnosis.consumption import Consumption, Resource, consumption_of, pool_of
from prony.diagnosis.cpu_time import full_process
from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.few_at_a_time import has_few, is_known, waits
from prony.diagnosis.kinds import Advice, Bearing, Closely, Experiment, Meaning, Symptom, Traits
from prony.diagnosis.knobs import Turned
from prony.diagnosis.shared import NO_LOCK, OF_THE_WAITING, RAISE_POOL
from prony.diagnosis.time_spent import ThreadState, thread_time
from prony.diagnosis.uneven_work import has_idle_slots

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


# --- D16 --------------------------------------------------------------------------------------------------

SHORTEN_LOCK = Advice(
    "shorten the lock", "hold the lock for less, or give each process its own: add processes, not threads"
)
LOCK_HELD = Symptom(
    "a lock that all want",
    Meaning(Bearing.LIMITS_IDLE, OF_THE_WAITING, NO_LOCK, SHORTEN_LOCK),
    "its {slots:n worker or thread} had requests, and others waited, while {same_share:.0%} of the "
    "time of its threads went to one lock",
    shared="all its workers and threads had requests, and most of them waited for one lock",
    traits=Traits(cause="a lock", closely=Closely.WAITS),
)
"""As workers and threads busy; ``same_share``: of the looks at waiting threads, those at one lock."""


# Of the looks at threads that wait for another thread; of all looks.
_LEAST_SAME, _LEAST_OF_ALL = 0.6, 0.3
_LEAST_LOOKS = 20


def lock_held(evidence: Evidence) -> list[Finding]:
    """Return a finding when all slots had requests, and most of its threads waited at one address."""
    counters = evidence.trial.counters
    at_one, looks = counters.get("threads.one_lock", 0), counters.get("threads.looks", 0)
    at_any = counters.get("threads.timed_wait", 0) + counters.get("threads.wait", 0)
    if looks < _LEAST_LOOKS or at_one < _LEAST_OF_ALL * looks or at_one < _LEAST_SAME * at_any:
        return []
    usage = consumption_of(evidence)
    if usage is None or slots_busy(evidence, usage) is None or not evidence.is_ok:
        return []
    numbers = {"slots": usage.slots or 0, "in_flight": usage.in_flight, "same_share": at_one / looks}
    return [Finding(LOCK_HELD, Confidence.LIKELY, numbers)]


# --- D34 --------------------------------------------------------------------------------------------------

NO_LOG = Experiment(
    "without its log", "measure with its log off, or in memory; the tail of the latency falls"
)
LOG_LATER = Advice(
    "write logs later",
    "write its log to memory or to another process, and not to the disk line by line",
    turned=(Turned.LOG,),
)
DISK_WAITED = Symptom(
    "waited for the disk",
    Meaning(Bearing.LIMITS_IDLE, OF_THE_WAITING, NO_LOG, LOG_LATER),
    "its threads waited for the disk for {share:.0%} of their time, most of what they did at all",
    shared="its threads mostly waited for the disk",
    traits=Traits(cause="the disk", closely=Closely.WAITS),
)
"""``share``: of its threads' time."""


# Of its threads' time; of the time in which they did not wait, for work or for a CPU.
_LEAST_SHARE, _LEAST_OF_WORK = 0.03, 0.5
_AT_WORK = (
    *(ThreadState.RUNNING, ThreadState.FILE, ThreadState.SLEEP, ThreadState.CHILD, ThreadState.DOWNSTREAM),
)


def disk(evidence: Evidence) -> list[Finding]:
    """Return a finding when its threads, where they were at work, were mostly in a call on a file."""
    counters = evidence.trial.counters
    time = thread_time(counters)
    share = time.get(ThreadState.FILE, 0.0)
    work = sum(time.get(state, 0.0) for state in _AT_WORK)
    if (
        counters.get("threads.looks", 0) < _LEAST_LOOKS
        or share < _LEAST_SHARE
        or share < _LEAST_OF_WORK * work
    ):
        return []
    if not evidence.is_ok:
        return []
    return [Finding(DISK_WAITED, Confidence.LIKELY, {"share": share})]


# --- D35 --------------------------------------------------------------------------------------------------

LARGER_POOL = Experiment("a larger pool", "measure with twice the connections to others; throughput rises")
DOWNSTREAM_BUSY = Symptom(
    "waited for another server",
    Meaning(Bearing.LIMITS_IDLE, OF_THE_WAITING, LARGER_POOL, RAISE_POOL),
    "its {connections:n connection} to others (port {port:d}) waited for replies {share:.0%} of the "
    "time, and more requests were open",
    shared="its connections to others waited for replies all the time, and more requests were open",
    traits=Traits(cause="what it asks of others", closely=Closely.WAITS),
)
"""``connections`` to others, on average busy ``share`` of the time; ``port``: of the busiest peer."""


LEAST_BUSY_POOL = 0.6
"""Of the time of the connections to others: threads do something between two waits for one."""

# Of those connections: requests in flight.
_LEAST_ASKING = 1.2
_MOST_OF_SLOTS = 0.9


def downstream(evidence: Evidence) -> list[Finding]:
    """Return a finding when threads waited for 60 % of the time of its connections to others, more requests
    were open than it has of these, these are fewer than its threads, and it had CPUs to spare.
    """
    usage, pool = consumption_of(evidence), pool_of(evidence)
    if usage is None or pool is None or (is_known(evidence) and has_few(usage)):
        return []
    if usage.slots and pool.connections > _MOST_OF_SLOTS * usage.slots:
        return []
    if pool.busy < LEAST_BUSY_POOL or usage.shares.get(Resource.CPU, 1.0) > _MOST_CPU:
        return []
    if usage.in_flight < _LEAST_ASKING * pool.connections or not evidence.is_ok:
        return []
    numbers = {"connections": round(pool.connections), "share": pool.busy, "port": pool.port}
    return [Finding(DOWNSTREAM_BUSY, Confidence.LIKELY, numbers)]
