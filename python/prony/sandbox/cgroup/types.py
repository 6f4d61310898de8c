"""The types of control groups: limits, how far they hold, counters, a group, the tree of groups.

>>> Counters(cpu_ns=7, memory_peak_bytes=5) - Counters(cpu_ns=3, memory_peak_bytes=4)
Counters(cpu_ns=4, memory_peak_bytes=5)
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Literal, Protocol

LimitName = Literal["cpus", "cpu_quota", "memory", "pids"]
LIMITS: tuple[LimitName, ...] = ("cpus", "cpu_quota", "memory", "pids")

# The kernel refuses a quota below 1 ms in a period of 100 ms.
_LEAST_QUOTA = 0.01


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a group; null: the same as Prony's.

    ``cpu_quota`` is in CPUs, such as 1.5; ``memory_bytes`` is memory without swap; ``pids`` counts threads.
    """

    cpus: tuple[int, ...] | None = None
    cpu_quota: float | None = None
    memory_bytes: int | None = None
    pids: int | None = None

    def __post_init__(self) -> None:
        """Refuse limits that no kernel accepts.

        *Errors*: ValueError.
        """
        if self.cpus is not None and not self.cpus:
            raise ValueError("a group needs at least one CPU")
        if self.cpu_quota is not None and not self.cpu_quota >= _LEAST_QUOTA:
            raise ValueError(f"`{self.cpu_quota}` is not a CPU quota; expected at least {_LEAST_QUOTA}")
        if self.memory_bytes is not None and self.memory_bytes <= 0:
            raise ValueError(f"`{self.memory_bytes}` is not a memory limit; expected bytes above 0")
        if self.pids is not None and self.pids <= 0:
            raise ValueError(f"`{self.pids}` is not a limit of processes; expected at least 1")

    def asked(self) -> dict[LimitName, int | float | tuple[int, ...]]:
        """Return the limits that are set, by name."""
        values: dict[LimitName, int | float | tuple[int, ...] | None] = {
            "cpus": self.cpus,
            "cpu_quota": self.cpu_quota,
            "memory": self.memory_bytes,
            "pids": self.pids,
        }
        return {name: value for name, value in values.items() if value is not None}


# Levels, not counts: their difference means nothing.
_LEVELS = frozenset({"memory_current_bytes", "memory_peak_bytes", "pids_peak"})


@dataclass(frozen=True, slots=True, repr=False)
class Counters:
    """The kernel's counters of a group since its creation; null where ``missing`` has the reason.

    ``cpu_user_ns`` and ``cpu_system_ns`` split ``cpu_ns`` by sampling, on v1 in steps of 10 ms. ``periods``
    counts the periods of the quota in which the group wanted to run, ``throttled_periods`` those in which it
    had to wait. ``memory_limit_hits`` counts requests for memory beyond the limit, ``oom_kills`` the
    processes killed because of it, ``pids_limit_hits`` the refused forks. ``*_stalled_ns``: for how long some
    (``full``: all) of its tasks waited for the resource (PSI). Peaks cover the group's whole life.

    *Source*: Documentation/admin-guide/cgroup-v2.rst; cgroup-v1/memory.rst, cpuacct.rst; accounting/psi.rst.
    """

    cpu_ns: int | None = None
    cpu_user_ns: int | None = None
    cpu_system_ns: int | None = None
    periods: int | None = None
    throttled_periods: int | None = None
    throttled_ns: int | None = None
    memory_current_bytes: int | None = None
    memory_peak_bytes: int | None = None
    memory_limit_hits: int | None = None
    oom_kills: int | None = None
    pids_peak: int | None = None
    pids_limit_hits: int | None = None
    cpu_stalled_ns: int | None = None
    memory_stalled_ns: int | None = None
    memory_full_stalled_ns: int | None = None
    io_stalled_ns: int | None = None
    io_full_stalled_ns: int | None = None
    missing: Mapping[str, str] = field(default_factory=dict)

    def __sub__(self, earlier: "Counters") -> "Counters":
        """Return the counts since ``earlier``; levels and peaks are the current ones."""
        counted: dict[str, int | None] = {}
        for name in self.names():
            now, then = getattr(self, name), getattr(earlier, name)
            counted[name] = now if name in _LEVELS else None if None in (now, then) else now - then
        return replace(self, **counted, missing={**earlier.missing, **self.missing})

    def __repr__(self) -> str:
        """Return the known counters, and the names of the missing ones."""
        known = [f"{name}={getattr(self, name)}" for name in self.names() if getattr(self, name) is not None]
        return f"Counters({', '.join([*known, *(f'no {name}' for name in sorted(self.missing))])})"

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of the counters."""
        return tuple(one.name for one in fields(cls) if one.name != "missing")


@dataclass(frozen=True, slots=True)
class CountersReading:
    """What one back end could read of a group: values by counter, and reasons for the missing ones."""

    values: Mapping[str, int]
    missing: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class NoCgroups:
    """Why there are no groups on this machine. ``hint``: how to get them."""

    reason: str
    hint: str | None = None


class ControlGroup(Protocol):
    """The group of one part of a trial: a control group of Prony's own, or a container."""

    @property
    def join_paths(self) -> tuple[str, ...]:
        """The files into which a process writes ``0`` to enter: see ``join.join``."""

    def counters(self) -> Counters:
        """Return the kernel's counters of it."""

    def kill(self) -> int:
        """Kill all processes in it, and return how many there were."""

    def remove(self) -> str | None:
        """Kill all processes in it and remove it; return None, or why it still exists."""
