"""Runs one command of a set-up to its end; nothing of it stays, also where Prony is killed.

What a stranger wrote is a build: in namespaces of its own, under ceilings. It writes only the folders that
are named, and its network has nothing but the relay.

>>> BuildTask(("make",), {}, Path("/srv")).writable
()
"""

import os
import stat
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

from prony.core.errors import HostError
from prony.core.units import MIB, MINUTE_NS, format_bytes, format_duration, seconds
from prony.core.users import BuildRules, RunAs
from prony.model.json_codec import Json
from prony.model.launch import StopRule
from prony.sandbox import process
from prony.sandbox.choice import PIDS, disk_bytes, disk_files, memory_bytes, pids_of_user
from prony.sandbox.journal import RunFolder
from prony.sandbox.order import layer_order, temporary_order
from prony.sandbox.pipe import Supervisor
from prony.sandbox.relay import Relay
from prony.sandbox.start import RELAY

_START_S = 20.0
_USUAL_NS = 30 * MINUTE_NS
# It is kept in memory. No lock and no version is as long; what a build has to say goes to its log.
_MOST_OUTPUT_BYTES = 64 * MIB
# Where most programs of the machine listen: nothing there is a build's business.
_SOCKETS = Path("/run")
_PROXY = f"http://{RELAY[0]}:{RELAY[1]}"
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_UNIX_SOCKETS = Path("/proc/net/unix")
# As shells have it.
_NOT_STARTED, _NOT_CAUGHT = 127, 128


@dataclass(frozen=True, slots=True)
class BuildTask:
    """One command. ``writable``: the folders that it may write, besides a home that goes away with it.

    What it writes into the folder ``covered`` goes away too.
    """

    command: Sequence[str]
    environment: Mapping[str, str]
    folder: Path
    writable: Sequence[Path] = ()
    covered: Path | None = None


@dataclass(frozen=True, slots=True)
class BuildEnd:
    """How a build's command ended, with its output and its log."""

    status: int
    output: str
    log: str


@dataclass(frozen=True, slots=True)
class BuildPlace:
    """What a command has around it: the ``run`` whose folder holds its home, its input, and the ``relay``
    that is all the network of a build; None: it is no build, and nothing confines it.
    """

    run: RunFolder
    relay: Relay | None
    stdin: BinaryIO


def why_no_builds() -> str | None:
    """Return why no build can be confined on this machine; None: it can."""
    missing = [str(reason) for reason in process.possible_namespaces().values() if reason]
    return missing[0] if missing else None


def run_build(
    task: BuildTask, user: RunAs, place: BuildPlace, on_start: Callable[[Supervisor], None]
) -> BuildEnd:
    """Run ``task`` as ``user``, whose is the folder `home_of` of a build. ``on_start`` gets what can end it.

    *Errors*: HostError when the sandbox cannot be made; OSError.
    """
    # Beside the home, so that the ceiling of the disk holds for it too.
    with tempfile.TemporaryFile(dir=place.run.folder) as output:
        inherited = {"stdin": place.stdin.fileno(), "stdout": output.fileno()}
        order = _order(task, user)
        if place.relay is not None:
            inherited["relay"] = place.relay.there.fileno()
            order |= _confinement(task, user, home_of(place.run))
        supervisor = Supervisor.start({**order, **inherited}, tuple(inherited.values()))
        on_start(supervisor)
        try:
            if place.relay is not None:
                place.relay.there.close()
            status, said = _ended(supervisor, user.build, place.relay is not None)
        finally:
            supervisor.stop((StopRule("SIGKILL", 0),))
        log = str((supervisor.seen("log") or {"text": ""})["text"])
        output.seek(0)
        text = output.read(_MOST_OUTPUT_BYTES + 1)
        if len(text) > _MOST_OUTPUT_BYTES:
            status, text = 1, b""
            said = said or f"error: it printed more than {format_bytes(_MOST_OUTPUT_BYTES)}"
        return BuildEnd(status, text.decode(errors="replace"), "\n".join(filter(None, (log, said))))


def home_of(run: RunFolder) -> Path:
    """Return the home of a build's command."""
    return run.folder / "build"


