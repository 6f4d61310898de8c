"""The sandbox ``container``: a subject with its supervisor in a container of Docker's or Podman's.

>>> ContainerSandbox.__name__
'ContainerSandbox'

A running container: a supervisor in it that waits for its order, and the PIDs outside of it.

>>> inner_number("Name:\\tx\\nNSpid:\\t4711\\t7\\n")
7
"""

import contextlib
import os
import re
import secrets
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random

from prony.core.errors import HostError
from prony.core.users import RunAs
from prony.model.json_codec import Json
from prony.model.launch import Launch
from prony.model.sandbox import Network, Placement, SandboxChoice, SandboxFacts, SandboxKind
from prony.sandbox import journal
from prony.sandbox.cgroup.scope import ForeignGroup
from prony.sandbox.cgroup.types import Counters, Limits
from prony.sandbox.choice import ceilings, with_ceilings
from prony.sandbox.container_engine import (
    FoundEngine,
    hiding_options,
    limit_options,
    limit_states,
    usable_engine,
)
from prony.sandbox.groups import TrialGroups, limits_asked
from prony.sandbox.identity import descendants
from prony.sandbox.linux import in_network, read_network_settings, write_network_settings
from prony.sandbox.order import archives_beside, identities, make_order, make_seat, not_started, write_folders
from prony.sandbox.pipe import Supervisor
from prony.sandbox.process import ProcessSandbox
from prony.sandbox.subject import RunningSubject

_CONTAINER_START_S = 30.0
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

    def counters(self) -> Counters:
        """Return the kernel's counters of it."""
        return self._group.counters()

    def kill(self) -> int:
        """Return 0: the supervisor kills and counts; what the removal kills besides is not counted."""
        return 0

    def remove(self) -> str | None:
        """Kill all processes in it and remove it; return None, or why it still exists."""
        return self._found.engine.remove(self._container)


def inner_number(status: str) -> int | None:
    """Return a process's PID in its innermost PID namespace, from /proc/<pid>/status."""
    found = re.search(r"^NSpid:.*\t(\d+)$", status, re.MULTILINE)
    return int(found[1]) if found else None


def _numbers_outside(first: int) -> dict[int, int]:
    numbers = {}
    for pid in descendants(first):
        with contextlib.suppress(OSError):
            inner = inner_number(Path(f"/proc/{pid}/status").read_text(errors="replace"))
            if inner is not None:
                numbers[inner] = pid
    return numbers


def _first_process(found: FoundEngine, container: str, supervisor: Supervisor) -> int:
    """Return the PID of the container's first process as soon as it runs."""
    deadline_s = time.monotonic() + _CONTAINER_START_S
    while time.monotonic() < deadline_s:
        if supervisor.is_gone():
            # Says why.
            supervisor.wait_for("started", timeout_s=0)
        with contextlib.suppress(HostError):
            pid = int(found.engine.ask("inspect", "--format", "{{.State.Pid}}", container) or 0)
            if pid:
                return pid
        time.sleep(_PAUSE_S)
    raise HostError(f"`{found.engine.name}` did not start a container within {_CONTAINER_START_S:g} s")


_START_S = 20.0


class ContainerSandbox:
    """See ``Sandbox``. One for each trial."""

    def __init__(self, choice: SandboxChoice, user: RunAs, folder: Path, hidden: Path | None = None) -> None:
        self._hidden = hidden
        self._choice = choice
        self._user = user
        # Folders and ports are the same as in the sandbox `process`.
        self._outside = ProcessSandbox(choice, user, folder)
        self.folder = folder
        self.folder_for = self._outside.folder_for

    @property
    def facts(self) -> SandboxFacts:
        """What it isolates on this machine."""
        isolated = self._choice.network is Network.ISOLATED
        states = limit_states(("cpus", *limits_asked(with_ceilings(self._choice))))
        return SandboxFacts(
            network=self._choice.network,
            pid_namespace=True,
            user=self._user.name,
            cpus=f"by a container of {usable_engine().engine.name}",
            limits={name: states[name] for name in ("cpus", *limits_asked(self._choice))},
            ceilings=ceilings(self._choice, self.folder, dict(states)),
            missing={} if isolated else {"network namespace": "the user chose the host's network"},
            kind=SandboxKind.CONTAINER,
        )

    def free_port(self, random: Random | None = None) -> int:
        """Return a random port on which nothing listens in the subject's network."""
        return self._outside.free_port(random)

    def start(self, launch: Launch, placement: Placement) -> RunningSubject:
        """Start the subject; it need not be ready when this returns.

        *Errors*: SubjectError with stage ``start``; HostError when the container cannot be created.
        """
        write_folders(launch, self.folder_for, self._user)
        container = self._container(launch, placement)
        try:
            if self._choice.network is Network.ISOLATED:
                self._set_kernel(container)
            return self._started(launch, placement, container)
        except BaseException:
            container.supervisor.kill()
            container.remove()
            journal.forget(self.folder)
            raise

    def _container(self, launch: Launch, placement: Placement) -> Container:
        choice = with_ceilings(self._choice)
        isolated = choice.network is Network.ISOLATED
        # Beside the subject's processes, its supervisor.
        pids = None if choice.pids is None else choice.pids + 1
        limits = Limits(placement.server_cpus, choice.cpu_quota, choice.memory_bytes, pids)
        options = ["--network", "none" if isolated else "host", *limit_options(limits)]
        options += [word for one in archives_beside(self._hidden) for word in hiding_options(one)]
        name = launch.name if len(launch.processes) == 1 else "container"
        shown = [self._user.cache, *_folders_of(launch)]
        return Container.start(usable_engine(), name, options, shown, [self.folder])

    def _set_kernel(self, container: Container) -> None:
        network, asked = f"/proc/{container.pid}/ns/net", dict(self._choice.sysctl)
        in_network(network, partial(write_network_settings, read_network_settings()))
        for name in in_network(network, partial(write_network_settings, asked)):
            raise HostError(f"the kernel refuses `{name}` = `{asked[name]}` in a network of its own")

    def _started(self, launch: Launch, placement: Placement, container: Container) -> RunningSubject:
        supervisor = container.supervisor
        supervisor.give(make_order(launch, placement, self._user, self.folder_for, lambda _: ()))
        started = supervisor.wait_for("started", "failed", timeout_s=_START_S)
        if started["event"] == "failed":
            raise not_started(started, self._user.name)
        outside = container.as_outside(started)
        journal.record(self.folder, identities(outside))
        isolated = self._choice.network is Network.ISOLATED
        seat = make_seat(container.pid, placement, self._user, isolated=isolated, folder=self.folder)
        groups = TrialGroups({container.name: container})
        return RunningSubject(launch, seat, supervisor, outside, self.folder, groups)


def _folders_of(launch: Launch) -> list[Path]:
    """Return the folders that a subject names: its working directory, and where it imports from."""
    named = []
    for process in launch.processes:
        named += [process.folder or "", *process.environment.get("PYTHONPATH", "").split(":")]
    return [Path(one) for one in named if one.startswith("/") and one != "/" and Path(one).is_dir()]
