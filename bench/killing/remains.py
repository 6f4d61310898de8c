"""What of a killed Prony is still there: processes, mounts, listening sockets, containers, control groups."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from prony.errors import HostError
from prony.sandbox.cgroup.mark import parse_mark
from prony.sandbox.containers.engine import working_engines
from prony.sandbox.identity import descendants
from prony.sandbox.linux import become_subreaper

__all__ = [
    "Left",
    "adopt_orphans",
    "gone_after_s",
    "groups_of",
    "new_since",
    "reap",
    "seen",
    "supervisors",
]

Left = Callable[[], list[str]]
_LISTEN = "0A"
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


def seen() -> frozenset[str]:
    """Return, in words, all that a study could leave."""
    processes = (f"process {pid}, `{_command(pid)}`" for pid in descendants(os.getpid()))
    return frozenset([*processes, *_mounts(), *_listeners(), *_containers()])


def new_since(before: frozenset[str]) -> list[str]:
    """Return what is there now, and was not before."""
    return sorted(seen() - before)


def gone_after_s(left: Left, timeout_s: float) -> float | None:
    """Wait until nothing is left, and return how long that took; null: something is still there."""
    begun_s = time.monotonic()
    while left():
        if time.monotonic() - begun_s > timeout_s:
            return None
        time.sleep(0.01)
    return time.monotonic() - begun_s


def supervisors(prony: int) -> list[int]:
    """Return the supervisors of subjects that a Prony has now."""
    commands = ((pid, _command(pid)) for pid in descendants(prony))
    return [pid for pid, words in commands if "prony.sandbox.supervisor" in words and "--probe" not in words]


def groups_of(prony: int) -> list[str]:
    """Return the control groups of a Prony's process."""
    found = Path("/sys/fs/cgroup").rglob("prony-*")
    return [str(path) for path in found if (mark := parse_mark(path.name)) and mark.owner.pid == prony]


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


def _listeners() -> Iterator[str]:
    for name in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTEN:
                    yield f"socket {fields[1]}"
    for line in Path("/proc/net/unix").read_text().splitlines():
        if "@prony" in line:
            yield f"socket {line.split()[-1]}"


def _containers() -> Iterator[str]:
    for engine in working_engines():
        with suppress(HostError):
            yield from (
                f"container {name}" for name, label in engine.containers().items() if parse_mark(label)
            )