def _ended(supervisor: Supervisor, rules: BuildRules, is_build: bool) -> tuple[int, str]:
    """Return the command's status, and why it was ended if Prony did that, or why it did not start."""
    started = supervisor.wait_for("started", "failed", timeout_s=_START_S)
    if started["event"] == "failed":
        reason = f"cannot {started['step']}: {started['reason']}"
        if is_build:
            raise HostError(f"a build cannot be confined: {reason}")
        return _NOT_STARTED, reason
    most_ns = rules.time_ns or _USUAL_NS
    deadline_s = time.monotonic() + seconds(most_ns)
    try:
        end = supervisor.wait_for("exited", timeout_s=seconds(most_ns))
    except HostError:
        if time.monotonic() < deadline_s:
            raise
        return _NOT_CAUGHT + 9, _too_much(format_duration(most_ns), "time")
    if "outgrew_memory" in end:
        return end["status"], _too_much(format_bytes(end["outgrew_memory"]), "memory")
    if "outgrew" in end:
        exceeded = end["outgrew"]
        most = format_bytes(exceeded["bytes"]) if "bytes" in exceeded else f"{exceeded['files']} files"
        return end["status"], _too_much(most, "disk")
    return end["status"], ""


def _too_much(most: str, what: str) -> str:
    return f"error: the build needs more than {most} ({what}); `--build-limits {what}=...` gives it more"


def _order(task: BuildTask, user: RunAs) -> Json:
    cpus = sorted(os.sched_getaffinity(0))
    return {
        "processes": [_process(task, task.environment)],
        "uid": user.uid if user.drop else None,
        "gid": user.gid if user.drop else None,
        "groups": list(user.groups()) if user.drop else None,
        "cpus": cpus,
        "own_cpus": cpus,
        "network_namespace": False,
        "pid_namespace": False,
    }


def _process(task: BuildTask, environment: Mapping[str, str]) -> Json:
    return {
        "name": "build",
        "command": list(task.command),
        "environment": dict(environment),
        "folder": str(task.folder),
    }


def _confinement(task: BuildTask, user: RunAs, home: Path) -> Json:
    rules = user.build
    return {
        "processes": [_process(task, _environment(task.environment, home))],
        "network_namespace": True,
        "pid_namespace": True,
        "disk_bytes": rules.disk_bytes or disk_bytes(home),
        "disk_files": disk_files(home),
        "memory_bytes": rules.memory_bytes or memory_bytes(),
        "pids": pids_of_user(user.uid, rules.processes or PIDS),
        **_files(task, home, user),
    }


def _environment(given: Mapping[str, str], home: Path) -> dict[str, str]:
    own = {name: value for name, value in given.items() if not name.lower().endswith("_proxy")}
    proxies = dict.fromkeys([*_PROXIES, *map(str.upper, _PROXIES)], _PROXY)
    return {**own, **homes(home), **proxies}


def homes(home: Path) -> Mapping[str, str]:
    """Return the variables by which tools find where they may keep something."""
    return MappingProxyType({"HOME": str(home), "UV_CACHE_DIR": f"{home}/.cache/uv"})


def _files(task: BuildTask, home: Path, user: RunAs) -> Json:
    writable = [str(home), *map(str, task.writable)]
    named = [str(user.cache), str(task.folder), *task.command, *task.environment.values()]
    sockets = [] if any(one.startswith(f"{_SOCKETS}/") for one in named) else [str(_SOCKETS)]
    unseen = [*sockets, *_listening()]
    return {
        "read_only": ["/"],
        "writable": writable,
        "watched": writable,
        "hidden": unseen,
        **temporary_order(home, [*named, *writable]),
        **layer_order(task.covered, home, unseen, writable),
    }


def _listening() -> list[str]:
    """Return the sockets with a path: a mount that is read-only lets anybody connect. A line may be what
    somebody called a socket, and name what is none. *Source*: proc(5).
    """
    lines = _UNIX_SOCKETS.read_text(errors="surrogateescape").splitlines()[1:]
    paths = {line.split(maxsplit=7)[7] for line in lines if " /" in line}
    return sorted(path for path in paths if path.startswith("/") and _is_socket(path))


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)  # noqa: PTH116
    except OSError:
        return False
