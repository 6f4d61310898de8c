"""The evidence of a rule and its findings: values, never sentences (`report.findings` has the words)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from prony.diagnosis.knobs import Knob
from prony.model.plan import Cell
from prony.model.records import SubjectRecord
from prony.model.shown import INTERNAL
from prony.model.trial import Trial


class Confidence(StrEnum):
    """How sure a finding is."""

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"


class Symptom(StrEnum):
    """The kinds of findings; each lists the numbers and names that belong to it."""

    GENERATOR_AT_LIMIT = "generator's limit of requests in flight"
    """``connections``: the limit; ``at_ns``: when it was reached, from the opening."""
    GENERATOR_WITHOUT_PORTS = "generator without ports"
    """``requests`` that found none."""
    GENERATOR_WITHOUT_DESCRIPTORS = "generator without descriptors"
    """As before."""
    GENERATOR_WITHOUT_BUFFERS = "generator without buffers"
    """As before."""
    GENERATOR_THROTTLED = "generator throttled"
    """``share``: of the window, in which a quota stopped one of its threads."""
    GENERATOR_NEAR_CEILING = "generator near its ceiling"
    """``share``: of ``ceiling_per_s``, what it can reach on this machine."""
    GENERATOR_MISSED_RATE = "generator missed the rate"
    """``share``: of what was due; ``sent_per_s``."""
    GENERATOR_BUSY = "generator busy"
    """``share``: of the window, of its busiest thread."""
    GENERATOR_KEPT_WAITING = "generator kept waiting"
    """``share``: of the window, in which others had the CPU of one of its threads; ``wait_ns`` at a time;
    ``late_share``: of the replies, those that it took only then."""
    GENERATOR_LATE = "generator late"
    """``lag_ns``: the send lag at ``percentile``; ``share``: of the latency there."""
    """Name ``reason``: the generator's own words, when they match no known kind."""
    STRAYED = "strayed to other CPUs"
    """``strays``: processes of the server that chose other CPUs than the server's."""
    KILLED_FOR_MEMORY = "killed for memory"
    """``kills``: processes."""
    ENDED_UNDER_LOAD = "ended under load"
    """Name ``reason``: how it ended."""
    RESTARTED = "restarted"
    """``restarts`` of processes of the name ``role``."""
    LOST = "lost"
    """``ended``: processes of the name ``role`` that nothing replaced."""
    THROTTLED = "throttled"
    """``periods`` of 100 ms, ``throttled``: those in which it had to wait; ``share``: of all."""
    QUEUE_OVERFLOWED = "listen queue overflowed"
    """``overflows``: connections; ``limit`` of the queue, and the name ``process`` that has it, if known;
    ``without_reply``: connections that it turned away again and again, where there are any."""
    SOME_QUEUE_OVERFLOWED = "a listen queue overflowed"
    """As before, but the queue may have been another server's."""
    QUEUE_FULL = "listen queue full"
    """``longest`` at a ``limit``, of the name ``process``."""
    BACKLOG_CLIPPED = "backlog clipped"
    """``asked`` for, and ``given``."""
    TRACKING_FULL = "table of connections full"
    """``dropped`` packets; ``entries`` of ``most`` in the end, if known."""
    HALF_OPEN_QUEUE_FULL = "queue of half-open connections full"
    """``dropped`` requests to connect, ``half_open``: those that the kernel counts under this reason."""
    CONNECTS_DROPPED = "connects dropped"
    """``dropped`` requests to connect."""
    CONNECTS_REPEATED = "connects repeated"
    """``share`` of the ``connects`` that took 1, 3 or 7 s."""
    STARVED = "starved"
    """``served`` of ``connections``."""
    STARVED_BY_SLOTS = "starved by slots"
    """As before, and as many were served as there are workers and threads."""
    PACKETS_DROPPED = "packets dropped"
    """``dropped`` packets, ``softirq_share``: of the window, of the CPU that did most of this work."""
    KERNEL_BUSY = "kernel busy with packets"
    """As before."""
    STOLEN = "stolen time"
    """``share``: of the time of the trial's CPUs."""
    HEAT = "slowed down for heat"
    """``times``."""
    PAGES_MOVED = "memory changed its form"
    """``huge_pages`` that came or went, ``migrated`` pages that went to another node, on the machine."""
    OTHERS_RAN = "other programs ran"
    """``share``: of the time of the server's CPUs; of all of the trial's, where nobody counted them apart."""
    OTHERS_RAN_BESIDE_GENERATOR = "other programs ran beside the generator"
    """``share``: of the time of the trial's CPUs; on those that the generator has alone."""
    WAITED_FOR_MEMORY = "waited for memory"
    """``share``: of the window."""
    MACHINE_WAITED_FOR_MEMORY = "machine waited for memory"
    """``share``: of the window; other programs may have waited."""
    POOL_GREW = "pool grew"
    """``more`` processes of the name ``role`` at the window's end than at its beginning."""
    ONE_THREAD_FULL = "one thread full"
    """``cores``: of the busiest process, ``busiest_thread``: the share of one, ``cpus``: the server's."""
    ONE_CORE_FULL = "one core full"
    """As before, ``threads``: how many threads took turns."""
    SLOTS_BUSY = "workers and threads busy"
    """All ``slots`` had one of the ``in_flight`` requests, for ``held_ns``; ``cpu_share``: of its CPUs.
    Name ``waits``: what its threads wait for most of their time, if known."""
    OVERLOADED = "more was asked than it can do"
    """``asked_per_s``, ``done_per_s``, and how many requests it ``owed`` at the end."""
    CLOSED_AFTER_EACH = "closed after each reply"
    """``reconnects``, for ``done`` requests."""
    CONNECTION_CAP = "connections at a cap"
    """``cap``: how many it has open at most, of ``connections``; ``waiting``: those in its queue, always."""
    SILENT_AFTER_ONE = "silent after one reply"
    """Of ``served`` connections no one got a second reply; ``waited``: requests in vain."""
    WRONG_REPLIES = "wrong replies"
    """``wrong`` of ``done`` replies; ``share``."""
    REFUSED = "requests refused"
    """``refused`` of ``done`` replies, most of them with ``status``."""
    FIGURES_CONTRADICT = "figures that contradict each other"
    """``off``: by which share requests in flight differ from rate times latency."""
    UNEQUAL_WORK = "unequal work"
    """``own_bytes`` of its replies, heads included, and ``other_bytes`` of those of the subject named
    ``other``."""
    PORTS_KEPT_BY_EARLIER = "ports kept by earlier trials"
    """``carried``: sockets in TIME_WAIT when the trial began; ``ports`` of the host's network."""
    SERVER_WITHOUT_PORTS = "server without ports"
    """``ports`` of its network, ``waiting``: sockets in TIME_WAIT at the window's end; the name ``process``,
    where it is not the server that lacked them.
    """
    DESCRIPTORS_USED_UP = "descriptors used up"
    """``used`` of ``limit`` open files, of the process that is nearest to its own."""
    SELECT_FULL = "select() full"
    """``connections`` at its address at most; select(2) knows 1,024 descriptors."""
    REPLIES_HELD_BACK = "replies held back"
    """``share``: of the replies, those that came after the time of a delayed acknowledgement,
    ``delay_ns``.
    """
    MEMORY_GREW = "memory grew"
    """``grown_bytes`` from ``first_bytes`` on, ``per_request_bytes``."""
    CROWDED = "more ready than CPUs"
    """``ready``: how many of its threads ran or could have run, on average, on ``cpus``."""
    FORKED_FOR_EACH = "a program for each request"
    """``forks`` for ``done`` requests."""
    UNEVEN_WORKERS = "uneven workers"
    """``workers``, of which the busiest used ``most_cores``, and the least busy ``least_cores``."""
    UNEVEN_CONNECTIONS = "uneven connections"
    """``workers``, of which one had ``most`` connections and one ``least``; each works on ``slots``."""
    STILL_COLD = "still warming up"
    """``early_per_s`` in the first seconds, ``late_per_s`` at the end; ``seconds`` until then."""
    DEBUGGING = "development mode"
    """Name ``sign``: what shows it."""
    LOCK_HELD = "a lock that all want"
    """As workers and threads busy; ``same_share``: of the looks at waiting threads, those at one lock."""
    DISK_WAITED = "waited for the disk"
    """``share``: of its threads' time."""
    DOWNSTREAM_BUSY = "waited for another server"
    """``connections`` to others, on average busy ``share`` of the time; ``port``: of the busiest peer."""


