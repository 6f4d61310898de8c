"""Control groups from a scope of systemd, for a Prony that was started in a group that is not its own.

With cgroup v2 only systemd hands out parts of the tree of groups. So this process asks systemd for the same
as `systemd-run --scope -p Delegate=yes` gives a new process; arguments, terminal and exit status stay as they
are.

>>> in_unit("0::/user.slice/user-7.slice/user@7.service/app.slice/prony-1.scope", "prony-1.scope")
True

Prony's own subtree of the groups in which it was started, for both versions of cgroups.

>>> isinstance(open_cgroups(Path("/nowhere")), NoCgroups)
True

The control group of a process that Prony did not create: found and read, never changed.

>>> ForeignGroup(()).counters().cpu_ns is None
True
"""

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Self

from prony.core.errors import HostError
from prony.sandbox.cgroup.ending import kill_all, members, remove_all
from prony.sandbox.cgroup.files import (
    CgroupFiles,
    Hierarchy,
    KernelFiles,
    find_hierarchies,
    merge,
    own_mark,
    part_folder,
)
from prony.sandbox.cgroup.types import LIMITS, Counters, CountersReading, LimitName, Limits, NoCgroups
from prony.sandbox.cgroup.v1 import USED, V1, open_v1, read_v1
from prony.sandbox.cgroup.v2 import V2, open_v2, read_v2

_HINT_OF_TREE = (
    "run Prony as root, or in a group of cgroup v2 that its user owns and that holds no other process"
)
_SELF = Path("/proc/self")
_KERNEL = KernelFiles()

Backend = V1 | V2


def open_cgroups(proc: Path = _SELF, files: CgroupFiles = _KERNEL) -> "CgroupTree | NoCgroups":
    """Return Prony's own subtree, or why there is none.

    With v2 it may move the calling process into a leaf, so call it before children are started. A controller
    that v2 lacks is looked for on v1.
    """
    try:
        hierarchies = find_hierarchies((proc / "mountinfo").read_text(), (proc / "cgroup").read_text())
        name = str(own_mark())
    except OSError as error:
        return NoCgroups(f"cannot read `{error.filename}`: {error.strerror}")
    made: list[Path] = []
    opened = _open_mounted(files, hierarchies, name, made)
    backends = [one for one in opened if not isinstance(one, NoCgroups)]
    tree = CgroupTree(files, backends, made)
    if backends and len(tree.missing) < len(LIMITS):
        return tree
    tree.close()
    reasons = [*tree.missing.values(), *(one.reason for one in opened if isinstance(one, NoCgroups))]
    return NoCgroups("; ".join(dict.fromkeys(reasons)) or "no cgroups are mounted", _HINT_OF_TREE)


def _open_mounted(
    files: CgroupFiles, hierarchies: tuple[Hierarchy, ...], name: str, made: list[Path]
) -> list[Backend | NoCgroups]:
    opened: list[Backend | NoCgroups] = []
    if any(one.version == "v2" for one in hierarchies):
        v2 = open_v2(files, hierarchies, name, made)
        if not isinstance(v2, NoCgroups) and not v2.missing:
            return [v2]
        opened.append(v2)
    if any(one.controllers & USED for one in hierarchies):
        opened.append(open_v1(files, hierarchies, name, made))
    return opened


class CgroupTree:
    """Prony's own subtree. As a context manager it calls ``close`` on exit."""

    def __init__(self, files: CgroupFiles, backends: list[Backend], made: list[Path]) -> None:
        self._files = files
        self._backends = backends
        self._made = made

    @property
    def version(self) -> Literal["v1", "v2", "v1 and v2"]:
        """The versions of cgroups in use."""
        return "v1 and v2" if len(self._backends) > 1 else self._backends[0].version

    @property
    def places(self) -> tuple[Path, ...]:
        """The subtree in each hierarchy."""
        return tuple(place for backend in self._backends for place in backend.places)

    @property
    def missing(self) -> Mapping[LimitName, str]:
        """The limits that cannot be set on this machine, with the reasons."""
        return {
            limit: "; ".join(dict.fromkeys(one.missing[limit] for one in self._backends))
            for limit in LIMITS
            if self._backends and all(limit in one.missing for one in self._backends)
        }

    def create(self, name: str) -> "OwnGroup":
        """Create a group for one part of a trial.

        *Errors*: HostError when that fails; ValueError for an invalid name.
        """
        folders = tuple(part_folder(place, name) for place in self.places)
        try:
            for backend in self._backends:
                backend.create(name)
        except OSError as error:
            if not isinstance(error, FileExistsError):
                remove_all(self._files, folders)
            raise HostError(f"cannot create the cgroup `{name}`: {error.strerror}") from error
        return OwnGroup(name, self._files, self._backends, folders)

    def close(self) -> str | None:
        """Kill all processes, remove all groups and the subtree; return None, or why something is left."""
        parts = [place / name for place in self._made for name in self._parts(place)]
        kill_all(self._files, parts)
        reasons = [remove_all(self._files, parts)]
        for backend in self._backends:
            try:
                backend.leave()
            except OSError as error:
                reasons.append(f"cannot leave the cgroup `{backend.places[0]}`: {error.strerror}")
        reasons.append(remove_all(self._files, self._made))
        return "; ".join(filter(None, reasons)) or None

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def _parts(self, place: Path) -> list[str]:
        # Prony's leaf is not one of them: processes in it are moved back, not killed.
        with contextlib.suppress(OSError):
            return [name for name in self._files.folders(place) if name.startswith("part-")]
        return []


