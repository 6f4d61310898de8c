"""The limits that a server may run into, as they are at the end of the window: descriptors and ports.

Must not know rules. Counters: ``descriptors.used`` and ``descriptors.limit``, of the serving process that is
nearest to its own limit; ``ports``: how many the kernel gives out in the trial's network for connections that
are opened there.

*Source*: proc_pid_limits(5); kernel, Documentation/networking/ip-sysctl.rst, ip_local_port_range.

>>> soft_limit("Limit  Soft Limit  Hard Limit  Units\\nMax open files  64  1024  files\\n")
64
>>> ports_in("32768\\t60999\\n")
28232

The kernel's counters of a subject's control groups, over the window.

>>> monitor = GroupCounters(dict)
>>> monitor.open_window(); monitor.close_window(); monitor.deltas()
({}, {})
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from prony.sandbox.cgroup.base import Counters

_NEVER_READ = Counters(missing=dict.fromkeys(Counters.names(), "the window did not open and close"))


class GroupCounters:
    """Reads ``source`` at the start and at the end of the window.

    Deltas are named ``cgroup.<process>.<counter>``, in the units of `prony.sandbox.cgroup.base.Counters`;
    levels and peaks cover the group's whole life.
    """

    def __init__(self, source: Callable[[], Mapping[str, Counters]]) -> None:
        self._source = source
        self._opened: Mapping[str, Counters] = {}
        self._closed: Mapping[str, Counters] = {}

    def open_window(self) -> None:
        """Read the counters at the start of the window."""
        self._opened = self._source()

    def close_window(self) -> None:
        """Read the counters at the end of the window."""
        self._closed = self._source()

    def deltas(self) -> tuple[dict[str, int], dict[str, str]]:
        """Return the differences, and the reason for each missing one."""
        found: dict[str, int] = {}
        missing: dict[str, str] = {}
        for name in {**self._opened, **self._closed}:
            counted = self._closed.get(name, _NEVER_READ) - self._opened.get(name, _NEVER_READ)
            for counter in Counters.names():
                value = getattr(counted, counter)
                if value is not None:
                    found[f"cgroup.{name}.{counter}"] = value
                elif counter in counted.missing:
                    missing[f"cgroup.{name}.{counter}"] = counted.missing[counter]
        return found, missing


def oom_kills(counters: Mapping[str, Counters]) -> Mapping[str, int]:
    """Return how many processes the kernel has killed because memory ran out, by part of the subject.

    >>> oom_kills({"server": Counters(oom_kills=2), "frontend": Counters(oom_kills=0)})
    {'server': 2}
    """
    return {name: one.oom_kills for name, one in counters.items() if one.oom_kills}


_OPEN_FILES = re.compile(r"^Max open files +(\d+)", re.MULTILINE)
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def soft_limit(text: str) -> int | None:
    """Return the soft limit of open files from /proc/PID/limits; null: there is none."""
    found = _OPEN_FILES.search(text)
    return int(found[1]) if found else None


def ports_in(text: str) -> int:
    """Return how many ports a range has.

    *Errors*: ValueError for another text.
    """
    first, last = map(int, text.split())
    return last - first + 1


def read_port_range() -> str:
    """Return the range of the network that the caller is in; errors: OSError."""
    return _RANGE.read_text()


class LimitCounters:
    """Reads the limits of the processes that ``serving`` returns, and of the network of ``port_range``."""

    def __init__(self, serving: Callable[[], Sequence[int]], port_range: Callable[[], str]) -> None:
        self._serving, self._port_range = serving, port_range
        self._found: dict[str, int] = {}
        self._missing: dict[str, str] = {}

    def open_window(self) -> None:
        """Read nothing: what counts is how near the limits are in the end."""

    def close_window(self) -> None:
        """Read the limits."""
        nearest = max(
            filter(None, map(_descriptors, self._serving())), key=lambda one: one[0] / one[1], default=None
        )
        if nearest is not None:
            self._found["descriptors.used"], self._found["descriptors.limit"] = nearest
        else:
            self._missing["descriptors.used"] = "no serving process could be read"
        try:
            self._found["ports"] = ports_in(self._port_range())
        except (OSError, ValueError) as error:
            self._missing["ports"] = f"cannot read `{_RANGE}`: {error}"

    def deltas(self) -> tuple[dict[str, int], dict[str, str]]:
        """Return them, and the reason for each missing one."""
        return dict(self._found), dict(self._missing)


def _descriptors(process: int) -> tuple[int, int] | None:
    """Return how many files a process has open, and may have; null: it is gone, or has no limit."""
    try:
        limit = soft_limit(Path(f"/proc/{process}/limits").read_text())
        used = sum(1 for _ in Path(f"/proc/{process}/fd").iterdir())
    except OSError:
        return None
    return (used, limit) if limit else None
