"""The sandbox ``container``: a subject with its supervisor in a container of Docker's or Podman's.

Must not know plans or trials.

>>> ContainerSandbox.__name__
'ContainerSandbox'
"""

from functools import partial
from pathlib import Path
from random import Random

from prony.errors import HostError
from prony.model.launch import Launch
from prony.model.sandbox import Network, Placement, SandboxChoice, SandboxFacts, SandboxKind
from prony.runas import RunAs
from prony.sandbox import journal
from prony.sandbox.base import RunningSubject
from prony.sandbox.ceilings import ceilings, with_ceilings
from prony.sandbox.cgroup.base import Limits
from prony.sandbox.containers.container import Container
from prony.sandbox.containers.found import limit_states, usable_engine
from prony.sandbox.containers.options import hiding_options, limit_options
from prony.sandbox.groups import TrialGroups, limits_asked
from prony.sandbox.linux import in_network, read_network_settings, write_network_settings
from prony.sandbox.order import identities, make_order, make_seat, not_started, write_folders
from prony.sandbox.process import ProcessSandbox
from prony.sandbox.subject import SupervisedSubject

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
        options += hiding_options(self._hidden)
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
        return SupervisedSubject(launch, seat, supervisor, outside, self.folder, groups)


def _folders_of(launch: Launch) -> list[Path]:
    """Return the folders that a subject names: its working directory, and where it imports from."""
    named = []
    for process in launch.processes:
        named += [process.folder or "", *process.environment.get("PYTHONPATH", "").split(":")]
    return [Path(one) for one in named if one.startswith("/") and one != "/" and Path(one).is_dir()]
