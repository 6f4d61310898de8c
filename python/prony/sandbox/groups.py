"""Control groups as a sandbox uses them: opened once in a run, one group for each process of a subject.

Each part of a subject has a group of its own, so that its use is counted separately; the limits apply to the
server.

It changes nothing, except that it may move this process into a scope of systemd (``gain_cgroups``). Whether
limits hold is tested later, when the machine is claimed.

>>> with open_groups(SandboxChoice()) as groups:
...     groups is None
True
>>> sorted(look(()).absent)
[]
"""

import contextlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from prony.core.errors import HostError
from prony.model.launch import Launch
from prony.model.sandbox import LimitHolding, LimitState, Placement, SandboxChoice, SandboxKind
from prony.sandbox.cgroup.probe import probe_limits, states_without
from prony.sandbox.cgroup.scope import CgroupTree, gain_cgroups
from prony.sandbox.cgroup.types import ControlGroup, Counters, LimitName, Limits, NoCgroups
from prony.sandbox.choice import Absent, Available, with_ceilings
from prony.sandbox.container_engine import find_engine, limit_states


@dataclass(frozen=True, slots=True)
class Groups:
    """Prony's own part of the control groups, and which limits hold on this machine, as tested."""

    tree: CgroupTree
    states: Mapping[LimitName, LimitState]

    def enter(
        self, launch: Launch, placement: Placement, choice: SandboxChoice, trial: str = "trial"
    ) -> "TrialGroups":
        """Return a group for each process of ``launch``, with its limits set; several subjects that live at
        the same time differ in ``trial``.

        A limit that does not hold by the probe is set as far as possible: its state says so.

        *Errors*: HostError when a group cannot be created, or the kernel refuses a limit that holds.
        """
        made = TrialGroups({})
        try:
            for process in launch.processes:
                if process in launch.backends:
                    # The limits are of the server with all its back ends together.
                    made.shared[process.name] = launch.name
                    continue
                group = made.groups[process.name] = self.tree.create(f"{trial}-{process.name}")
                own = process.name == launch.name
                refused = group.set_limits(_limits(placement, choice if own else SandboxChoice()))
                for limit, reason in refused.items():
                    if self.states[limit].holding is LimitHolding.ENFORCED:
                        raise HostError(f"the limit `{limit}` cannot be set for the {process.name}: {reason}")
        except BaseException:
            made.remove()
            raise
        return made


@dataclass(frozen=True, slots=True)
class TrialGroups:
    """The groups of one trial, by the names of its processes; none without control groups. ``shared``: whose
    group a process is in that has none of its own.
    """

    groups: dict[str, ControlGroup]
    shared: dict[str, str] = field(default_factory=dict)

    def join_paths(self, name: str) -> tuple[str, ...]:
        """Return the files by which the process of this name enters its group."""
        return self.groups[self.shared.get(name, name)].join_paths if self.groups else ()

    def counters(self) -> Mapping[str, Counters]:
        """Return the kernel's counters of each group."""
        return {name: group.counters() for name, group in self.groups.items()}

    def remove(self) -> tuple[int, bool]:
        """Kill the processes in them and remove them.

        Return the number of processes, and whether all groups are gone, so that nothing can be left.
        """
        killed, gone = 0, bool(self.groups)
        for group in self.groups.values():
            killed += group.kill()
            # A group that cannot be removed now is removed with the whole tree, or by the next Prony.
            gone = group.remove() is None and gone
        return killed, gone


@contextlib.contextmanager
def open_groups(choice: SandboxChoice, required: Collection[LimitName] = ()) -> Iterator[Groups | None]:
    """Open control groups for the sandbox ``cgroup`` within the block; yield None for another kind.

    Enter it before any child is started: with cgroup v2 this process moves into a leaf. The limits of
    ``choice`` are tested once for all trials.

    *Errors*: HostError when control groups are unavailable, or a ``required`` limit does not hold.
    """
    if choice.kind is SandboxKind.CONTAINER:
        require(limit_states(tuple(required)), required)
    if choice.kind is not SandboxKind.CGROUP:
        yield None
        return
    tree = gain_cgroups()
    if isinstance(tree, NoCgroups):
        raise HostError(
            f"`--sandbox cgroup` is not available, no control groups: {tree.reason}", hint=tree.hint
        )
    try:
        states = probe_limits(tree, ("cpus", *limits_asked(with_ceilings(choice))))
        require(states, required)
        yield Groups(tree, states)
    finally:
        tree.close()


def limits_asked(choice: SandboxChoice) -> tuple[LimitName, ...]:
    """Return the requested limits of the server, except its CPUs.

    >>> limits_asked(SandboxChoice(memory_bytes=2**29, pids=100))
    ('memory', 'pids')
    """
    return tuple(Limits(None, choice.cpu_quota, choice.memory_bytes, choice.pids).asked())


def states_by_affinity(choice: SandboxChoice) -> Mapping[LimitName, LimitState]:
    """Return how far the limits of ``choice`` hold without control groups: only whole CPUs, by affinity.

    A ceiling of processes is one of all processes of the subject's user.

    >>> states_by_affinity(SandboxChoice(cpu_quota=2.0, pids=9))["cpu_quota"].holding.value
    'by affinity only'
    """
    reason = "the sandbox `process` has no control groups"
    states = states_without(reason)
    asked = {limit: states[limit] for limit in limits_asked(with_ceilings(choice))}
    if choice.pids is None:
        by_user = "the kernel counts the processes of the subject's user (RLIMIT_NPROC)"
        asked["pids"] = LimitState(LimitHolding.ENFORCED, by_user)
    if choice.cpu_quota is not None and choice.cpu_quota.is_integer():
        asked["cpu_quota"] = LimitState(LimitHolding.AFFINITY, reason)
    return asked


def require(states: Mapping[LimitName, LimitState], required: Collection[LimitName]) -> None:
    """Refuse to continue if a limit that must hold does not.

    *Errors*: HostError.
    """
    for limit in required:
        if states[limit].holding is not LimitHolding.ENFORCED:
            raise HostError(f"the limit `{limit}` does not hold here: {states[limit].reason}")


def _limits(placement: Placement, choice: SandboxChoice) -> Limits:
    full = with_ceilings(choice)
    return Limits(placement.server_cpus, full.cpu_quota, full.memory_bytes, full.pids)


# --- which kinds of sandbox this machine offers, found without disturbing other measurements --------------


def look(kinds: Collection[SandboxKind]) -> Available:
    """Return which of these kinds are available."""
    if SandboxKind.CONTAINER in kinds:
        engine = find_engine()
        return Available({SandboxKind.CONTAINER: engine} if isinstance(engine, Absent) else {})
    if SandboxKind.CGROUP not in kinds:
        return Available()
    tree = gain_cgroups()
    if isinstance(tree, NoCgroups):
        return Available({SandboxKind.CGROUP: Absent(tree.reason, tree.hint)})
    try:
        return Available(missing=tree.missing)
    finally:
        tree.close()
