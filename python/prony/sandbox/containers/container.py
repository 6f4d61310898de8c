"""A running container: a supervisor in it that waits for its order, and the PIDs outside of it.

Must not know trials.

>>> inner_number("Name:\\tx\\nNSpid:\\t4711\\t7\\n")
7
"""

import contextlib
import os
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from prony.errors import HostError
from prony.model.shapes import Json
from prony.sandbox.cgroup.base import Counters, LimitName, Limits
from prony.sandbox.cgroup.foreign import ForeignGroup
from prony.sandbox.containers.found import FoundEngine
from prony.sandbox.identity import descendants
from prony.sandbox.pipe import Supervisor

_START_S = 30.0
_PAUSE_S = 0.05


class Container:
    """See ``Group``: it holds all processes of a subject, together with their supervisor."""

    join_paths: tuple[str, ...] = ()

    def __init__(self, name: str, found: FoundEngine, container: str, supervisor: Supervisor) -> None:
        self.name = name
        self.supervisor = supervisor
        self._found = found
        self._container = container
        self.pid = _first_process(found, container, supervisor)
        self._group = ForeignGroup.of(self.pid)

    @classmethod
    def start(
        cls,
        found: FoundEngine,
        name: str,
        options: Sequence[str],
        read_only: Sequence[Path],
        writable: Sequence[Path],
    ) -> "Container":
        """Start a container in which a supervisor waits for its order; the engine runs in a writable folder.

        *Errors*: HostError with the engine's message.
        """
        container = f"prony-{secrets.token_hex(6)}"
        command = [*found.command(container, options, read_only, writable), *Supervisor.command()]
        # Podman's monitor leaves a file in its working directory when the kernel kills because memory ran
        # out.
        supervisor = Supervisor.spawn(command, os.environ, writable[0])
        try:
            return cls(name, found, container, supervisor)
        except BaseException:
            supervisor.kill()
            found.engine.remove(container)
            raise

    def as_outside(self, started: Json) -> Json:
        """Return the supervisor's answer to the start, with the PIDs outside of the container."""
        outside = _numbers_outside(self.pid)
        pids = {name: outside.get(int(pid), 0) for name, pid in started["pids"].items()}
        return {**started, "pids": pids, "tree_pid": self.pid, "network_pid": self.pid}

    def set_limits(self, limits: Limits) -> Mapping[LimitName, str]:
        """Set nothing: a container's limits are set when it starts."""
        return dict.fromkeys(limits.asked(), "a container's limits are set when it starts")

    def members(self) -> tuple[int, ...]:
        """Return the processes in it, with their PIDs in this namespace."""
        return (self.pid, *descendants(self.pid))

    def counters(self) -> Counters:
        """Return the kernel's counters of it."""
        return self._group.counters()

    def kill(self) -> int:
        """Return 0: the supervisor kills and counts; what the removal kills besides is not counted."""
        return 0

    def remove(self) -> str | None:
        """Kill all processes in it and remove it; return null, or why it still exists."""
        return self._found.engine.remove(self._container)

    def __enter__(self) -> "Container":
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove it."""
        self.remove()


def inner_number(status: str) -> int | None:
    """Return a process's PID in its innermost PID namespace, from /proc/<pid>/status."""
    found = re.search(r"^NSpid:.*\t(\d+)$", status, re.MULTILINE)
    return int(found[1]) if found else None


def _numbers_outside(first: int) -> dict[int, int]:
    numbers = {}
    for pid in descendants(first):
        with contextlib.suppress(OSError):
            inner = inner_number(Path(f"/proc/{pid}/status").read_text())
            if inner is not None:
                numbers[inner] = pid
    return numbers


def _first_process(found: FoundEngine, container: str, supervisor: Supervisor) -> int:
    """Return the PID of the container's first process as soon as it runs."""
    deadline_s = time.monotonic() + _START_S
    while time.monotonic() < deadline_s:
        if supervisor.is_gone():
            # Says why.
            supervisor.wait_for("started", timeout_s=0)
        with contextlib.suppress(HostError):
            pid = int(found.engine.ask("inspect", "--format", "{{.State.Pid}}", container) or 0)
            if pid:
                return pid
        time.sleep(_PAUSE_S)
    raise HostError(f"`{found.engine.name}` did not start a container within {_START_S:g} s")
