"""The kernel's counters of the trial's network over the window: overflows, drops, retransmissions.

Client and server share the namespace, so each counter covers both sides; on the host's loopback it covers the
whole machine. *Source*: Documentation/networking/snmp_counter.rst; proc(5).

Counters: ``descriptors.used`` and ``descriptors.limit``, of the serving process that is
nearest to its own limit; ``ports``: how many the kernel gives out in the trial's network for connections that
are opened there.

*Source*: proc_pid_limits(5); kernel, Documentation/networking/ip-sysctl.rst, ip_local_port_range.

The kernel's counters of a subject's control groups, over the window.

>>> parse_counters("TcpExt: ListenOverflows TW\\nTcpExt: 3 4\\n")
{'ListenOverflows': 3, 'TW': 4}

>>> soft_limit("Limit  Soft Limit  Hard Limit  Units\\nMax open files  64  1024  files\\n")
64
>>> ports_in("32768\\t60999\\n")
28232
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from prony.sandbox.cgroup.types import Counters
from prony.sandbox.identity import open_files

# Deltas. Each is read by a diagnosis or by the account of the transport.
_FROM_NETSTAT = (
    "ListenOverflows",
    "ListenDrops",
    "TCPReqQFullDrop",
    "TCPReqQFullDoCookies",
    "TCPBacklogDrop",
    "TCPSynRetrans",
    "TCPTimeouts",
    "TCPAbortOnData",
    "TCPAbortOnMemory",
    "TCPAbortOnTimeout",
    "TCPTimeWaitOverflow",
    "DelayedACKs",
    "TW",
    "TWRecycled",
)
_FROM_SNMP = (
    "ActiveOpens",
    "PassiveOpens",
    "AttemptFails",
    "EstabResets",
    "RetransSegs",
    "InSegs",
    "OutSegs",
    "OutRsts",
)
# Of connections that a firewall tracks: a new one found no room, or another one's.
_TRACKING = ("drop", "early_drop", "insert_failed")
# A gauge, not a counter: sockets that keep a port in use for 60 s.
_TIME_WAIT = "TimeWait"
# One limit for all networks of the machine.
_MOST_TRACKED = "sys/net/netfilter/nf_conntrack_max"


def parse_counters(text: str) -> dict[str, int]:
    """Return the TCP counters of /proc/net/netstat or /proc/net/snmp: pairs of lines, names and values."""
    lines = text.splitlines()
    found: dict[str, int] = {}
    for names, values in zip(lines[::2], lines[1::2], strict=False):
        if names.startswith(("TcpExt:", "Tcp:")):
            found.update(zip(names.split()[1:], map(int, values.split()[1:]), strict=False))
    return found


def parse_time_wait(text: str) -> int | None:
    """Return the number of sockets in TIME_WAIT from /proc/net/sockstat.

    >>> parse_time_wait("TCP: inuse 1 orphan 0 tw 7 alloc 1 mem 1")
    7
    """
    for line in text.splitlines():
        fields = line.split()
        if fields[:1] == ["TCP:"] and "tw" in fields:
            return int(fields[fields.index("tw") + 1])
    return None


def parse_tracking(text: str) -> dict[str, int]:
    """Return from /proc/net/stat/nf_conntrack how many connections are tracked (``entries``), and how many
    packets were ``dropped`` for want of room, over all CPUs; empty for another text.

    *Source*: kernel, net/netfilter/nf_conntrack_standalone.c, ct_cpu_seq_show: hexadecimal, one row a CPU.

    >>> parse_tracking("entries insert_failed drop early_drop\\n0000000a 1 2 3\\n0000000a 0 10 0\\n")
    {'entries': 10, 'dropped': 22}
    """
    names, *rows = [line.split() for line in text.splitlines()] or [[]]
    each = [dict(zip(names, (int(value, 16) for value in row), strict=False)) for row in rows]
    if not each or "entries" not in each[0]:
        return {}
    dropped = sum(one.get(name, 0) for one in each for name in _TRACKING)
    return {"entries": each[0]["entries"], "dropped": dropped}


class KernelCounters:
    """Reads the network counters of process ``pid`` at the start and at the end of the window."""

    def __init__(self, pid: int, proc: Path = Path("/proc")) -> None:
        self._folder = proc / str(pid) / "net"
        self._most_tracked = proc / _MOST_TRACKED
        self._opened: Mapping[str, int] = {}
        self._closed: Mapping[str, int] = {}
        self._missing: dict[str, str] = {}

    def open_window(self) -> None:
        """Read the counters at the start of the window."""
        self._opened = self._read()

    def close_window(self) -> None:
        """Read the counters at the end of the window."""
        self._closed = self._read()

    def deltas(self) -> tuple[dict[str, int], dict[str, str]]:
        """Return the differences over the window, and the reason for each missing counter."""
        counted: dict[str, int] = {}
        missing: dict[str, str] = {}
        for name in (*_FROM_NETSTAT, *_FROM_SNMP):
            if name in self._opened and name in self._closed:
                counted[name] = self._closed[name] - self._opened[name]
            else:
                missing[name] = self._reason()
        for name in ("entries", "dropped"):
            # Where nothing tracks connections there is nothing to miss.
            if f"conntrack.{name}" in self._closed:
                before = self._opened.get(f"conntrack.{name}", 0) if name == "dropped" else 0
                counted[f"conntrack.{name}"] = self._closed[f"conntrack.{name}"] - before
        if "conntrack.most" in self._closed:
            counted["conntrack.most"] = self._closed["conntrack.most"]
        for name, source in (("TimeWaitAtOpen", self._opened), ("TimeWaitAtClose", self._closed)):
            if _TIME_WAIT in source:
                counted[name] = source[_TIME_WAIT]
            else:
                missing[name] = self._reason()
        return counted, missing

    def _reason(self) -> str:
        if self._missing:
            return "; ".join(self._missing.values())
        complete = self._opened and self._closed
        return "this kernel does not count it" if complete else "the window did not open and close"

    def _read(self) -> dict[str, int]:
        counters = {**self._parse("netstat"), **self._parse("snmp"), **self._tracking()}
        time_wait = parse_time_wait(self._text("sockstat"))
        return counters if time_wait is None else {**counters, _TIME_WAIT: time_wait}

    def _tracking(self) -> dict[str, int]:
        """Return what a firewall tracks; empty where none does."""
        try:
            found = parse_tracking((self._folder / "stat" / "nf_conntrack").read_text())
            if found and self._most_tracked.exists():
                found["most"] = int(self._most_tracked.read_text())
        except (OSError, ValueError):
            return {}
        return {f"conntrack.{name}": value for name, value in found.items()}

    def _parse(self, name: str) -> dict[str, int]:
        return parse_counters(self._text(name))

    def _text(self, name: str) -> str:
        path = self._folder / name
        try:
            return path.read_text()
        except OSError as error:
            self._missing[name] = f"cannot read `{path}`: {error.strerror}"
            return ""


# --- the limits that a server may run into, as they are at the end of the window --------------------------


_NEVER_READ = Counters(missing=dict.fromkeys(Counters.names(), "the window did not open and close"))


class GroupCounters:
    """Reads ``source`` at the start and at the end of the window.

    Deltas are named ``cgroup.<process>.<counter>``, in the units of `prony.sandbox.cgroup.types.Counters`;
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
    """Return the soft limit of open files from /proc/PID/limits; None: there is none."""
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
    """Return how many files a process has open, and may have; None: it is gone, or has no limit."""
    try:
        limit = soft_limit(Path(f"/proc/{process}/limits").read_text())
        used = sum(1 for _ in open_files([process]))
    except OSError:
        return None
    return (used, limit) if limit else None
