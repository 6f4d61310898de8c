"""The operations on a cgroup file system, so that a test can replace the kernel.

Must not know what the files mean.

>>> KernelFiles().folders(Path("/proc/self/fdinfo"))
[]

What both back ends share: name folders, create the subtree, set the CPUs, explain failures.

Knows of a version only the file names that the caller passes.

>>> parse_cpus("0-2,5")
(0, 1, 2, 5)

The name of Prony's subtree, which identifies the Prony that owns it.

``prony-<boot>-<pid>-<start>-<namespace>``: PIDs are reused, but not together with a start time within one
boot; both are valid only in their PID namespace.

>>> mark = Mark(Identity(7, 123, "0e6f1d4c-5a3b-4c2d-9e8f-7a6b5c4d3e2f"), 4026531836)
>>> str(mark)
'prony-0e6f1d4c5a3b4c2d9e8f7a6b5c4d3e2f-7-123-4026531836'
>>> parse_mark(str(mark)) == mark, parse_mark("prony-7")
(True, None)
"""

import errno
import os
import re
import uuid
from pathlib import Path
from typing import NamedTuple, Protocol

from prony.sandbox.identity import Identity, boot_id, identify, pid_namespace

_MARK_NAME = re.compile(r"prony-([0-9a-f]{32})-([1-9][0-9]{0,9})-([0-9]{1,20})-([0-9]{1,20})")


class Mark(NamedTuple):
    """A Prony process, and the PID namespace of its PID. As text: the name of its subtree."""

    owner: Identity
    namespace: int

    def is_gone(self) -> bool:
        """Return whether its Prony has certainly ended; for another boot or PID namespace that is unknown."""
        here = self.owner.boot_id == boot_id() and self.namespace == _namespace()
        return here and not self.owner.is_alive()

    def __str__(self) -> str:
        """Return the name of the subtree."""
        pid, start, boot = self.owner
        return f"prony-{uuid.UUID(boot).hex}-{pid}-{start}-{self.namespace}"


def own_mark() -> Mark:
    """Return the mark of this process."""
    return Mark(identify(os.getpid()), _namespace())


def parse_mark(name: str) -> Mark | None:
    """Return the owner of the subtree of this name; null: it is not a subtree of Prony's."""
    found = _MARK_NAME.fullmatch(name)
    if found is None:
        return None
    return Mark(Identity(int(found[2]), int(found[3]), str(uuid.UUID(found[1]))), int(found[4]))


def is_inside_a_subtree(path: Path) -> bool:
    """Return whether a group is a Prony's subtree or below one: nothing else is ever changed or killed."""
    return ".." not in path.parts and any(parse_mark(part) is not None for part in path.parts)


def _namespace() -> int:
    return int("".join(filter(str.isdigit, pid_namespace())))


class CgroupFiles(Protocol):
    """The operations on the files and folders of a cgroup file system. All may raise OSError."""

    def read(self, path: Path) -> str:
        """Return the text of a file."""
        ...

    def write(self, path: Path, text: str) -> None:
        """Write a file that the kernel has made."""
        ...

    def make(self, path: Path) -> None:
        """Create one group."""
        ...

    def remove(self, path: Path) -> None:
        """Remove one group, which must be empty."""
        ...

    def folders(self, path: Path) -> list[str]:
        """Return the names of the groups directly below; links do not count."""
        ...

    def owner(self, path: Path) -> int:
        """Return the uid of a group's owner."""
        ...


class KernelFiles:
    """See ``CgroupFiles``: the kernel's."""

    def read(self, path: Path) -> str:
        """Return the text of a file."""
        return path.read_text()

    def write(self, path: Path, text: str) -> None:
        """Write a file that the kernel has made, in one call, as the kernel expects."""
        # Never O_CREAT: where the kernel has no such file, that is the answer.
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)

    def make(self, path: Path) -> None:
        """Create one group."""
        path.mkdir(mode=0o755)

    def remove(self, path: Path) -> None:
        """Remove one group, which must be empty."""
        path.rmdir()

    def folders(self, path: Path) -> list[str]:
        """Return the names of the groups directly below; links do not count."""
        with os.scandir(path) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))

    def owner(self, path: Path) -> int:
        """Return the uid of a group's owner."""
        return path.lstat().st_uid


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def part_folder(place: Path, name: str) -> Path:
    """Return the folder of the group of a trial's part.

    *Errors*: ValueError for a name that could lead elsewhere.
    """
    if _NAME.fullmatch(name) is None:
        raise ValueError(
            f"`{name}` is not the name of a group; expected at most 100 letters, digits, `.`, `_`, `-`"
        )
    # The kernel's own files are in the same folder, for example `tasks`.
    return place / f"part-{name}"


def write_cpus(files: CgroupFiles, folder: Path, cpus: tuple[int, ...], effective: str) -> None:
    """Set the CPUs of a group and check that it got them.

    *Errors*: OSError, also when the kernel accepts the value but sets others.
    """
    files.write(folder / "cpuset.cpus", ",".join(map(str, sorted(cpus))))
    given = parse_cpus(files.read(folder / effective))
    if set(given) != set(cpus):
        raise OSError(errno.EINVAL, f"requested the CPUs {sorted(cpus)}, got {sorted(given)}")


def parse_cpus(text: str) -> tuple[int, ...]:
    """Return the CPUs of the kernel's list format."""
    cpus: list[int] = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first:
            cpus += range(int(first), int(last or first) + 1)
    return tuple(cpus)


def reason_of(error: OSError, folder: Path) -> str:
    """Return why a subtree could not be created, for the user."""
    match error.errno:
        case errno.EACCES | errno.EPERM:
            return f"this user may not create groups in `{folder.parent}`"
        case errno.EROFS:
            return f"`{folder.parent}` is mounted read-only"
        case errno.EEXIST:
            return f"this process already has a subtree in `{folder.parent}`"
        case _:
            return f"cannot create the group `{folder}`: {error.strerror}"
