"""Which cgroup hierarchies are mounted, and where in them this process is.

Pure: the caller passes the texts. *Source*: proc_pid_mountinfo(5); cgroups(7), "/proc/pid/cgroup".
Must not know how Prony uses them.

>>> line = "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw"
>>> found = find_hierarchies(line, "0::/user.slice/a.scope")
>>> found[0].version, str(found[0].folder)
('v2', '/sys/fs/cgroup/user.slice/a.scope')
"""

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple


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
    own = _own_groups(cgroup)
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


def _own_groups(text: str) -> dict[str, str]:
    """Return the process's group by controller; under the empty name: its group in v2."""
    groups = {}
    for line in text.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        groups.update(dict.fromkeys(controllers.split(","), path))
    return groups


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
