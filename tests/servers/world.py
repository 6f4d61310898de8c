"""What runs on this machine, seen from outside of Prony."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from prony.core.errors import HostError
from prony.sandbox.cgroup.files import Mark, own_mark, parse_mark
from prony.sandbox.container_engine import working_engines


def processes_of(cache: Path) -> list[tuple[int, str]]:
    """Return the processes whose program, folder or command line lies in ``cache``: all servers."""
    own = os.fsencode(str(cache.resolve()))
    found = []
    for entry in os.listdir("/proc"):  # noqa: PTH208
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                command = Path(f"/proc/{entry}/cmdline").read_bytes()
                places = [os.fsencode(os.readlink(f"/proc/{entry}/{link}")) for link in ("cwd", "exe")]  # noqa: PTH115
            except OSError:
                continue
            if any(own in text for text in (command, *places)):
                found.append((int(entry), command.replace(b"\0", b" ").decode(errors="replace")))
    return found


@dataclass(frozen=True)
class World:
    """What a Prony could leave on a machine, by the places where each kind of it is seen."""

    processes: tuple[tuple[int, str], ...]
    groups: frozenset[Path]
    mounts: frozenset[str]
    runs: tuple[Path, ...]
    temporary: frozenset[Path]
    namespaces: frozenset[str]
    containers: frozenset[str]


def world(cache: Path, temporary: Path) -> World:
    """Return what there is now that could be Prony's; ``temporary``: where it makes temporary files."""
    return World(
        processes=tuple(processes_of(cache)),
        groups=frozenset(groups_of()),
        mounts=frozenset(_mounts()),
        runs=tuple(sorted((cache / "run").glob("*"))),
        temporary=frozenset(temporary.iterdir()),
        namespaces=frozenset(namespaces_of(cache)),
        containers=frozenset(containers()),
    )


def _mounts() -> Iterator[str]:
    """Yield where something is mounted, but for what a container engine keeps for itself."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        place = line.split()[4]
        if not place.startswith(("/run/netns", "/var/lib/containers", "/var/lib/docker")):
            yield place


def containers() -> Iterator[str]:
    """Yield the containers of Pronys that these tests have started, or that are gone, of every engine."""
    for engine in working_engines():
        with contextlib.suppress(HostError):
            for container, label in engine.containers().items():
                if (mark := parse_mark(label)) and not _is_foreign(mark):
                    yield container


def groups_of() -> set[Path]:
    """Return the control groups of Pronys that these tests have started, or that are gone."""
    found = Path("/sys/fs/cgroup").rglob("prony-*")
    return {path for path in found if (mark := parse_mark(path.name)) and not _is_foreign(mark)}


def _is_foreign(mark: Mark) -> bool:
    """Return whether a Prony is not of this session, or of another container: others may measure too."""
    if mark.namespace != own_mark().namespace:
        return True
    pid = mark.owner.pid
    while pid > 1:
        if pid == os.getpid():
            return False
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return False
    return True


def namespaces_of(cache: Path) -> set[str]:
    """Return the network namespaces of processes that have to do with ``cache``."""
    found = set()
    for pid, _ in processes_of(cache):
        with contextlib.suppress(OSError):
            found.add(os.readlink(f"/proc/{pid}/ns/net"))  # noqa: PTH115
    return found