class Affected(StrEnum):
    """Which figures a generator's limit may have moved."""

    LATENCY = "latency"
    """The rate was kept, so throughput is as asked for."""
    ALL = "throughput and latency"


class Advice(StrEnum):
    """What to change; its numbers are those of the finding."""

    LEAVE_CPUS_TO_GENERATOR = "leave CPUs to the generator"
    RAISE_CONNECTIONS = "raise the generator's connections"
    RAISE_PORTS = "raise the range of ports"
    RAISE_DESCRIPTORS = "raise the limit of descriptors"
    RAISE_GENERATOR_QUOTA = "raise the generator's quota"
    FEWER_CONNECTIONS = "fewer connections"
    PACE_PRECISELY = "pace precisely"
    ADD_GENERATOR_THREADS = "add threads to the generator"
    HOLD_TO_CPUS = "hold it to its CPUs"
    RAISE_MEMORY = "raise the memory limit"
    READ_LOG_FOR_LIMITS = "read its log for limits"
    READ_LOG = "read its log"
    RAISE_QUOTA = "raise the quota"
    RAISE_BACKLOG = "raise the backlog"
    RAISE_SOMAXCONN = "raise somaxconn"
    RAISE_SYN_BACKLOG = "raise the queue of half-open connections"
    ADD_WORKERS = "add workers"
    ADD_WORKERS_OR_CLOSE = "add workers, or turn keep-alive off"
    RAISE_NETDEV_BACKLOG = "raise the queue of packets"
    REPEAT_ELSEWHERE = "repeat it elsewhere"
    COOL = "cool it"
    END_OTHERS = "end other programs"
    WARM_UP_LONGER = "warm up longer"
    ADD_PROCESSES = "add processes"
    ADD_THREADS = "add threads or workers"
    ASK_FOR_LESS = "ask for less"
    KEEP_ALIVE = "turn keep-alive on"
    READ_LOG_FOR_ERRORS = "read its log for errors"
    CHANGE_REQUEST = "change the request"
    FEWER_WORKERS = "fewer workers"
    KEEP_CONNECTIONS = "keep its connections to others"
    RAISE_SERVER_DESCRIPTORS = "raise the server's limit of descriptors"
    TAKE_EPOLL = "take another event loop"
    SEND_AT_ONCE = "send replies at once"
    FIND_LEAK = "find the leak"
    KEEP_PROGRAMS = "keep programs running"
    SPREAD_CONNECTIONS = "spread connections over workers"
    WARM_UP_FIRST = "warm up first"
    TURN_DEBUG_OFF = "turn development mode off"
    SHORTEN_LOCK = "shorten the lock"
    LOG_LATER = "write logs later"
    RAISE_TRACKING = "raise the table of connections"
    PIN_MEMORY = "pin memory"
    RAISE_POOL = "raise the pool of connections"
    RAISE_CONNECTION_CAP = "raise the cap of connections"
    OWN_NETWORK = "a network of its own"
    CROSS_CHECK = "another generator beside it"
    SEND_THE_SAME = "send the same"


