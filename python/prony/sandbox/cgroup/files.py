r"""The files of control groups: where they are mounted, how they are read and written, and what their texts
say.

What both versions share: names of folders, the subtree, CPUs, counters, why something failed. `CgroupFiles`
has all that touches the kernel, so that a test can replace it. A subtree's name says which Prony owns it:
``prony-<boot>-<pid>-<start>-<namespace>``, for PIDs are reused, but not together with a start time within one
boot, and both are valid only in their PID namespace.

*Source*: cgroups(7), "/proc/pid/cgroup"; proc_pid_mountinfo(5).

>>> parse_cpus("0-2,5")
(0, 1, 2, 5)
>>> mark = Mark(Identity(7, 123, "0e6f1d4c-5a3b-4c2d-9e8f-7a6b5c4d3e2f"), 4026531836)
>>> str(mark)
'prony-0e6f1d4c5a3b4c2d9e8f7a6b5c4d3e2f-7-123-4026531836'
>>> parse_mark(str(mark)) == mark, parse_mark("prony-7")
(True, None)
>>> parse_flat("nr_periods 3\nnr_throttled 1\n")["nr_throttled"]
1
>>> parse_flat("some avg10=0.00 total=17\n")["some.total"], parse_flat("42\n")
(17, {'': 42})
>>> line = "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw"
>>> found = find_hierarchies(line, "0::/user.slice/a.scope")
>>> found[0].version, str(found[0].folder)
('v2', '/sys/fs/cgroup/user.slice/a.scope')
"""

import errno
import os
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple, Protocol

from prony.machine.cgroups import parse_groups
from prony.sandbox.cgroup.types import Counters, CountersReading
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
    """Return the owner of the subtree of this name; None: it is not a subtree of Prony's."""
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

    def write(self, path: Path, text: str) -> None:
        """Write a file that the kernel has made."""

    def make(self, path: Path) -> None:
        """Create one group."""

    def remove(self, path: Path) -> None:
        """Remove one group, which must be empty."""

    def folders(self, path: Path) -> list[str]:
        """Return the names of the groups directly below; links do not count."""

    def owner(self, path: Path) -> int:
        """Return the uid of a group's owner."""


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


# --- how the kernel's files become counters ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Source:
    """One file: the counter of each of its keys (the empty key: the whole file), and a factor."""

    controller: str
    file: str
    fields: Mapping[str, tuple[str, int]]


def parse_flat(text: str) -> dict[str, int]:
    """Return the numbers of a file of one number, of pairs, or of ``some total=1`` (PSI), by key."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        words = line.split()
        pairs = [word.partition("=") for word in words if "=" in word]
        if pairs:
            found.update((f"{words[0]}.{key}", int(value)) for key, _, value in pairs if value.isdigit())
        elif words and words[-1].isdigit():
            found["" if len(words) == 1 else words[0]] = int(words[-1])
    return found


def read_sources(
    files: CgroupFiles, sources: tuple[Source, ...], folder_of: Callable[[str], Path | None]
) -> CountersReading:
    """Return the counters in a group's files; ``folder_of`` returns None for a missing controller."""
    values: dict[str, int] = {}
    missing: dict[str, str] = {}
    for source in sources:
        folder = folder_of(source.controller)
        if folder is None:
            missing.update(dict.fromkeys(source.fields, f"no controller `{source.controller}`"))
            continue
        try:
            found = parse_flat(files.read(folder / source.file))
        except OSError as error:
            missing.update(dict.fromkeys(source.fields, f"cannot read `{source.file}`: {error.strerror}"))
            continue
        for name, (key, factor) in source.fields.items():
            if key in found:
                values[name] = found[key] * factor
            else:
                missing[name] = f"this kernel's `{source.file}` has no `{key}`"
    return CountersReading(values, missing)


def merge(readings: list[CountersReading]) -> Counters:
    """Return the counters of several back ends; the first one wins, because v2 is more precise."""
    values: dict[str, int] = {}
    for reading in reversed(readings):
        values.update(reading.values)
    missing = {
        name: "; ".join(dict.fromkeys(one.missing[name] for one in readings if name in one.missing))
        for name in Counters.names()
        if name not in values
    }
    return Counters(**values, missing=missing)


# --- which cgroup hierarchies are mounted, and where in them this process is ------------------------------


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """One mounted hierarchy. ``controllers``: of v1; v2 lists them in its files.

    ``folder`` is the group of the process; null where that is outside of the mounted part.
    """

    version: Literal["v1", "v2"]
    controllers: frozenset[str]
    mount: Path
    folder: Path | None


class _Mount(NamedTuple):
    root: str
    place: str
    kind: str
    options: frozenset[str]


def find_hierarchies(mountinfo: str, cgroup: str) -> tuple[Hierarchy, ...]:
    """Return the hierarchies that /proc/self/mountinfo and /proc/self/cgroup name, v2 before v1."""
    own = parse_groups(cgroup)
    found: dict[tuple[str, frozenset[str]], Hierarchy] = {}
    for mount in filter(None, map(_parse_mount, mountinfo.splitlines())):
        hierarchy = _hierarchy(mount, own)
        if hierarchy is None:
            continue
        key = (hierarchy.version, hierarchy.controllers)
        # A hierarchy may be mounted twice: prefer a mount that shows this process.
        if key not in found or found[key].folder is None:
            found[key] = hierarchy
    return tuple(sorted(found.values(), key=lambda one: (one.version != "v2", str(one.mount))))


def _parse_mount(line: str) -> _Mount | None:
    fields, _, rest = line.partition(" - ")
    left, right = fields.split(" "), rest.split(" ")
    if len(left) < 6 or len(right) < 3 or right[0] not in ("cgroup", "cgroup2"):
        return None
    return _Mount(_unescape(left[3]), _unescape(left[4]), right[0], frozenset(right[2].split(",")))


def _hierarchy(mount: _Mount, own: dict[str, str]) -> Hierarchy | None:
    if mount.kind == "cgroup2":
        return Hierarchy("v2", frozenset(), Path(mount.place), _folder(mount, own.get("")))
    controllers = frozenset(name for name in mount.options if name in own)
    if not controllers:
        return None
    return Hierarchy("v1", controllers, Path(mount.place), _folder(mount, own[min(controllers)]))


def _folder(mount: _Mount, group: str | None) -> Path | None:
    # In a container only a part of the hierarchy is mounted: `root` names the part.
    if group is None or ".." in PurePosixPath(group).parts:
        return None
    path, root = PurePosixPath(group), PurePosixPath(mount.root)
    if not path.is_relative_to(root):
        return None
    return Path(mount.place) / path.relative_to(root)


def _unescape(text: str) -> str:
    """Return a path of mountinfo; blanks are written there as ``\\040``."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)
