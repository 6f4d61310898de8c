"""The sandbox ``process``: a subject under a supervisor, in namespaces where allowed, on CPUs by affinity.

Must not know plans or trials.

>>> exit_words(1), exit_words(-9)
('exited with status 1', 'was killed by SIGKILL')
"""

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Self

from prony.errors import HostError, SubjectError
from prony.model import Address, Contract, Json, Launch, LogTail, Placement, Request, SandboxChoice
from prony.runas import RunAs, own_folder
from prony.sandbox import journal
from prony.sandbox.affinity import strays
from prony.sandbox.base import EngineSeat, RunningSubject, SandboxFacts, StopReport
from prony.sandbox.cgroup.base import Counters, LimitName, LimitState
from prony.sandbox.contract import verify
from prony.sandbox.files import write_files
from prony.sandbox.groups import Groups, TrialGroups, states_by_affinity
from prony.sandbox.identity import Identity, identify
from prony.sandbox.pipe import Supervisor
from prony.sandbox.readiness import wait_until_ready
from prony.sandbox.spawn import BASE_ENVIRONMENT

__all__ = ["ProcessSandbox", "exit_words"]

# Below the range from which the kernel takes the clients' ports (32768 up), above those of usual services.
_PORTS = range(20_000, 32_768)
_SPARE_S = 20.0
# Where it is allowed: what else must run on the generator's CPUs, Prony's own work included, waits for it.
_GENERATOR_NICE = -10


class ProcessSandbox:
    """See ``Sandbox``. One for each trial."""

    def __init__(
        self, choice: SandboxChoice, user: RunAs, folder: Path, groups: Groups | None = None
    ) -> None:
        self._choice = choice
        self._user = user
        self._groups = groups
        self._given: set[int] = set()
        self.folder = folder

    @property
    def facts(self) -> SandboxFacts:
        """What it keeps apart here."""
        possible = _possible_namespaces()
        missing = {}
        if self._choice.network == "host":
            missing["network namespace"] = "the host's network was asked for"
        elif possible["network"] is not None:
            missing["network namespace"] = str(possible["network"])
        if possible["pids"] is not None:
            missing["pid namespace"] = str(possible["pids"])
        if os.geteuid() != 0 and os.getpriority(os.PRIO_PROCESS, 0) > 0:
            missing["priority"] = "Prony was started with `nice`, and only root can take that back"
        return SandboxFacts(
            network="host's loopback" if "network namespace" in missing else "own namespace",
            pid_namespace="pid namespace" not in missing,
            user=self._user.name,
            cpus="by affinity" if self._groups is None else "by control group",
            limits=_limit_words(self._groups.states if self._groups else states_by_affinity(self._choice)),
            missing=missing,
            kind=self._choice.kind,
        )

    def free_port(self, random: Random | None = None) -> int:
        """Return a port, drawn at random, on which nothing listens where the subject will."""
        isolated = self.facts.network == "own namespace"
        draw = random if random is not None and isolated else secrets.SystemRandom()
        for _ in range(1000):
            port = draw.choice(_PORTS)
            if port not in self._given and (isolated or _is_free(port)):
                self._given.add(port)
                return port
        raise HostError(
            f"no free port between {_PORTS.start} and {_PORTS.stop}",
            hint="look for servers that still run: `ss -ltn`",
        )

    def start(self, launch: Launch, placement: Placement) -> RunningSubject:
        """Start one process; it need not be ready when this returns.

        *Errors*: SubjectError with stage ``start``; HostError when the sandbox itself cannot be made.
        """
        # The server's folder holds the others: it is given away last, and root makes nothing in it then.
        for process in sorted(launch.processes, key=lambda one: one.name == launch.name):
            folder = own_folder(self.folder_for(process.name), self._user)
            write_files(folder, process.files, self._user)
        facts = self.facts
        groups = self._groups.enter(launch, placement, self._choice) if self._groups else TrialGroups({})
        try:
            return self._started(launch, placement, facts, groups)
        except BaseException:
            groups.remove()
            raise

    def _started(
        self, launch: Launch, placement: Placement, facts: SandboxFacts, groups: TrialGroups
    ) -> RunningSubject:
        supervisor = Supervisor.start(self._order(launch, placement, facts, groups))
        try:
            journal.record(self.folder, {"supervisor": identify(supervisor.pid)})
            started = supervisor.wait_for("started", "failed", timeout_s=_SPARE_S)
            if started["event"] == "failed":
                raise self._not_started(started)
            journal.record(self.folder, _processes(supervisor.pid, started))
            seat = _seat(supervisor.pid, placement, facts, self._user)
            return _ProcessSubject(launch, seat, supervisor, started, self.folder, groups)
        except BaseException:
            supervisor.kill()
            journal.forget(self.folder)
            raise

    def folder_for(self, name: str) -> Path:
        """Return the folder of the subject's process of this name: the server's is the trial's own."""
        return self.folder if name == "server" else self.folder / name

    def _process(self, launch: Launch, groups: TrialGroups) -> Json:
        folder = str(self.folder_for(launch.name))
        own = {"HOME": folder, "USER": self._user.name}
        return {
            "name": launch.name,
            "command": list(launch.command),
            "environment": {**BASE_ENVIRONMENT, **own, **launch.environment},
            "folder": launch.folder or folder,
            "join_paths": list(groups.join_paths(launch.name)) if groups.groups else [],
        }

    def _not_started(self, failed: Json) -> SubjectError:
        step, reason = failed["step"], failed["reason"]
        out_of_reach = (
            f"give `{self._user.name}` a place it can reach with the environment variable PRONY_CACHE"
        )
        return SubjectError(
            f"the server could not be started: cannot {step}: {reason}",
            hint=out_of_reach if step.startswith("enter the folder") else None,
            stage="start",
        )

    def _order(self, launch: Launch, placement: Placement, facts: SandboxFacts, groups: TrialGroups) -> Json:
        drop = self._user.drop
        return {
            "processes": [self._process(process, groups) for process in launch.processes],
            "uid": self._user.uid if drop else None,
            "gid": self._user.gid if drop else None,
            "groups": list(self._user.groups()) if drop else None,
            "cpus": list(placement.server_cpus),
            "own_cpus": list(placement.generator_cpus),
            "network_namespace": facts.network == "own namespace",
            "pid_namespace": facts.pid_namespace,
            "census": str(journal.census_of(self.folder)),
        }


