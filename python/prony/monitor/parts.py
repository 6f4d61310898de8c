"""Which part of a subject a process belongs to: server, frontend or service.

Must not know roles.

>>> main_of(7, [8, 7])
7
"""

from collections.abc import Callable, Sequence
from pathlib import Path


def main_of(pid: int, mains: Sequence[int]) -> int:
    """Return the one of ``mains`` that ``pid`` is, descends from, or else belongs to.

    A daemon leaves its parent. It keeps its control group (with control groups each part has one of its own),
    or else its session, or its program: the first of these that it shares with exactly one of ``mains``
    decides. If none decides, it belongs to the first of ``mains``.

    *Source*: cgroups(7), setsid(2), proc_pid_exe(5).
    """
    above = _main_above(pid, mains)
    if above is not None:
        return above
    for mark in (_groups, _session, _program):
        own = mark(pid)
        alike = [main for main in mains if own is not None and mark(main) == own]
        if len(alike) == 1:
            return alike[0]
    return mains[0]


def _main_above(pid: int, mains: Sequence[int]) -> int | None:
    while pid > 1 and pid not in mains:
        fields = _stat(pid)
        pid = int(fields[1]) if fields else 0
    return pid if pid in mains else None


def _groups(pid: int) -> str | None:
    return _read(lambda: Path(f"/proc/{pid}/cgroup").read_text())


def _session(pid: int) -> str | None:
    fields = _stat(pid)
    return fields[3] if fields else None


def _program(pid: int) -> str | None:
    return _read(lambda: str(Path(f"/proc/{pid}/exe").readlink()))


def _stat(pid: int) -> list[str] | None:
    """Return the fields after its name: state, parent, group, session (proc_pid_stat(5)); null: it has
    ended.
    """
    text = _read(lambda: Path(f"/proc/{pid}/stat").read_text(errors="replace"))
    # The name may hold anything, even brackets.
    return text.rpartition(")")[2].split() if text else None


def _read(action: Callable[[], str]) -> str | None:
    try:
        return action()
    except OSError:
        return None
