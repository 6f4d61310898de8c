"""The kernel's counters of the trial's network over the window: overflows, drops, retransmissions.

Client and server share the namespace, so each counter covers both sides; on the host's loopback it covers
the whole machine.
*Source*: Documentation/networking/snmp_counter.rst; proc(5). Must not know the engine or the sandbox.

>>> parse_counters("TcpExt: ListenOverflows TW\\nTcpExt: 3 4\\n")
{'ListenOverflows': 3, 'TW': 4}
"""

from collections.abc import Mapping
from pathlib import Path

__all__ = ["KernelCounters", "parse_counters", "parse_time_wait"]

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
# A gauge, not a counter: sockets that keep a port in use for 60 s.
_TIME_WAIT = "TimeWait"


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


class KernelCounters:
    """Reads the network counters of process ``pid`` at the start and at the end of the window."""

    def __init__(self, pid: int) -> None:
        self._folder = Path(f"/proc/{pid}/net")
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
        counters = {**self._parse("netstat"), **self._parse("snmp")}
        time_wait = parse_time_wait(self._text("sockstat"))
        return counters if time_wait is None else {**counters, _TIME_WAIT: time_wait}

    def _parse(self, name: str) -> dict[str, int]:
        return parse_counters(self._text(name))

    def _text(self, name: str) -> str:
        path = self._folder / name
        try:
            return path.read_text()
        except OSError as error:
            self._missing[name] = f"cannot read `{path}`: {error.strerror}"
            return ""
