"""Limits and settings of the kernel that differ between a plan's subjects: they must hold, or a study of them
would show nothing.

Must not know how a limit is enforced.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from prony.errors import HostError
from prony.factors import OF_SANDBOX
from prony.model.plan import Plan
from prony.model.sandbox import Network, SandboxChoice, SandboxFacts, SandboxKind
from prony.sandbox.cgroup.base import LimitName

_NAMES: Mapping[str, LimitName] = {"cpus": "cpu_quota", "memory": "memory", "pids": "pids"}


def limits_to_hold(plan: Plan, required: Collection[LimitName]) -> tuple[SandboxChoice, frozenset[LimitName]]:
    """Return the sandbox with each limit that any cell asks for, and those that must hold: the ``required``
    ones, and those in which subjects differ.

    *Errors*: HostError where such a limit cannot hold because there are no control groups.
    """
    keys = {key for subject in plan.subjects() for key in subject.levels}
    swept = frozenset(_NAMES[name] for name in _NAMES if f"{OF_SANDBOX}.{name}" in keys)
    asked = plan.sandbox
    for cell in plan.cells:
        asked = replace(
            asked,
            cpu_quota=cell.sandbox.cpu_quota if asked.cpu_quota is None else asked.cpu_quota,
            memory_bytes=cell.sandbox.memory_bytes if asked.memory_bytes is None else asked.memory_bytes,
            pids=cell.sandbox.pids if asked.pids is None else asked.pids,
        )
    if swept and asked.kind is SandboxKind.PROCESS:
        names = ", ".join(f"`{name}`" for name in sorted(swept))
        raise HostError(
            f"the subjects differ in the limit {names}, which does not hold without control groups",
            hint="`prony host` shows what is missing; --sandbox container needs Docker or Podman",
        )
    return asked, frozenset(required) | swept


def refuse_kernel_of_host(plan: Plan, facts: SandboxFacts) -> None:
    """Refuse settings of the kernel where subjects have no network of their own.

    *Errors*: HostError.
    """
    if plan.sandbox.sysctl and facts.network is not Network.ISOLATED:
        name = plan.sandbox.sysctl[0][0]
        reason = facts.missing.get("network namespace", "it was not asked for")
        raise HostError(
            f"`{name}` cannot be set for a trial alone: it has no network of its own ({reason})",
            hint="leave the setting out, or give subjects a network of their own: `prony host`",
        )
