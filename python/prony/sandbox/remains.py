"""Cleans up what killed Pronys have left on this machine: stops and removes it, and reports that.

Processes and folders are found by the journal, control groups and containers by their marks; nothing else is
touched.

*Source*: proc_pid_net(5), /proc/net/tcp; the states: include/net/tcp_states.h.

>>> clear_groups.__name__
'clear_groups'

A Prony may have been started in any group, so all mounted hierarchies are searched.

>>> Cleared("prony-1").processes_killed
0

>>> carried_over(8000, "sl local rem st\\n 0: 0100007F:1F40 0100007F:9C40 06 0\\n")
CarryOver(time_wait=1, on_port=1, listeners=0)
"""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from prony.core.errors import HostError
from prony.core.users import RunAs
from prony.sandbox import journal
from prony.sandbox.cgroup.ending import kill_all, members, remove_all
from prony.sandbox.cgroup.files import CgroupFiles, KernelFiles, find_hierarchies, parse_mark
from prony.sandbox.container_engine import working_engines


def clear_containers() -> list[str]:
    """Remove the containers of Pronys that are gone, and return what was done, in words."""
    told: list[str] = []
    # Only a Prony of root creates containers.
    for engine in working_engines() if os.geteuid() == 0 else ():
        # An engine that is not running has no running containers.
        with contextlib.suppress(HostError):
            for container, label in engine.containers().items():
                mark = parse_mark(label)
                if mark is not None and mark.is_gone():
                    kept = engine.remove(container)
                    told.append(
                        f"the container {container[:12]} is left alone: {kept}"
                        if kept
                        else f"removed a container of {engine.name} that a killed Prony had left"
                    )
    return told


_PROC = Path("/proc/self")
_KERNEL = KernelFiles()


@dataclass(frozen=True, slots=True)
class Cleared:
    """A subtree whose Prony is gone, and what was done about it. ``kept``: why it still exists."""

    name: str
    processes_killed: int = 0
    kept: str | None = None


def clear_subtrees(proc: Path = _PROC, files: CgroupFiles = _KERNEL) -> list[Cleared]:
    """Kill all processes in the subtrees of Pronys that are gone, remove the subtrees, and report them.

    A subtree of a living Prony, of another user, PID namespace or boot is left alone.
    """
    try:
        hierarchies = find_hierarchies((proc / "mountinfo").read_text(), (proc / "cgroup").read_text())
    except OSError:
        return []
    found: dict[str, list[Path]] = {}
    for mount in dict.fromkeys(one.mount for one in hierarchies):
        for place in _subtrees(files, mount):
            found.setdefault(place.name, []).append(place)
    cleared = (_clear(files, name, places) for name, places in sorted(found.items()))
    return [one for one in cleared if one is not None]


def _subtrees(files: CgroupFiles, top: Path) -> Iterator[Path]:
    """Yield the subtrees below a group; one inside of another belongs to the outer one."""
    waiting = [top]
    while waiting:
        place = waiting.pop()
        with contextlib.suppress(OSError):
            below = [place / name for name in files.folders(place)]
            yield from (one for one in below if parse_mark(one.name) is not None)
            waiting += [one for one in below if parse_mark(one.name) is None]


def _clear(files: CgroupFiles, name: str, places: Iterable[Path]) -> Cleared | None:
    mark = parse_mark(name)
    own = [place for place in places if _is_ours(files, place)]
    if mark is None or not mark.is_gone() or not own:
        return None
    if os.getpid() in members(files, own):
        return Cleared(name, kept="this Prony was started in it")
    killed = kill_all(files, own)
    return Cleared(name, killed, remove_all(files, own))


def _is_ours(files: CgroupFiles, place: Path) -> bool:
    try:
        return files.owner(place) == os.geteuid()
    except OSError:
        return False


def clear_and_report(user: RunAs, tell: Callable[[str], None]) -> None:
    """Stop and remove all that dead Pronys have left; report what ran and what could not be removed."""
    for one in journal.clear_remains(user):
        if one.kept:
            tell(f"the remains of run {one.run} are left alone: {one.kept}")
        elif one.processes_ended:
            tell(f"killed {one.processes_ended} processes that run {one.run} had left")
    for told in clear_groups():
        tell(told)


def clear_groups() -> list[str]:
    """Remove containers and control groups of dead Pronys, and return what was done, in words."""
    return [*clear_containers(), *(_words(one) for one in clear_subtrees())]


def _words(cleared: Cleared) -> str:
    if cleared.kept:
        return f"the control groups `{cleared.name}` are left alone: {cleared.kept}"
    ended = f", with {cleared.processes_killed} processes" if cleared.processes_killed else ""
    return f"removed control groups that a killed Prony had left{ended}"


# --- what earlier trials have left in the host's network, for trials without a network of their -----------


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
