"""What each kind of finding means: for the figures, for what limits a server, and what would confirm it.

Pure tables; each kind of finding has a row. Must not know evidence.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType

from prony.diagnosis.evidence import Advice, Consequence, Experiment, Symptom
from prony.diagnosis.knobs import Turned


class Bearing(StrEnum):
    """What a finding is to the one line that says what limits a subject."""

    LIMITS = "limits"
    """It is the limit, whatever the CPUs do."""
    LIMITS_IDLE = "limits while CPUs are idle"
    """It is the limit unless the CPUs are full: then they are."""
    ADDS = "adds"
    """It disturbs, or costs, and is said beside the line."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """The row of one kind of finding."""

    bearing: Bearing
    consequence: Consequence
    experiment: Experiment


_GENERATOR = Meaning(Bearing.LIMITS, Consequence.AT_LEAST, Experiment.STRONGER_GENERATOR)
_MACHINE = Meaning(Bearing.ADDS, Consequence.OF_BOTH, Experiment.QUIET_MACHINE)
_OTHERS = Meaning(Bearing.LIMITS_IDLE, Consequence.OF_BOTH, Experiment.QUIET_MACHINE)
_DEAD = Meaning(Bearing.LIMITS, Consequence.OF_SUCCESSES, Experiment.MORE_MEMORY)
_REPLACED = Meaning(Bearing.LIMITS_IDLE, Consequence.CHANGING, Experiment.LONGER_LIVES)
_QUEUE = Meaning(Bearing.LIMITS, Consequence.CONNECT_WAITS, Experiment.LONGER_QUEUE)
_FULL = Meaning(Bearing.ADDS, Consequence.CONNECT_WAITS, Experiment.LONGER_QUEUE)
_STARVED = Meaning(Bearing.LIMITS, Consequence.OF_THE_SERVED, Experiment.FEWER_CONNECTIONS)
_ONE_CORE = Meaning(Bearing.LIMITS_IDLE, Consequence.OF_SOME_CPUS, Experiment.MORE_PROCESSES)
_MEMORY = Meaning(Bearing.LIMITS_IDLE, Consequence.OF_THE_LIMIT, Experiment.MORE_MEMORY)

_WRONG = Meaning(Bearing.ADDS, Consequence.OF_ERRORS, Experiment.RIGHT_REPLIES)
_WAITING = Meaning(Bearing.LIMITS_IDLE, Consequence.OF_THE_WAITING, Experiment.MORE_THREADS)

MEANINGS: Mapping[Symptom, Meaning] = MappingProxyType(
    {
        # In the order of precedence: the first that limits a subject is the one that its line names.
        Symptom.FIGURES_CONTRADICT: Meaning(
            Bearing.LIMITS, Consequence.OF_NOTHING, Experiment.OTHER_GENERATOR
        ),
        Symptom.PORTS_KEPT_BY_EARLIER: Meaning(
            Bearing.LIMITS, Consequence.OF_ERRORS, Experiment.FRESH_NETWORK
        ),
        **{kind: _GENERATOR for kind in Symptom if kind.name.startswith("GENERATOR_")},
        Symptom.KILLED_FOR_MEMORY: _DEAD,
        Symptom.SELECT_FULL: replace(_STARVED, experiment=Experiment.FEWER_CONNECTIONS),
        Symptom.DESCRIPTORS_USED_UP: replace(_STARVED, experiment=Experiment.MORE_DESCRIPTORS),
        Symptom.SERVER_WITHOUT_PORTS: Meaning(Bearing.LIMITS, Consequence.OF_ERRORS, Experiment.MORE_PORTS),
        Symptom.TRACKING_FULL: replace(_QUEUE, experiment=Experiment.LARGER_TABLE),
        Symptom.ENDED_UNDER_LOAD: _DEAD,
        Symptom.THROTTLED: Meaning(Bearing.LIMITS, Consequence.OF_THE_LIMIT, Experiment.MORE_QUOTA),
        Symptom.SILENT_AFTER_ONE: Meaning(Bearing.LIMITS, Consequence.OF_THE_SERVED, Experiment.KEPT_OPEN),
        Symptom.CONNECTION_CAP: _STARVED,
        Symptom.STARVED_BY_SLOTS: _STARVED,
        Symptom.STARVED: _STARVED,
        Symptom.OVERLOADED: Meaning(Bearing.ADDS, Consequence.OF_A_QUEUE, Experiment.LOWER_RATE),
        # Why it was full comes before that it was.
        Symptom.BACKLOG_CLIPPED: _QUEUE,
        Symptom.QUEUE_OVERFLOWED: _QUEUE,
        Symptom.HALF_OPEN_QUEUE_FULL: _QUEUE,
        Symptom.CONNECTS_DROPPED: _QUEUE,
        Symptom.KERNEL_BUSY: Meaning(Bearing.LIMITS_IDLE, Consequence.OF_THE_LIMIT, Experiment.QUIET_MACHINE),
        Symptom.PACKETS_DROPPED: Meaning(
            Bearing.LIMITS_IDLE, Consequence.OF_THE_LIMIT, Experiment.QUIET_MACHINE
        ),
        Symptom.WAITED_FOR_MEMORY: _MEMORY,
        Symptom.RESTARTED: _REPLACED,
        Symptom.LOST: _REPLACED,
        Symptom.REPLIES_HELD_BACK: Meaning(
            Bearing.LIMITS_IDLE, Consequence.WITH_A_DELAY, Experiment.NO_DELAY
        ),
        Symptom.FORKED_FOR_EACH: Meaning(Bearing.ADDS, Consequence.WITH_A_PROGRAM, Experiment.NO_PROGRAM),
        Symptom.DISK_WAITED: replace(_WAITING, experiment=Experiment.NO_LOG),
        Symptom.DOWNSTREAM_BUSY: replace(_WAITING, experiment=Experiment.LARGER_POOL),
        Symptom.LOCK_HELD: replace(_WAITING, experiment=Experiment.NO_LOCK),
        Symptom.UNEVEN_WORKERS: Meaning(
            Bearing.LIMITS_IDLE, Consequence.OF_THE_FULLEST, Experiment.EVEN_CONNECTIONS
        ),
        Symptom.UNEVEN_CONNECTIONS: Meaning(
            Bearing.LIMITS_IDLE, Consequence.OF_THE_FULLEST, Experiment.EVEN_CONNECTIONS
        ),
        Symptom.ONE_THREAD_FULL: _ONE_CORE,
        Symptom.ONE_CORE_FULL: _ONE_CORE,
        Symptom.SLOTS_BUSY: _WAITING,
        Symptom.OTHERS_RAN: _OTHERS,
        Symptom.STOLEN: _OTHERS,
        Symptom.QUEUE_FULL: _FULL,
        Symptom.SOME_QUEUE_OVERFLOWED: _FULL,
        Symptom.CONNECTS_REPEATED: _FULL,
        Symptom.REFUSED: _WRONG,
        Symptom.WRONG_REPLIES: _WRONG,
        Symptom.DEBUGGING: Meaning(Bearing.ADDS, Consequence.WITH_CHECKS, Experiment.NO_DEBUG),
        Symptom.UNEQUAL_WORK: Meaning(Bearing.ADDS, Consequence.OF_OTHER_WORK, Experiment.SAME_REPLIES),
        Symptom.MEMORY_GREW: Meaning(Bearing.ADDS, Consequence.CHANGING, Experiment.LONGER_RUN),
        Symptom.CLOSED_AFTER_EACH: Meaning(Bearing.ADDS, Consequence.WITH_CONNECTS, Experiment.KEPT_OPEN),
        Symptom.POOL_GREW: Meaning(Bearing.ADDS, Consequence.CHANGING, Experiment.LONGER_WARM_UP),
        Symptom.STILL_COLD: Meaning(Bearing.ADDS, Consequence.CHANGING, Experiment.LONGER_WARM_UP),
        Symptom.CROWDED: Meaning(Bearing.ADDS, Consequence.WITH_TURNS, Experiment.FEWER_PROCESSES),
        Symptom.OTHERS_RAN_BESIDE_GENERATOR: _MACHINE,
        Symptom.STRAYED: _MACHINE,
        Symptom.HEAT: _MACHINE,
        Symptom.PAGES_MOVED: replace(_MACHINE, experiment=Experiment.PINNED_MEMORY),
        Symptom.MACHINE_WAITED_FOR_MEMORY: _MACHINE,
    }
)

TURNED: Mapping[Advice, tuple[Turned, ...]] = MappingProxyType(
    {
        Advice.ADD_THREADS: (Turned.THREADS, Turned.PROCESSES),
        Advice.ADD_WORKERS: (Turned.THREADS, Turned.PROCESSES),
        Advice.ADD_WORKERS_OR_CLOSE: (Turned.THREADS, Turned.PROCESSES),
        Advice.ADD_PROCESSES: (Turned.PROCESSES,),
        Advice.FEWER_WORKERS: (Turned.THREADS, Turned.PROCESSES),
        Advice.RAISE_BACKLOG: (Turned.BACKLOG,),
        Advice.RAISE_CONNECTION_CAP: (Turned.CONNECTIONS,),
        Advice.KEEP_ALIVE: (Turned.KEEP_ALIVE,),
        Advice.KEEP_CONNECTIONS: (Turned.UPSTREAM,),
        Advice.READ_LOG_FOR_LIMITS: (Turned.LIFE,),
        Advice.SEND_AT_ONCE: (Turned.NO_DELAY,),
        Advice.SPREAD_CONNECTIONS: (Turned.OWN_SOCKETS, Turned.PROCESSES),
        Advice.LOG_LATER: (Turned.LOG,),
    }
)
"""What advice turns: the first that the subject's catalogue entry has a setting for."""
