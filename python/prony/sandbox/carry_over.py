"""What earlier trials have left in the host's network, where a trial has none of its own.

*Source*: proc_pid_net(5), /proc/net/tcp; the states: include/net/tcp_states.h. Must not know trials.

>>> carried_over(8000, "sl local rem st\\n 0: 0100007F:1F40 0100007F:9C40 06 0\\n")
CarryOver(time_wait=1, on_port=1, listeners=0)
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["CarryOver", "carried_over", "read_sockets"]

_TIME_WAIT, _LISTEN = "06", "0A"
_FILES = ("tcp", "tcp6")


class CarryOver(NamedTuple):
    """How many sockets wait for late packets (TIME_WAIT), in all and with a port, and how many listen on it.

    A server or client that meets one of them may be refused an address, or get it later.
    """

    time_wait: int
    on_port: int
    listeners: int

    @property
    def is_clean(self) -> bool:
        """Whether nothing has to do with the port."""
        return self.on_port == self.listeners == 0

    def as_counters(self) -> dict[str, int]:
        """Return what waits by the names that a trial keeps it under; by then its own server may listen."""
        return {"CarriedTimeWait": self.time_wait, "CarriedOnPort": self.on_port}


def carried_over(port: int, text: str) -> CarryOver:
    """Return what the lines of /proc/net/tcp and tcp6 say of a port that a trial is to use."""
    time_wait = on_port = listeners = 0
    for ports, state in _sockets(text):
        time_wait += state == _TIME_WAIT
        on_port += state == _TIME_WAIT and port in ports
        listeners += state == _LISTEN and port == ports[0]
    return CarryOver(time_wait, on_port, listeners)


def read_sockets(folder: Path = Path("/proc/net")) -> str:
    """Return the kernel's lines for the TCP sockets of the caller's network; empty where it has none."""
    found = ""
    for name in _FILES:
        with contextlib.suppress(OSError):
            found += (folder / name).read_text()
    return found


def _sockets(text: str) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield both ports and the state of each socket; the heading of a file is none."""
    for line in text.splitlines():
        fields = line.split()
        if len(fields) > 3 and fields[0].endswith(":"):
            local, remote = (int(address.rpartition(":")[2], 16) for address in fields[1:3])
            yield (local, remote), fields[3]
