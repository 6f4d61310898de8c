"""The limits that a server may run into, as they are at the end of the window: descriptors and ports.

Must not know rules. Counters: ``descriptors.used`` and ``descriptors.limit``, of the serving process that is
nearest to its own limit; ``ports``: how many the kernel gives out in the trial's network for connections that
are opened there.

*Source*: proc_pid_limits(5); kernel, Documentation/networking/ip-sysctl.rst, ip_local_port_range.

>>> soft_limit("Limit  Soft Limit  Hard Limit  Units\\nMax open files  64  1024  files\\n")
64
>>> ports_in("32768\\t60999\\n")
28232
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

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
