"""Plants from outside: root limits the servers of a Prony that an ordinary user runs.

The user's Prony says over a socket when a side's load begins, and waits until that is done: one line of JSON
each way. What it then observes is what an ordinary user can. Must not know the command line.

>>> LoadSign.of('{"side": 1, "began": true}')
LoadSign(side=1, began=True)
"""

import contextlib
import itertools
import json
import os
import socket
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Self

from prony.faults import Plant, PlantedSide
from prony.monitor.native import CompiledSource
from prony.sandbox.cgroup.base import CgroupTree, ControlGroup, Limits

__all__ = ["LoadSign", "Outsider", "limits_of", "plant_from_outside"]

_NAME = "planted"


@dataclass(frozen=True, slots=True)
class LoadSign:
    """That the load of a side (the cell of the plan) ``began``, or is over."""

    side: int
    began: bool

    @classmethod
    def of(cls, line: str) -> Self:
        """Return what a line says.

        *Errors*: ValueError, TypeError for another line.
        """
        return cls(**json.loads(line))


class _Lines:
    """Lines of text over a socket, each way."""

    def __init__(self, own: socket.socket) -> None:
        self._socket = own
        self._rest = b""

    def send(self, line: str) -> None:
        self._socket.sendall(line.encode() + b"\n")

    def receive(self) -> str | None:
        """Return the next line; null when the other side has closed its end."""
        while b"\n" not in self._rest:
            received = self._socket.recv(4096)
            if not received:
                return None
            self._rest += received
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode()


class Outsider:
    """Who limits servers from outside, as the observing side sees it: at the socket with this number."""

    def __init__(self, descriptor: int) -> None:
        # Servers that are started from here must not keep it open.
        os.set_inheritable(descriptor, False)
        self._socket = socket.socket(fileno=descriptor)
        self._lines = _Lines(self._socket)

    def close(self) -> None:
        """Show nothing any more: what was limited is no longer."""
        self._socket.close()

    def show(self, sign: LoadSign) -> None:
        """Show it, and wait until it was heeded.

        *Errors*: OSError when the other side is gone.
        """
        self._lines.send(json.dumps(asdict(sign)))
        if self._lines.receive() is None:
            raise ConnectionResetError("nobody plants any more")


def limits_of(side: PlantedSide) -> Limits:
    """Return what root limits of a side."""
    return Limits(cpu_quota=side.cpu_quota, memory_bytes=side.memory_bytes)


def plant_from_outside(ours: socket.socket, plant: Plant, observer: int, tree: CgroupTree) -> None:
    """Limit the servers of the process ``observer``, for as long as it says; until it closes its end.

    *Errors*: HostError, OSError when a group cannot be made.
    """
    pair = plant.pair
    sides = (pair.healthy, pair.faulty)
    lines = _Lines(ours)
    # An observer that was killed leaves an answer unread: then its end is a reset.
    with contextlib.ExitStack() as planted, contextlib.suppress(ConnectionError):
        for number in itertools.count():
            line = lines.receive()
            if line is None:
                break
            sign = LoadSign.of(line)
            if sign.began:
                planted.enter_context(_limited(tree, f"{_NAME}-{number}", sides[sign.side], observer))
            else:
                planted.close()
            lines.send("done")


@contextlib.contextmanager
def _limited(tree: CgroupTree, name: str, side: PlantedSide, observer: int) -> Iterator[None]:
    """Hold an observer's servers in a group with the limits of a side."""
    if not limits_of(side).asked():
        yield
        return
    with tree.create(name) as group:
        group.set_limits(limits_of(side))
        _move(group, _servers_of(observer))
        yield


def _servers_of(observer: int) -> list[int]:
    """Return an observer's servers. Its own children are none: the generator, and who starts servers."""
    return [one.pid for one in CompiledSource(observer).sample() if one.parent_pid != observer]


def _move(group: ControlGroup, pids: Sequence[int]) -> None:
    """Move processes into a group; one that has ended meanwhile is left out."""
    for path in group.join_paths:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError), open(path, "w") as file:  # noqa: PTH123
                file.write(str(pid))
