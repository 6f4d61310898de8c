"""What both back ends share: name folders, create the subtree, set the CPUs, explain failures.

Knows of a version only the file names that the caller passes.

>>> parse_cpus("0-2,5")
(0, 1, 2, 5)
"""

import errno
import re
from pathlib import Path

from prony.sandbox.cgroup.files import CgroupFiles

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
