"""Control groups from a scope of systemd, for a Prony that was started in a group that is not its own.

With cgroup v2 only systemd hands out parts of the tree of groups. So this process asks systemd for the same
as `systemd-run --scope -p Delegate=yes` gives a new process; arguments, terminal and exit status stay as they
are. Must not know what the groups are used for.

>>> in_unit("0::/user.slice/user-7.slice/user@7.service/app.slice/prony-1.scope", "prony-1.scope")
True
"""

import os
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path

from prony.sandbox.cgroup.base import CgroupTree, NoCgroups
from prony.sandbox.cgroup.mark import own_mark
from prony.sandbox.cgroup.mounts import find_hierarchies
from prony.sandbox.cgroup.tree import open_cgroups

_PROC = Path("/proc")
_TIMEOUT_S = 10.0
_PAUSE_S = 0.01
_MANAGER = ("org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager")
_HINT = (
    "run Prony as root, or where systemd runs for its user (`systemctl --user status` shows that): in a "
    "login session, or after `loginctl enable-linger`"
)


def gain_cgroups(proc: Path = _PROC) -> CgroupTree | NoCgroups:
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
    """Move this process into a scope of its own, delegated to its user; return null, or why that failed.

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
    """Ask systemd for the scope; return null, or why it refused."""
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
