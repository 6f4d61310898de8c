"""What earlier trials have left in the host's network, for trials without a network of their own.

*Source*: proc_pid_net(5), /proc/net/tcp; the states: include/net/tcp_states.h. Must not know trials.

>>> carried_over(8000, "sl local rem st\\n 0: 0100007F:1F40 0100007F:9C40 06 0\\n")
CarryOver(time_wait=1, on_port=1, listeners=0)
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_TIME_WAIT, _LISTEN = "06", "0A"
_FILES = ("tcp", "tcp6")


class CarryOver(NamedTuple):
    """How many sockets are in TIME_WAIT, in total and with a port, and how many listen on the port.

    Such sockets can keep a server or client from using an address, or delay it.
    """

    time_wait: int
    on_port: int
    listeners: int

    @property
    def is_clean(self) -> bool:
        """Whether nothing uses the port."""
        return self.on_port == self.listeners == 0

    def as_counters(self) -> dict[str, int]:
        """Return the sockets in TIME_WAIT under their archive names; listeners may be the trial's own by
        then.
        """
        return {"CarriedTimeWait": self.time_wait, "CarriedOnPort": self.on_port}


def carried_over(port: int, text: str) -> CarryOver:
    """Return what the lines of /proc/net/tcp and tcp6 say about a port that a trial will use."""
    time_wait = on_port = listeners = 0
    for ports, state in _sockets(text):
        time_wait += state == _TIME_WAIT
        on_port += state == _TIME_WAIT and port in ports
        listeners += state == _LISTEN and port == ports[0]
    return CarryOver(time_wait, on_port, listeners)


def read_sockets(folder: Path = Path("/proc/net")) -> str:
    """Return the kernel's lines for the TCP sockets of the caller's network."""
    found = ""
    for name in _FILES:
        with contextlib.suppress(OSError):
            found += (folder / name).read_text()
    return found


def _sockets(text: str) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield both ports and the state of each socket; skip the headings."""
    for line in text.splitlines():
        fields = line.split()
        if len(fields) > 3 and fields[0].endswith(":"):
            local, remote = (int(address.rpartition(":")[2], 16) for address in fields[1:3])
            yield (local, remote), fields[3]