class Consequence(StrEnum):
    """What a finding means for the figures."""

    AT_LEAST = "the server is at least so good"
    OF_BOTH = "of server and disturbance"
    OF_SUCCESSES = "of the successes only"
    CONNECT_WAITS = "waits to connect"
    OF_THE_SERVED = "of the served only"
    OF_THE_LIMIT = "of the limit"
    CHANGING = "changing"
    OF_THE_WAITING = "of what it waits for"
    OF_SOME_CPUS = "of some CPUs"
    OF_A_QUEUE = "of a queue that grows"
    WITH_CONNECTS = "with connects"
    OF_ERRORS = "of errors too"
    WITH_A_DELAY = "with a delay of the kernel's"
    WITH_TURNS = "with waits for a turn"
    WITH_A_PROGRAM = "with a program for each"
    OF_THE_FULLEST = "of the fullest worker"
    WITH_CHECKS = "with checks of development"
    OF_NOTHING = "of nothing"
    OF_OTHER_WORK = "of other work too"


class Experiment(StrEnum):
    """What would confirm a finding: what to change for one measurement."""

    STRONGER_GENERATOR = "a stronger generator"
    QUIET_MACHINE = "a quiet machine"
    MORE_MEMORY = "more memory"
    LONGER_LIVES = "longer lives of workers"
    MORE_QUOTA = "more quota"
    LONGER_QUEUE = "a longer queue"
    FEWER_CONNECTIONS = "fewer connections"
    LONGER_WARM_UP = "a longer warm-up"
    MORE_THREADS = "more threads"
    MORE_PROCESSES = "more processes"
    FEWER_PROCESSES = "fewer processes"
    LOWER_RATE = "a lower rate"
    KEPT_OPEN = "connections that stay open"
    RIGHT_REPLIES = "replies as they should be"
    MORE_PORTS = "more ports"
    MORE_DESCRIPTORS = "more descriptors"
    NO_DELAY = "no delay of packets"
    LONGER_RUN = "a longer run"
    NO_PROGRAM = "no program for each request"
    EVEN_CONNECTIONS = "a connection for each request"
    NO_DEBUG = "production mode"
    NO_LOCK = "without the lock"
    NO_LOG = "without its log"
    LARGER_POOL = "a larger pool"
    LARGER_TABLE = "a larger table"
    PINNED_MEMORY = "pinned memory"
    FRESH_NETWORK = "a fresh network"
    OTHER_GENERATOR = "another generator"
    SAME_REPLIES = "the same replies"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One trial, its cell, and its subject as resolved (null: not recorded)."""

    cell: Cell
    trial: Trial
    subject: SubjectRecord | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding of a rule: its kind, its numbers and names, and advice, if there is any."""

    rule: str
    kind: Symptom
    confidence: Confidence
    numbers: Mapping[str, float] = field(default_factory=dict)
    """Behind it, by name."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Behind it, by what they name."""
    advice: Advice | None = field(default=None, metadata=INTERNAL)
    shareable: bool = field(default=False, metadata=INTERNAL)
    """Without the numbers of one trial it says the same of several subjects."""
    affected: Affected | None = field(default=None, metadata=INTERNAL)
    """What a limit of the generator may have moved."""
    knob: Knob | None = None
    """The subject's setting that the advice turns."""

    @property
    def alike(self) -> object:
        """The key that findings with the same meaning share."""
        numbers = () if self.shareable else tuple(sorted(self.numbers.items()))
        return (
            self.rule,
            self.kind,
            self.confidence,
            self.affected,
            tuple(sorted(self.names.items())),
            numbers,
        )


SERVER_ROLES = ("server", "master", "worker", "other")
"""Roles of the server's own processes: not of its frontend, nor of a service."""

Rule = Callable[[Evidence], list[Finding]]
"""A rule returns no finding when nothing is wrong, or when it lacks the numbers to decide."""