class OwnGroup:
    """See ``ControlGroup``. As a context manager it calls ``remove`` on exit."""

    def __init__(
        self, name: str, files: CgroupFiles, backends: list[Backend], folders: tuple[Path, ...]
    ) -> None:
        self.name = name
        self._files = files
        self._backends = backends
        self._folders = folders

    @property
    def join_paths(self) -> tuple[str, ...]:
        """The files into which a process writes ``0`` to enter: see ``join.join``."""
        return tuple(str(folder / "cgroup.procs") for folder in self._folders)

    def set_limits(self, limits: Limits) -> Mapping[LimitName, str]:
        """Set the given limits, and return the reason for each limit that could not be set."""
        refused: dict[LimitName, str] = {}
        for limit, value in limits.asked().items():
            backend = next((one for one in self._backends if limit not in one.missing), None)
            if backend is None:
                refused[limit] = "; ".join(dict.fromkeys(one.missing[limit] for one in self._backends))
                continue
            try:
                backend.set_limit(self.name, limit, value)
            except OSError as error:
                refused[limit] = f"the kernel refused `{value}`: {error.strerror}"
        return refused

    def members(self) -> tuple[int, ...]:
        """Return the processes in it, with their PIDs in this namespace."""
        return members(self._files, self._folders)

    def counters(self) -> Counters:
        """Return the kernel's counters of it."""
        return merge([backend.read(self.name) for backend in self._backends])

    def kill(self) -> int:
        """Kill all processes in it, and return how many there were."""
        return kill_all(self._files, self._folders)

    def remove(self) -> str | None:
        """Kill all processes in it and remove it; return None, or why it still exists."""
        self.kill()
        return remove_all(self._files, self._folders)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove it."""
        self.remove()


_PROC = Path("/proc")
_TIMEOUT_S = 10.0
_PAUSE_S = 0.01
_MANAGER = ("org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager")
_HINT = (
    "run Prony as root, or where systemd runs for its user (`systemctl --user status` shows that): in a "
    "login session, or after `loginctl enable-linger`"
)


def gain_cgroups(proc: Path = _PROC) -> "CgroupTree | NoCgroups":
    """Return Prony's own subtree as ``open_cgroups`` does, if necessary in a new scope of systemd.

    Call it before children are started: they would stay outside. This process stays in the scope until it
    exits.
    """
    tree = open_cgroups(proc / "self")
    if not isinstance(tree, NoCgroups) or not _has_scopes(proc):
        return tree
    refused = enter_scope(proc)
    if refused is None:
        return open_cgroups(proc / "self")
    return replace(
        tree, reason=f"{tree.reason}; a scope of systemd is not available either: {refused}", hint=_HINT
    )


def enter_scope(proc: Path = _PROC, timeout_s: float = _TIMEOUT_S) -> str | None:
    """Move this process into a scope of its own, delegated to its user; return None, or why that failed.

    *Source*: org.freedesktop.systemd1(5), "StartTransientUnit"; systemd.resource-control(5), "Delegate".
    """
    unit = f"{own_mark()}.scope"
    if in_unit(_own_groups(proc), unit):
        return "Prony is in one already"
    return _ask(unit, timeout_s) or _wait_until_in(unit, proc, timeout_s)


def scope_call(user: int, pid: int, unit: str) -> tuple[str, ...]:
    """Return the arguments of ``busctl`` that request the scope: from the system's manager for root, else
    from the user's.

    >>> scope_call(0, 7, "a.scope")[:2], scope_call(1000, 7, "a.scope")[:2]
    (('--system', 'call'), ('--user', 'call'))
    """
    properties = (
        *("Description", "s", "Prony and the servers that it measures"),
        *("Delegate", "b", "true"),
        *("CollectMode", "s", "inactive-or-failed"),
        *("PIDs", "au", "1", str(pid)),
    )
    return (
        *("--user" if user else "--system", "call", *_MANAGER, "StartTransientUnit", "ssa(sv)a(sa(sv))"),
        *(unit, "fail", "4", *properties, "0"),
    )


def in_unit(groups: str, unit: str) -> bool:
    """Return whether the text of /proc/self/cgroup names the v2 group of the unit or one below it."""
    own = next((line.removeprefix("0::") for line in groups.splitlines() if line.startswith("0::")), "")
    return unit in own.split("/")


def _ask(unit: str, timeout_s: float) -> str | None:
    """Ask systemd for the scope; return None, or why it refused."""
    tool = shutil.which("busctl")
    if tool is None:
        return "`busctl` is not on PATH"
    try:
        done = subprocess.run(
            [tool, *scope_call(os.geteuid(), os.getpid(), unit)],
            env=_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=timeout_s,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {timeout_s:g} s"
    except OSError as error:
        return f"cannot execute `{tool}`: {error.strerror}"
    if done.returncode == 0:
        return None
    words = done.stderr.strip().splitlines()
    return words[-1] if words else f"`{tool}` ended with status {done.returncode}"


def _environment() -> dict[str, str]:
    # The folder is not named to what `su` and cron start.
    return {"XDG_RUNTIME_DIR": f"/run/user/{os.geteuid()}", **os.environ, "LC_ALL": "C"}


def _wait_until_in(unit: str, proc: Path, timeout_s: float) -> str | None:
    deadline_s = time.monotonic() + timeout_s
    while not in_unit(_own_groups(proc), unit):
        if time.monotonic() > deadline_s:
            return f"systemd accepted the request but did not move Prony within {timeout_s:g} s"
        time.sleep(_PAUSE_S)
    return None


def _has_scopes(proc: Path) -> bool:
    """Return whether systemd runs here and can hand out controllers of cgroup v2."""
    try:
        # In a PID namespace other than systemd's, this process's PID would mean another process.
        if (proc / "1" / "comm").read_text().strip() != "systemd":
            return False
        found = find_hierarchies((proc / "self" / "mountinfo").read_text(), _own_groups(proc))
        mounts = [one.mount for one in found if one.version == "v2" and one.folder is not None]
        return any((mount / "cgroup.controllers").read_text().split() for mount in mounts)
    except OSError:
        return False


def _own_groups(proc: Path) -> str:
    return (proc / "self" / "cgroup").read_text()


# --- groups that Prony did not create ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ForeignGroup:
    """A group, by the hierarchies in which it is."""

    hierarchies: tuple[Hierarchy, ...]

    @classmethod
    def of(cls, pid: int) -> "ForeignGroup":
        """Return the group that a process is in now.

        *Errors*: OSError when there is no such process.
        """
        mounts = Path("/proc/self/mountinfo").read_text()
        return cls(find_hierarchies(mounts, Path(f"/proc/{pid}/cgroup").read_text()))

    def counters(self, files: CgroupFiles = _KERNEL) -> Counters:
        """Return the kernel's counters of the group, and the reason for each missing one."""
        folders = {name: one.folder for one in self.hierarchies for name in one.controllers}
        v2 = next((one.folder for one in self.hierarchies if one.version == "v2"), None)
        readings: list[CountersReading] = [] if v2 is None else [read_v2(files, v2)]
        if folders:
            readings.append(read_v1(files, folders.get))
        return merge(readings)


