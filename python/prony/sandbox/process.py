"""The sandbox ``process``: a subject under a supervisor, in namespaces if allowed, on CPUs by affinity.

>>> ProcessSandbox.__name__
'ProcessSandbox'
"""

import json
import os
import secrets
import socket
import subprocess
from functools import cache
from pathlib import Path
from random import Random

from prony.core.errors import HostError
from prony.core.users import RunAs
from prony.model.json_codec import Json
from prony.model.launch import Launch
from prony.model.sandbox import Network, Placement, SandboxChoice, SandboxFacts
from prony.sandbox import journal
from prony.sandbox.choice import can_isolate_networks, ceilings, pids_of_user
from prony.sandbox.groups import Groups, TrialGroups, limits_asked, states_by_affinity
from prony.sandbox.identity import identify
from prony.sandbox.order import files_order, identities, make_order, make_seat, not_started, write_folders
from prony.sandbox.pipe import Supervisor
from prony.sandbox.remains import carried_over, read_sockets
from prony.sandbox.subject import RunningSubject

# Below the kernel's range for clients' ports (from 32768), above those of common services.
_PORTS = range(20_000, 32_768)
_SPARE_S = 20.0


class ProcessSandbox:
    """See ``Sandbox``. One for each trial."""

    def __init__(
        self,
        choice: SandboxChoice,
        user: RunAs,
        folder: Path,
        groups: Groups | None = None,
        hidden: Path | None = None,
    ) -> None:
        self._hidden = hidden
        self._choice = choice
        self._user = user
        self._groups = groups
        self._given: set[int] = set()
        self.folder = folder

    @property
    def facts(self) -> SandboxFacts:
        """What it isolates on this machine."""
        possible = possible_namespaces()
        missing = {}
        if self._choice.network is Network.HOST:
            missing["network namespace"] = "the user chose the host's network"
        elif possible["network"] is not None:
            missing["network namespace"] = str(possible["network"])
        elif not can_isolate_networks():
            missing["network namespace"] = "this process is in no user namespace of its own, and not root"
        if possible["pids"] is not None:
            missing["pid namespace"] = str(possible["pids"])
        if possible["files"] is not None:
            missing["files"] = str(possible["files"])
        if os.geteuid() != 0 and os.getpriority(os.PRIO_PROCESS, 0) > 0:
            missing["priority"] = "Prony was started with `nice`, and only root can undo that"
        states = self._groups.states if self._groups else states_by_affinity(self._choice)
        return SandboxFacts(
            network=Network.HOST if "network namespace" in missing else Network.ISOLATED,
            pid_namespace="pid namespace" not in missing,
            user=self._user.name,
            cpus="by affinity" if self._groups is None else "by control group",
            limits={name: states[name] for name in ("cpus", *limits_asked(self._choice)) if name in states},
            ceilings=ceilings(self._choice, self.folder, dict(states)),
            missing=missing,
            kind=self._choice.kind,
        )

    def free_port(self, random: Random | None = None) -> int:
        """Return a random port on which nothing listens in the subject's network."""
        isolated = self.facts.network is Network.ISOLATED
        draw = random if random is not None and isolated else secrets.SystemRandom()
        for _ in range(1000):
            port = draw.choice(_PORTS)
            if port not in self._given and (isolated or _is_free(port, self._choice.listen)):
                self._given.add(port)
                return port
        raise HostError(
            f"no free port between {_PORTS.start} and {_PORTS.stop}",
            hint="look for servers that still run: `ss -ltn`",
        )

    def start(self, launch: Launch, placement: Placement) -> RunningSubject:
        """Start the subject; it need not be ready when this returns.

        *Errors*: SubjectError with stage ``start``; HostError when the sandbox itself cannot be created.
        """
        write_folders(launch, self.folder_for, self._user)
        facts = self.facts
        groups = TrialGroups({})
        if self._groups:
            groups = self._groups.enter(launch, placement, self._choice, self.folder.name)
        try:
            return self._started(launch, placement, facts, groups)
        except BaseException:
            groups.remove()
            raise

    def _started(
        self, launch: Launch, placement: Placement, facts: SandboxFacts, groups: TrialGroups
    ) -> RunningSubject:
        order = make_order(launch, placement, self._user, self.folder_for, groups.join_paths)
        isolated = facts.network is Network.ISOLATED
        own: Json = {"network_namespace": isolated, "pid_namespace": facts.pid_namespace}
        own |= {"sysctl": kernel_of(self._choice, isolated=isolated)}
        if "files" not in facts.missing and facts.pid_namespace:
            own |= files_order(launch, self._user, self.folder, isolated=isolated, hidden=self._hidden)
        if self._groups is None:
            own |= {"pids": pids_of_user(self._user.uid)}
        supervisor = Supervisor.start({**order, **own, "census": str(journal.census_of(self.folder))})
        try:
            journal.record(self.folder, {"supervisor": identify(supervisor.pid)})
            started = supervisor.wait_for("started", "failed", timeout_s=_SPARE_S)
            if started["event"] == "failed":
                raise not_started(started, self._user.name)
            started = {**started, "network_pid": supervisor.pid}
            journal.record(self.folder, identities(started))
            seat = make_seat(supervisor.pid, placement, self._user, isolated=isolated, folder=self.folder)
            return RunningSubject(launch, seat, supervisor, started, self.folder, groups)
        except BaseException:
            supervisor.kill()
            journal.forget(self.folder)
            raise

    def folder_for(self, name: str) -> Path:
        """Return the folder of the subject's process of this name; the server's is the trial's folder."""
        return self.folder if name == "server" else self.folder / name


def kernel_of(choice: SandboxChoice, *, isolated: bool) -> dict[str, str]:
    """Return the settings of the kernel to make; on the host's network there may be none.

    *Errors*: HostError.
    """
    if choice.sysctl and not isolated:
        raise HostError(
            f"`{choice.sysctl[0][0]}` would be set for the whole machine; expected no such setting"
        )
    return dict(choice.sysctl)


def _is_free(port: int, listen: str | None) -> bool:
    for host in dict.fromkeys(("127.0.0.1", listen or "127.0.0.1")):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as attempt:
            attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                attempt.bind((host, port))
            except OSError:
                return False
    # One that an earlier trial used could be met by this one's connections.
    return carried_over(port, read_sockets()).is_clean


@cache
def possible_namespaces() -> Json:
    """Test once: the result does not change while Prony runs."""
    done = subprocess.run(
        [*Supervisor.command(), "--probe"], capture_output=True, check=False, timeout=_SPARE_S
    )
    try:
        return dict(json.loads(done.stdout))
    except ValueError:
        reason = f"the probe failed: {done.stderr.decode(errors='replace').strip()[-200:]}"
        return {"network": reason, "pids": reason, "files": reason}
