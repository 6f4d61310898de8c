"""What monitors observe of a subject and its machine while it runs.

CPU times are cumulative nanoseconds; monotonic stamps are CLOCK_MONOTONIC.

>>> ThreadUsage(pid=7, tid=8, name="worker", cpu_ns=1_000_000).name
'worker'
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from prony.model.address import AddressKind


class Phase(StrEnum):
    """The part of a trial that a sample belongs to."""

    IDLE = "idle"
    WARMUP = "warmup"
    WINDOW = "window"
    DRAIN = "drain"


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """One process of the subject at one moment. CPU times and switches are cumulative since its start.

    ``pss_bytes``, ``uss_bytes`` and ``descriptors`` are null except at the end of the load: they are
    expensive to read. ``rss_peak_bytes`` is the kernel's own high-water mark.
    """

    pid: int
    start_time_ticks: int
    role: str
    command: str
    user_ns: int
    system_ns: int
    rss_bytes: int
    vsz_bytes: int
    threads: int
    pss_bytes: int | None = None
    uss_bytes: int | None = None
    rss_peak_bytes: int | None = None
    voluntary_switches: int | None = None
    involuntary_switches: int | None = None
    descriptors: int | None = None

    @property
    def identity(self) -> tuple[int, int]:
        """Which process it is: a number alone is used again."""
        return self.pid, self.start_time_ticks

    @property
    def cpu_ns(self) -> int:
        """Its CPU time, of user and system."""
        return self.user_ns + self.system_ns


@dataclass(frozen=True, slots=True)
class ThreadUsage:
    """What one thread of the subject used in the window; ``cpu_ns`` of its own, ``name`` as the kernel has
    it.
    """

    pid: int
    tid: int
    name: str
    cpu_ns: int


@dataclass(frozen=True, slots=True)
class ThreadSchedule:
    """What one thread did while its switches were watched. Its four times add up to the time for which it was
    there.
    """

    pid: int
    tid: int
    name: str
    running_ns: int
    preempted_ns: int
    blocked_ns: int
    """It waited for something, and then for a CPU: the kernel records no waking."""
    unknown_ns: int
    """Records were lost."""
    preemptions: int
    """How often another thread took its CPU."""
    waits: int
    """How often it left its CPU by itself."""


@dataclass(frozen=True, slots=True)
class ListenerUsage:
    """How full the accept queue of one listening socket was in the window: the fullest of ``samples``."""

    process: str | None
    """The process at whose declared address it listens (`server`, `frontend`, a service's name); null: it
    listens elsewhere.
    """
    kind: AddressKind
    address: str
    """Host and port, or a Unix socket's path, as the kernel reports it. The `inode` distinguishes sockets
    that share an address.
    """
    inode: int
    queued_max: int
    limit: int
    samples: int


@dataclass(frozen=True, slots=True)
class Sample:
    """The subject's processes and the machine at one moment. Machine CPU times are cumulative, all CPUs.

    ``gauges``: other values read at that moment, by name: length and limit of accept queues, connections,
    pressure, frequency (docs/archive-format.md lists them).
    """

    monotonic_ns: int
    phase: Phase
    processes: tuple[ProcessRow, ...]
    machine_busy_ns: int
    machine_idle_ns: int
    machine_steal_ns: int
    gauges: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Slice:
    """A short window of load on a server that stays, in turn with the others of its block.

    From ``began_ns`` to ``ended_ns`` it had its turn, from ``open_ns`` to ``close_ns`` requests counted
    (CLOCK_MONOTONIC): ``ok`` and ``answered`` within the window, ``failed`` of all of it. ``cpu_ns``: of the
    server's processes in the window, null when one of them ended or began meanwhile, or where another server
    of the block has no such figure. In the turn the block's other servers used ``neighbours_ns``, all other
    programs ``others_ns``, and the hypervisor took ``steal_ns``, on the trial's CPUs. ``counts``: the round
    is whole, nothing disturbed it, and each server has a figure by its rounds.
    """

    round: int
    place: int
    began_ns: int
    open_ns: int
    close_ns: int
    ended_ns: int
    ok: int
    answered: int
    failed: int
    cpu_ns: int | None
    neighbours_ns: int
    others_ns: int
    steal_ns: int
    counts: bool = True


@dataclass(frozen=True, slots=True)
class LogTail:
    """The last lines that a subject wrote. ``truncated``: there were more."""

    text: str
    truncated: bool = False