class ForeignGroups:
    """The groups of a subject's processes, by their names, where somebody else has put them into any.

    A hierarchy in which Prony is in the same group says nothing of the subject alone. Of a process that has
    ended, the group in which it was seen last counts on.
    """

    def __init__(self, pids: Mapping[str, int]) -> None:
        self._pids = dict(pids)
        self._groups: dict[str, ForeignGroup] = {}
        counted = self.counters()
        self._before = {self._groups[name]: one.oom_kills or 0 for name, one in counted.items()}

    def kills(self) -> dict[str, int]:
        """Return how many processes the kernel has killed for memory since this was made, by the names of
        ``counters``; of a group that processes were put into later, in its whole life.
        """
        killed = {
            name: (one.oom_kills or 0) - self._before.get(self._groups[name], 0)
            for name, one in self.counters().items()
        }
        return {name: count for name, count in killed.items() if count > 0}

    def counters(self) -> dict[str, Counters]:
        """Return the kernel's counters of each group, by its first process; nothing where they share Prony's
        own.
        """
        for name, pid in self._pids.items():
            with contextlib.suppress(OSError):
                own = ForeignGroup.of(os.getpid()).hierarchies
                alone = tuple(one for one in ForeignGroup.of(pid).hierarchies if one not in own)
                if alone:
                    self._groups[name] = ForeignGroup(alone)
        first = {group: name for name, group in reversed(self._groups.items())}
        return {name: group.counters() for group, name in first.items()}
