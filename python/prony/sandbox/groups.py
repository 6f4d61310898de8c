"""Control groups as a sandbox uses them: opened once a run, one for each process of a subject.

Each part of a subject has a group of its own, so that the bill is split; the limits are the server's. Must
not know trials or plans.

>>> with open_groups(SandboxChoice()) as groups:
...     groups is None
True
"""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prony.errors import HostError
from prony.model import Launch, Placement, SandboxChoice
from prony.sandbox.cgroup.base import CgroupTree, Counters, Group, LimitName, Limits, LimitState, NoCgroups
from prony.sandbox.cgroup.probe import probe_limits
from prony.sandbox.cgroup.remains import clear_remains
from prony.sandbox.cgroup.tree import open_cgroups

__all__ = ["Groups", "TrialGroups", "open_groups"]


@dataclass(frozen=True, slots=True)
class Groups:
    """Prony's own part of the control groups, and which limits hold here, as was tried."""

    tree: CgroupTree
    states: Mapping[LimitName, LimitState]

    def enter(self, launch: Launch, placement: Placement, choice: SandboxChoice) -> "TrialGroups":
        """Return a group for each process of ``launch``, with its limits set.

        *Errors*: HostError when one cannot be made, or a limit that was asked for is refused.
        """
        made = TrialGroups({})
        try:
            for process in launch.processes:
                group = made.groups[process.name] = self.tree.create(process.name)
                own = process.name == launch.name
                refused = group.set_limits(_limits(placement, choice if own else None))
                if refused:
                    limit, reason = next(iter(refused.items()))
                    raise HostError(f"the limit `{limit}` cannot be set for the {process.name}: {reason}")
        except BaseException:
            made.remove()
            raise
        return made


@dataclass(frozen=True, slots=True)
class TrialGroups:
    """The groups of one trial, by the names of its processes."""

    groups: dict[str, Group]

    def join_paths(self, name: str) -> tuple[str, ...]:
        """Return the files by which the process of this name enters its group."""
        return self.groups[name].join_paths

    def counters(self) -> Mapping[str, Counters]:
        """Return what the kernel has counted for each."""
        return {name: group.counters() for name, group in self.groups.items()}

    def remove(self) -> int:
        """Kill what is left in them, remove them, and return how many processes that were."""
        killed = 0
        for group in self.groups.values():
            killed += group.kill()
            # What cannot be removed now is removed with the whole tree, or by the next Prony.
            group.remove()
        return killed


@contextlib.contextmanager
def open_groups(choice: SandboxChoice) -> Iterator[Groups | None]:
    """Within the block, control groups for the sandbox ``cgroup``; null for another kind.

    To be entered before any child is started: with cgroup v2 this process moves into a leaf.

    *Errors*: HostError when there are none here.
    """
    if choice.kind != "cgroup":
        yield None
        return
    clear_remains()
    tree = open_cgroups()
    if isinstance(tree, NoCgroups):
        raise HostError(f"there are no control groups for `--sandbox cgroup`: {tree.reason}", hint=tree.hint)
    try:
        yield Groups(tree, probe_limits(tree))
    finally:
        tree.close()


def _limits(placement: Placement, choice: SandboxChoice | None) -> Limits:
    if choice is None:
        return Limits(cpus=placement.server_cpus)
    return Limits(placement.server_cpus, choice.cpu_quota, choice.memory_bytes, choice.pids)
