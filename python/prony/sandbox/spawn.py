"""Turns a forked process into the subject's main process: session, user, CPUs, limits, then the command.

Runs in the child only, between fork and exec. Standard library only.

>>> BASE_ENVIRONMENT["LANG"]
'C.UTF-8'
"""

import contextlib
import json
import os
import resource
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from prony.core.lines import json_object
from prony.core.users import HIDES_SESSIONS, SUBJECT_PATH
from prony.sandbox import linux
from prony.sandbox.linux import join

# The environment of a subject besides what its launch sets: nothing of the caller's, so that two users
# measure the same.
BASE_ENVIRONMENT: Mapping[str, str] = {
    "LANG": "C.UTF-8",
    "NODE_OPTIONS": HIDES_SESSIONS,
    "PATH": SUBJECT_PATH,
}


BEFORE_FAILED = 113
"""The status of a process whose command before it failed: of no use to shells or to sysexits.h."""


class Process(NamedTuple):
    """One process to start; ``name`` identifies it.

    ``join_paths``: the files by which it enters its control group. ``before``: a command that must succeed
    before it is executed.
    """

    name: str
    command: list[str]
    environment: dict[str, str]
    folder: str
    join_paths: list[str] = []  # noqa: RUF012 (never changed)
    before: list[str] = []  # noqa: RUF012 (never changed)


class SpawnOrder(NamedTuple):
    """What the supervisor must start, as one line of JSON with these names. ``uid`` null: as the caller.

    ``processes`` are started in their order and together are the subject. ``kill_timeout_s``: how long to
    keep killing what is left of it, before reporting what still runs.

    In a PID namespace ``read_only`` folders cannot be written, but ``writable`` ones in them can;
    ``temporary`` takes the place of /tmp, of which ``shown`` stays; ``hidden`` files are empty.
    ``layer``: the folder that a layer covers, and its place (`prony.sandbox.start`). ``disk_bytes`` and
    ``disk_files``: how large the folders ``watched`` may become, and with how many files; ``pids``: how many
    processes its user may have. Null: no limit.
    ``sysctl``: settings of the kernel in its own network.

    A build has more: ``memory_bytes``, how much memory all its processes together may use; descriptors that
    the supervisor inherits: ``relay``, to which it hands a socket that listens in the build's network, and
    the build's ``stdin`` and ``stdout``.
    """

    processes: list[Process]
    uid: int | None
    gid: int | None
    groups: list[int] | None
    cpus: list[int]
    own_cpus: list[int]
    network_namespace: bool
    pid_namespace: bool
    census: str | None = None
    no_new_privileges: bool = True
    kill_timeout_s: float = 10.0
    read_only: Sequence[str] = ()
    writable: Sequence[str] = ()
    temporary: str | None = None
    shown: Sequence[str] = ()
    hidden: Sequence[str] = ()
    layer: Mapping[str, str] | None = None
    watched: Sequence[str] = ()
    disk_bytes: int | None = None
    disk_files: int | None = None
    pids: int | None = None
    sysctl: Mapping[str, str] = {}
    memory_bytes: int | None = None
    relay: int | None = None
    stdin: int | None = None
    stdout: int | None = None

    @classmethod
    def parse(cls, line: bytes) -> "SpawnOrder":
        """Parse a line of JSON."""
        fields: dict[str, Any] = json_object(line)
        processes = [Process(**one) for one in fields.pop("processes")]
        return cls(processes, **fields)


def become(order: SpawnOrder, process: Process, log: int, failures: int, parent: int) -> NoReturn:
    """Turn the calling process into ``process``. On failure, report it on ``failures`` and exit with 127.

    ``parent``: the process that it must not survive.
    """
    step = ""
    try:
        for name, action in _steps(order, process, log, failures, parent):
            step = name
            action()
        if process.before:
            # Whoever waits for the start waits no longer: it may take its time, and its output is the log.
            os.close(failures)
            _run_before(process)
        step = f"execute `{process.command[0]}`"
        os.execvpe(process.command[0], process.command, process.environment)  # noqa: S606 (a list, no shell)
    except BaseException as error:  # nothing may escape: this is a copy of the supervisor
        report_failure(2 if process.before else failures, step, error)
    os._exit(127)


def _run_before(process: Process) -> None:
    try:
        status = subprocess.run(process.before, env=process.environment, check=False).returncode
    except OSError as error:
        report_failure(2, f"execute `{process.before[0]}`", error)
        status = 127
    if status != 0:
        os._exit(BEFORE_FAILED)


def report_failure(failures: int, step: str, error: BaseException) -> None:
    """Write which step failed, and why."""
    reason = (
        (os.strerror(error.errno) if error.errno else str(error))
        if isinstance(error, OSError)
        else repr(error)
    )
    with contextlib.suppress(OSError):
        os.write(failures, json.dumps({"step": step, "reason": reason}).encode())


def _steps(
    order: SpawnOrder, process: Process, log: int, failures: int, parent: int
) -> tuple[tuple[str, Callable[[], object]], ...]:
    return (
        ("reset signals", _reset_signals),
        ("open a session", os.setsid),
        ("reset the priority", _reset_priority),
        # Entering a group's CPU set may reset the affinity, so it comes first.
        ("enter the control group", lambda: join(process.join_paths)),
        ("set the CPUs", lambda: os.sched_setaffinity(0, order.cpus)),
        ("set limits", lambda: _set_limits(order)),
        ("connect the output", lambda: _connect(order, log, failures)),
        (f"change to the user {order.uid}", lambda: _change_user(order)),
        ("leave the caller's keys", linux.own_keys),
        ("tie it to the supervisor", lambda: _die_with(parent)),
        ("give up privileges", lambda: linux.forbid_new_privileges() if order.no_new_privileges else None),
        # As the subject's user, so that a folder that it cannot enter is reported here.
        (f"enter the folder `{process.folder}`", lambda: os.chdir(process.folder)),
        ("set the mask of new files", lambda: os.umask(0o022)),
    )


def _die_with(parent: int) -> None:
    linux.die_with_parent()
    # It may have been killed before that.
    if os.getppid() != parent:
        raise ProcessLookupError("the supervisor is gone")


def _reset_signals() -> None:
    # Ignored signals stay ignored across exec: Python ignores two, the supervisor more, and a shell that
    # starts Prony in the background ignores those of the keyboard.
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        with contextlib.suppress(OSError):
            signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _reset_priority() -> None:
    if os.getpriority(os.PRIO_PROCESS, 0) != 0:
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, 0)


def _set_limits(order: SpawnOrder) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _lower(resource.RLIMIT_NPROC, order.pids)
    _lower(resource.RLIMIT_FSIZE, order.disk_bytes)
    # Where the machine's memory ends before any ceiling does, the kernel ends this first, and nobody else.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _lower(limit: int, to: int | None) -> None:
    hard = resource.getrlimit(limit)[1]
    if to is not None and (hard == resource.RLIM_INFINITY or to < hard):
        resource.setrlimit(limit, (to, to))


def _connect(order: SpawnOrder, log: int, failures: int) -> None:
    os.dup2(os.open(os.devnull, os.O_RDONLY) if order.stdin is None else order.stdin, 0)
    os.dup2(log if order.stdout is None else order.stdout, 1)
    os.dup2(log, 2)
    os.closerange(3, failures)
    os.closerange(failures + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def _change_user(order: SpawnOrder) -> None:
    if order.uid is None or order.gid is None:
        return
    os.setgroups(order.groups or [order.gid])
    os.setresgid(order.gid, order.gid, order.gid)
    os.setresuid(order.uid, order.uid, order.uid)
