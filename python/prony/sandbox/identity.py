"""The identity of a process: PID, start time and boot, because the kernel reuses PIDs.

Standard library only: the supervisor imports it.

>>> identify(os.getpid()).is_alive()
True

What processes have open: links of the form ``socket:[inode]`` (proc_pid_fd(5)).

>>> inode_of("socket:[81]"), inode_of("/dev/null")
(81, None)
"""

import contextlib
import os
import re
import signal
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from prony.core.errors import explained


class Identity(NamedTuple):
    """One process, uniquely. ``start_time_ticks`` counts from the boot that ``boot_id`` names."""

    pid: int
    start_time_ticks: int
    boot_id: str

    def is_alive(self) -> bool:
        """Return whether exactly this process runs; a zombie does not."""
        found = _read_stat(self.pid)
        return (
            found is not None
            and found.start_time_ticks == self.start_time_ticks
            and found.state not in "ZX"
            and self.boot_id == boot_id()
        )


class _Stat(NamedTuple):
    state: str
    parent_pid: int
    start_time_ticks: int


def identify(pid: int) -> Identity:
    """Return the identity of the process ``pid``.

    *Errors*: ProcessLookupError when there is none.
    """
    found = _read_stat(pid)
    if found is None:
        raise ProcessLookupError(f"there is no process {pid}")
    return Identity(pid, found.start_time_ticks, boot_id())


@explained("the system does not show which boot it is in", "Prony measures only with all of /proc")
def boot_id() -> str:
    """Return the id of this boot of the machine.

    *Errors*: HostError where /proc lacks it.
    """
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def pid_namespace() -> str:
    """Return the id of this PID namespace, unique within a boot."""
    return str(Path("/proc/self/ns/pid").readlink())


def descendants(root_pid: int) -> list[int]:
    """Return the processes below ``root_pid``, without it, parents before children; zombies are left out."""
    children: dict[int, list[int]] = {}
    states: dict[int, str] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208 (names only, and quick)
        found = _read_stat(int(entry)) if entry.isdigit() else None
        if found is not None:
            children.setdefault(found.parent_pid, []).append(int(entry))
            states[int(entry)] = found.state
    below: list[int] = []
    queue = [root_pid]
    while queue:
        queue += (young := children.get(queue.pop(0), []))
        below += [pid for pid in young if states[pid] not in "ZX"]
    return below


def identities_of(pids: Iterable[int]) -> list[Identity]:
    """Return the identities of those of the processes that have not ended."""
    found = []
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            found.append(identify(pid))
    return found


def end_process(target: Identity) -> bool:
    """Kill exactly this process, and return whether it was alive."""
    try:
        descriptor = os.pidfd_open(target.pid)
    except ProcessLookupError:
        return False
    except OSError:
        # Before Linux 5.3: between the check and the kill the PID could be reused, if 32,768 processes were
        # started in that time.
        return _kill_by_number(target)
    try:
        # The descriptor refers to this process: what is true of it now stays true.
        if not target.is_alive():
            return False
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        return True
    finally:
        os.close(descriptor)


def _kill_by_number(target: Identity) -> bool:
    if not target.is_alive():
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(target.pid, signal.SIGKILL)
    return True


def stat_fields(pid: int) -> list[str]:
    """Return the fields after its name: state, parent, group, session (proc_pid_stat(5)); none: it has
    ended.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return []
    # The name is in parentheses; it may contain blanks and parentheses.
    return text.rpartition(")")[2].split()


def _read_stat(pid: int) -> _Stat | None:
    fields = stat_fields(pid)
    return _Stat(fields[0], int(fields[1]), int(fields[19])) if fields else None


# --- what they have open ----------------------------------------------------------------------------------


_SOCKET = re.compile(r"socket:\[(\d+)\]")
# A second's work. A process may have a million, and leave them to each of its children.
MOST_OPEN = 200_000


def open_files(pids: Iterable[int], most: int = MOST_OPEN) -> Iterator[tuple[int, str]]:
    """Yield what processes have open, each as the process and a path in /proc; of the first so many."""
    found = ((pid, f"/proc/{pid}/fd/{name}") for pid in pids for name in _descriptors(pid))
    return islice(found, most)


def _descriptors(pid: int) -> Iterator[str]:
    with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/fd") as found:
        for one in found:
            yield one.name


def open_sockets(pids: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the inodes of the sockets that processes have open, each with its process; of those that may be
    read, and ``MOST_OPEN`` descriptors.
    """
    for pid, path in open_files(pids):
        # Another thread may have closed it.
        with contextlib.suppress(OSError):
            inode = inode_of(os.readlink(path))  # noqa: PTH115 - thousands at a time
            if inode is not None:
                yield pid, inode


def inode_of(link: str) -> int | None:
    """Return the inode of the socket that a descriptor is; None for anything else."""
    found = _SOCKET.fullmatch(link)
    return int(found[1]) if found else None
