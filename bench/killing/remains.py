"""What of a killed Prony is still there: processes, mounts, listening sockets, containers, control groups."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from prony.core.errors import HostError
from prony.sandbox.cgroup.files import parse_mark
from prony.sandbox.container_engine import working_engines
from prony.sandbox.identity import descendants
from prony.sandbox.linux import become_subreaper

Left = Callable[[], list[str]]


class Gone(NamedTuple):
    """How long it took until nothing was left, and what was still there when it should have been gone."""

    seconds: float
    late: tuple[str, ...]


# Of TCP; and of a Unix socket, include/linux/net.h: __SO_ACCEPTCON.
_LISTEN, _ACCEPTS = "0A", "00010000"
# What container engines keep for themselves.
_FOREIGN = ("/run/netns", "/var/lib/containers", "/var/lib/docker")


def adopt_orphans() -> None:
    """Become the parent of all that the studies leave, so that nothing of them escapes the list."""
    become_subreaper()


def reap() -> None:
    """Collect the ended orphans; only between studies, whose own ends are awaited elsewhere."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def seen(containers: bool) -> frozenset[str]:
    """Return, in words, all that a study could leave; to list containers takes an engine a second."""
    processes = map(words_of, descendants(os.getpid()))
    left = (*processes, *_mounts(), *_listeners(), *_shared(), *(_containers() if containers else ()))
    return frozenset(left)


def gone(left: Left, soon_s: float) -> Gone:
    """Wait until nothing is left, ten times as long as it should take."""
    begun_s = time.monotonic()
    late: tuple[str, ...] = ()
    while found := tuple(left()):
        seconds = time.monotonic() - begun_s
        late = late or (found if seconds > soon_s else ())
        if seconds > 10 * soon_s:
            break
        time.sleep(0.01)
    return Gone(time.monotonic() - begun_s, late)


def supervisors(prony: int) -> list[int]:
    """Return the supervisors of subjects that a Prony has now."""
    commands = ((pid, _command(pid)) for pid in descendants(prony))
    return [pid for pid, words in commands if "prony.sandbox.supervisor" in words and "--probe" not in words]


def groups_of(prony: int) -> list[str]:
    """Return the control groups of a Prony's process."""
    found = Path("/sys/fs/cgroup").rglob("prony-*")
    return [str(path) for path in found if (mark := parse_mark(path.name)) and mark.owner.pid == prony]


def words_of(pid: int) -> str:
    """Return a process in words."""
    return f"process {pid}, `{_command(pid)}`"


def state_of(pid: int) -> str:
    """Return in which state of the kernel a process is, and where it waits."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        state = status.partition("State:")[2].partition("\n")[0].split()[0]
        return f"process {pid}: {state} in {Path(f'/proc/{pid}/wchan').read_text()}"
    except (OSError, IndexError):
        return f"process {pid}"


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:200]
    except OSError:
        return ""


def _mounts() -> Iterator[str]:
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        place = line.split()[4]
        if not place.startswith(_FOREIGN):
            yield f"mount {place}"


def _shared() -> Iterator[str]:
    """Yield the machine's shared memory, semaphores and queues of messages."""
    with suppress(OSError):
        yield from (f"shared memory {path}" for path in Path("/dev/shm").iterdir())  # noqa: S108
    for kind in ("shm", "sem", "msg"):
        with suppress(OSError):
            lines = Path("/proc/sysvipc", kind).read_text().splitlines()[1:]
            yield from (f"System V {kind} {line.split()[1]}" for line in lines)


def _listeners() -> Iterator[str]:
    """Yield the listening sockets of the machine, but for those that others' processes hold."""
    found = [*_listening()]
    # Afterwards: another program may have opened one meanwhile.
    foreign = _sockets_of_others()
    # Nor has it closed one that was open when it was looked for.
    still = {inode for inode, _ in _listening()}
    yield from (f"socket {address}" for inode, address in found if inode in still - foreign)


def _listening() -> Iterator[tuple[str, str]]:
    """Yield inode and address of each socket that listens on TCP, and of each of Prony's Unix sockets."""
    for name in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTEN:
                    yield fields[9], fields[1]
    for line in Path("/proc/net/unix").read_text(errors="replace").splitlines():
        fields = line.split()
        # A connection that waits at another program's is held by nobody.
        if "@prony" in line and fields[3] == _ACCEPTS:
            yield fields[6], fields[-1]


def _sockets_of_others() -> set[str]:
    """Return the inodes of sockets that a process holds which no study here has started.

    What an ordinary user may not look into counts as nobody's.
    """
    own = {os.getpid(), *descendants(os.getpid())}
    others = (path for path in Path("/proc").glob("[0-9]*") if int(path.name) not in own)
    found = set()
    for process in others:
        with suppress(OSError):
            for descriptor in (process / "fd").iterdir():
                with suppress(OSError):
                    found.add(str(descriptor.readlink()).removeprefix("socket:[").removesuffix("]"))
    return found


def _containers() -> Iterator[str]:
    for engine in working_engines():
        with suppress(HostError):
            yield from (
                f"container {name}" for name, label in engine.containers().items() if parse_mark(label)
            )