class _ProcessSubject:
    """See ``RunningSubject``."""

    def __init__(  # noqa: PLR0913, PLR0917 - the parts that a running subject is made of
        self,
        launch: Launch,
        seat: EngineSeat,
        supervisor: Supervisor,
        started: Json,
        folder: Path,
        groups: TrialGroups,
    ) -> None:
        self._launch = launch
        self._supervisor = supervisor
        self._folder = folder
        self._groups = groups
        self._report: StopReport | None = None
        self.address: Address = launch.entrance
        self.seat = seat
        self.pids = {str(name): int(pid) for name, pid in started["pids"].items()}
        self.tree_pid = int(started["tree_pid"])
        self.network_pid = supervisor.pid

    def wait_until_ready(self, request: Request | None = None) -> int:
        """Wait until it accepts a connection and answers ``request``; return how many ns that took."""
        return wait_until_ready(self, self._launch.processes, request)

    def verify(self, contract: Contract) -> str | None:
        """Return null when every check of the contract holds, else why the first one that does not fails."""
        return verify(contract, self.address, self.seat.network_namespace)

    def strays(self, placement: Placement) -> tuple[int, ...]:
        """Return its processes that may run on other CPUs than the server's: servers can set their own."""
        return strays(self.tree_pid, placement.server_cpus)

    def exit_reason(self) -> str | None:
        """Return which of its processes ended first, and how; null while all run."""
        event = self._supervisor.seen("exited", "ended")
        if event is not None and "status" in event:
            return f"the {event['name']} {exit_words(int(event['status']))}"
        gone = event is not None or self._supervisor.is_gone()
        return "the server ended with its supervisor" if gone else None

    def counters(self) -> Mapping[str, Counters]:
        """Return what the kernel has counted for each of its processes' control groups; without, nothing."""
        return self._groups.counters()

    def log(self) -> LogTail:
        """Return what it wrote to its output so far."""
        event = self._supervisor.ask_for_log()
        return LogTail(str(event["text"]), bool(event["truncated"])) if event else LogTail("")

    def stop(self) -> StopReport:
        """End it by its own rule, then kill what is left."""
        if self._report is None:
            report = self._supervisor.stop([process.stop for process in self._launch.processes])
            self._report = replace(report, leftovers=report.leftovers + self._groups.remove())
            journal.forget(self._folder)
        return self._report

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self.stop()


def _limit_words(states: Mapping[LimitName, LimitState]) -> dict[str, str]:
    return {name: f"{state.holding}: {state.reason}" for name, state in states.items()}


def exit_words(status: int) -> str:
    """Return a status in words; negative: the signal."""
    if status >= 0:
        return f"exited with status {status}"
    with contextlib.suppress(ValueError):
        return f"was killed by {signal.Signals(-status).name}"
    return f"was killed by signal {-status}"


def _seat(supervisor_pid: int, placement: Placement, facts: SandboxFacts, user: RunAs) -> EngineSeat:
    return EngineSeat(
        cpus=placement.generator_cpus,
        network_namespace=f"/proc/{supervisor_pid}/ns/net" if facts.network == "own namespace" else None,
        uid=user.uid if user.drop else None,
        gid=user.gid if user.drop else None,
        groups=user.groups() if user.drop else None,
        nice=_GENERATOR_NICE if os.geteuid() == 0 else 0,
    )


def _processes(supervisor_pid: int, started: Json) -> dict[str, Identity]:
    processes = {"supervisor": identify(supervisor_pid)}
    for role, pid in {**started["pids"], "tree": started["tree_pid"]}.items():
        # It may have ended already: then there is nothing to record.
        with contextlib.suppress(ProcessLookupError):
            processes[role] = identify(int(pid))
    return processes


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as attempt:
        attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            attempt.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


@cache
def _possible_namespaces() -> Json:
    """Ask once: it does not change while Prony runs."""
    done = subprocess.run(
        [*Supervisor.command(), "--probe"], capture_output=True, check=False, timeout=_SPARE_S
    )
    try:
        return dict(json.loads(done.stdout))
    except ValueError:
        reason = f"the probe failed: {done.stderr.decode(errors='replace').strip()[-200:]}"
        return {"network": reason, "pids": reason}
