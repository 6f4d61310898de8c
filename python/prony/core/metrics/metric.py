"""What a metric is: a quantity with its unit, its direction, its definition and its source.

>>> Unit("bytes") is Unit.BYTES
True

Where the numbers come from: files of the kernel with their manual pages, parts of the Recording.

>>> STAT
'/proc/stat (proc_stat(5))'
"""

from dataclasses import dataclass
from enum import StrEnum

ACCOUNT = "engine's Recording, account and window"
PROC = "/proc/PID/stat (proc_pid_stat(5)), all processes of the subject"
SMAPS = "/proc/PID/smaps_rollup (kernel: Documentation/filesystems/proc.rst)"
STATUS = "/proc/PID/status, /proc/PID/task/TID/status (proc_pid_status(5)), at the edges of the window"
TASK = "/proc/PID/task/TID/stat (proc_pid_task(5)), at the edges of the window"
DESCRIPTORS = "/proc/PID/fd (proc_pid_fd(5)), at the end of the window"
SOCK_DIAG = "netlink (sock_diag(7)) in the network of the trial, twice a second"
GROUPS = "memory.peak, on v1 memory.max_usage_in_bytes, of the subject's groups (kernel: cgroup-v2.rst)"
STAT = "/proc/stat (proc_stat(5))"
CONNECTIONS = "engine's Recording, connections"
GENERATOR_USAGE = "engine's Recording, generator (per-thread rusage)"
HISTOGRAM = "engine's Recording, distributions (HdrHistogram, 3 significant digits; min, max and sum exact)"


class Unit(StrEnum):
    """What a quantity is counted in. ``DURATION`` is nanoseconds, ``RATIO`` 0 to 1, ``PERCENT`` 100 = one
    core.
    """

    RATE = "rate"
    DURATION = "duration"
    RATIO = "ratio"
    PERCENT = "percent"
    BYTES = "bytes"
    COUNT = "count"


class Better(StrEnum):
    """Which direction is an improvement."""

    LOWER = "lower"
    HIGHER = "higher"
    NEITHER = "neither"


@dataclass(frozen=True, slots=True)
class Metric:
    """One quantity: ``definition`` is a sentence, ``source`` where the numbers come from."""

    name: str
    unit: Unit
    better: Better
    title: str
    definition: str
    source: str
