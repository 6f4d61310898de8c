"""What both back ends do alike: name folders, make the subtree, set the CPUs, say why not.

Must not know more of a version than the names of its files that it is given.

>>> parse_cpus("0-2,5")
(0, 1, 2, 5)
"""

import errno
import re
from pathlib import Path

from prony.sandbox.cgroup.files import CgroupFiles

__all__ = ["parse_cpus", "part_folder", "reason_of", "write_cpus"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def part_folder(place: Path, name: str) -> Path:
    """Return the folder of the group of a trial's part.

    *Errors*: ValueError for a name that could lead elsewhere.
    """
    if _NAME.fullmatch(name) is None:
        raise ValueError(
            f"`{name}` is not the name of a group; expected letters, digits, `.`, `_`, `-`, at most 100"
        )
    # The kernel's own files lie in the same folder: `tasks` would be one.
    return place / f"part-{name}"


def write_cpus(files: CgroupFiles, folder: Path, cpus: tuple[int, ...], effective: str) -> None:
    """Set the CPUs of a group and check that it got them.

    *Errors*: OSError, also where the kernel takes the value and gives others.
    """
    files.write(folder / "cpuset.cpus", ",".join(map(str, sorted(cpus))))
    given = parse_cpus(files.read(folder / effective))
    if set(given) != set(cpus):
        raise OSError(errno.EINVAL, f"asked for the CPUs {sorted(cpus)}, got {sorted(given)}")


def parse_cpus(text: str) -> tuple[int, ...]:
    """Return the CPUs of the kernel's list format."""
    cpus: list[int] = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first:
            cpus += range(int(first), int(last or first) + 1)
    return tuple(cpus)


def reason_of(error: OSError, folder: Path) -> str:
    """Return why a subtree could not be made, for the user."""
    match error.errno:
        case errno.EACCES | errno.EPERM:
            return f"this user may not make groups in `{folder.parent}`"
        case errno.EROFS:
            return f"`{folder.parent}` is mounted read-only"
        case errno.EEXIST:
            return f"this process has a subtree in `{folder.parent}` already"
        case _:
            return f"cannot make the group `{folder}`: {error.strerror}"
