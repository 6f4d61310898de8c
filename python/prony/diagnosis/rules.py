"""The list of all rules, and of all kinds of findings: a new rule is added here, and nowhere else."""

from collections.abc import Mapping
from types import MappingProxyType

from prony.diagnosis.asked_often import ASKED_OFTEN, CONNECTED_OFTEN, asked_often
from prony.diagnosis.busy_slots import SLOTS_BUSY, busy_slots
from prony.diagnosis.clipped_backlog import BACKLOG_CLIPPED, clipped_backlog
from prony.diagnosis.closed_after_each import CLOSED_AFTER_EACH, CONNECTS_FILL_CPU, closed_after_each
from prony.diagnosis.closed_beyond import CLOSED_BEYOND, closed_beyond
from prony.diagnosis.collector import COLLECTS, STACKS_COLLECT, collector
from prony.diagnosis.connect_ladder import CONNECTS_REPEATED, connect_ladder
from prony.diagnosis.connection_cap import CONNECTION_CAP, connection_cap
from prony.diagnosis.crowded import CROWDED, crowded
from prony.diagnosis.debugging import DEBUGGING, debugging
from prony.diagnosis.descriptors import DESCRIPTORS_USED_UP, SELECT_FULL, descriptors
from prony.diagnosis.disk import DISK_WAITED, disk
from prony.diagnosis.downstream import DOWNSTREAM_BUSY, downstream
from prony.diagnosis.dropped_connects import CONNECTS_DROPPED, HALF_OPEN_QUEUE_FULL, dropped_connects
from prony.diagnosis.earlier_trials import PORTS_KEPT_BY_EARLIER, earlier_trials
from prony.diagnosis.evidence import Rule
from prony.diagnosis.few_at_a_time import PEER_SLOW, STANDS_STILL, WAITS_WITHIN, few_at_a_time
from prony.diagnosis.forks import FORKED_FOR_EACH, forks
from prony.diagnosis.generator_limited import OF_GENERATOR, generator_limited
from prony.diagnosis.growing_pool import POOL_GREW, growing_pool
from prony.diagnosis.heat import HEAT, heat
from prony.diagnosis.held_back import REPLIES_HELD_BACK, held_back
from prony.diagnosis.killed import ENDED_UNDER_LOAD, KILLED_FOR_MEMORY, killed
from prony.diagnosis.kinds import Symptom
from prony.diagnosis.listen_queue import QUEUE_FULL, QUEUE_OVERFLOWED, SOME_QUEUE_OVERFLOWED, listen_queue
from prony.diagnosis.littles_law import FIGURES_CONTRADICT, littles_law
from prony.diagnosis.lock_held import LOCK_HELD, lock_held
from prony.diagnosis.memory_growth import MEMORY_GREW, memory_growth
from prony.diagnosis.memory_pressure import MACHINE_WAITED_FOR_MEMORY, WAITED_FOR_MEMORY, memory_pressure
from prony.diagnosis.moved_pages import PAGES_MOVED, moved_pages
from prony.diagnosis.network_limit import KERNEL_BUSY, PACKETS_DROPPED, network_limit
from prony.diagnosis.one_core import ONE_CORE_FULL, ONE_THREAD_FULL, one_core
from prony.diagnosis.other_programs import OTHERS_RAN, OTHERS_RAN_BESIDE_GENERATOR, other_programs
from prony.diagnosis.overload import OVERLOADED, overload
from prony.diagnosis.refused import REFUSED, refused
from prony.diagnosis.restarted import LOST, RESTARTED, STARTS_COST, WORKER_FOR_EACH, restarted
from prony.diagnosis.sent_at_a_rate import SENT_AT_A_RATE, sent_at_a_rate
from prony.diagnosis.server_ports import SERVER_WITHOUT_PORTS, server_ports
from prony.diagnosis.shared_cpus import STRAYED, shared_cpus
from prony.diagnosis.silent_after_one import SILENT_AFTER_ONE, silent_after_one
from prony.diagnosis.spinning import SPINS, spinning
from prony.diagnosis.starvation import STARVED, STARVED_BY_SLOTS, starved
from prony.diagnosis.still_cold import STILL_COLD, still_cold
from prony.diagnosis.stolen_time import STOLEN, stolen_time
from prony.diagnosis.throttled import THROTTLED, throttled
from prony.diagnosis.tracking_full import TRACKING_FULL, tracking_full
from prony.diagnosis.unequal_work import UNEQUAL_WORK
from prony.diagnosis.uneven_workers import UNEVEN_CONNECTIONS, UNEVEN_WORKERS, uneven_workers
from prony.diagnosis.wrong_replies import (
    MOSTLY_ERRORS,
    RATE_LIMITED,
    REFUSED_BY_ASKED,
    TURNED_AWAY,
    WRONG_REPLIES,
    wrong_replies,
)

RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "D38": refused,
        "D31": wrong_replies,
        "D33": debugging,
        "D39": littles_law,
        "D23": generator_limited,
        "D24": shared_cpus,
        "D19": killed,
        "D22": restarted,
        "D08": descriptors,
        "D06": earlier_trials,
        "D05": server_ports,
        "D07": tracking_full,
        "D14": throttled,
        "D01": listen_queue,
        "D03": clipped_backlog,
        "D02": dropped_connects,
        "D04": connect_ladder,
        "D11": silent_after_one,
        "D09": connection_cap,
        "D48": closed_beyond,
        "D10": starved,
        "D25": network_limit,
        "D26": stolen_time,
        "D27": heat,
        "D29": moved_pages,
        "D28": other_programs,
        "D20": memory_pressure,
        "D37": growing_pool,
        "D30": held_back,
        "D42": forks,
        "D34": disk,
        "D35": downstream,
        "D16": lock_held,
        "D45": collector,
        "D47": spinning,
        "D46": sent_at_a_rate,
        "D18": uneven_workers,
        "D13": one_core,
        "D43": few_at_a_time,
        "D44": asked_often,
        "D17": busy_slots,
        "D36": crowded,
        "D40": still_cold,
        "D21": memory_growth,
        "D41": overload,
        "D12": closed_after_each,
    }
)
"""In the order in which reports show their findings: first faults of the bench, then death, limits,
queues, the machine, and last resources that the server did not use.
"""

PRECEDENCE: tuple[Symptom, ...] = (
    FIGURES_CONTRADICT,
    PORTS_KEPT_BY_EARLIER,
    *OF_GENERATOR,
    KILLED_FOR_MEMORY,
    SELECT_FULL,
    DESCRIPTORS_USED_UP,
    SERVER_WITHOUT_PORTS,
    TRACKING_FULL,
    ENDED_UNDER_LOAD,
    THROTTLED,
    SILENT_AFTER_ONE,
    RATE_LIMITED,
    TURNED_AWAY,
    REFUSED_BY_ASKED,
    MOSTLY_ERRORS,
    CONNECTION_CAP,
    CLOSED_BEYOND,
    STARVED_BY_SLOTS,
    STARVED,
    OVERLOADED,
    BACKLOG_CLIPPED,
    QUEUE_OVERFLOWED,
    HALF_OPEN_QUEUE_FULL,
    CONNECTS_DROPPED,
    KERNEL_BUSY,
    PACKETS_DROPPED,
    WAITED_FOR_MEMORY,
    WORKER_FOR_EACH,
    STARTS_COST,
    RESTARTED,
    LOST,
    REPLIES_HELD_BACK,
    FORKED_FOR_EACH,
    DISK_WAITED,
    CONNECTED_OFTEN,
    LOCK_HELD,
    DOWNSTREAM_BUSY,
    *WAITS_WITHIN,
    STANDS_STILL,
    COLLECTS,
    STACKS_COLLECT,
    SPINS,
    SENT_AT_A_RATE,
    ASKED_OFTEN,
    PEER_SLOW,
    UNEVEN_WORKERS,
    UNEVEN_CONNECTIONS,
    ONE_THREAD_FULL,
    ONE_CORE_FULL,
    SLOTS_BUSY,
    CONNECTS_FILL_CPU,
    OTHERS_RAN,
    STOLEN,
    QUEUE_FULL,
    SOME_QUEUE_OVERFLOWED,
    CONNECTS_REPEATED,
    REFUSED,
    WRONG_REPLIES,
    DEBUGGING,
    UNEQUAL_WORK,
    MEMORY_GREW,
    CLOSED_AFTER_EACH,
    POOL_GREW,
    STILL_COLD,
    CROWDED,
    OTHERS_RAN_BESIDE_GENERATOR,
    STRAYED,
    HEAT,
    PAGES_MOVED,
    MACHINE_WAITED_FOR_MEMORY,
)
"""Of all kinds: the first that limits a subject is the one that its line names. Why a queue was full comes
before that it was.
"""
