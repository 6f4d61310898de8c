"""What ``prony run`` says of the sandbox: options in, the sandbox that is taken out."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from prony.cli.options import memory_of, optional
from prony.model import Network, SandboxKind

if TYPE_CHECKING:
    from prony.sandbox.cgroup.base import LimitName
    from prony.sandbox.choice import Chosen

__all__ = ["SandboxOptions", "SandboxWish", "chosen_sandbox"]


class SandboxWish(StrEnum):
    """How subjects are kept apart and limited: one of `SandboxKind`, or the strongest that can be had."""

    AUTO = "auto"
    PROCESS = "process"
    CGROUP = "cgroup"
    CONTAINER = "container"


@dataclass(frozen=True, slots=True)
class SandboxOptions:
    """What was typed; null: nothing."""

    kind: SandboxWish = SandboxWish.AUTO
    net: Network | None = None
    cpus: float | None = None
    memory: str | None = None
    pids: int | None = None
    share_cpus: bool = False
    run_as: str | None = None

    def limits(self) -> "dict[LimitName, str]":
        """Return the limits, each as it was typed."""
        given: dict[LimitName, str | None] = {
            "cpu_quota": None if self.cpus is None else f"--cpus {self.cpus:g}",
            "memory": None if self.memory is None else f"--memory {self.memory}",
            "pids": None if self.pids is None else f"--pids {self.pids}",
        }
        return {name: text for name, text in given.items() if text is not None}


def chosen_sandbox(options: SandboxOptions, *, own_app: bool) -> "Chosen":
    """Return the sandbox that is taken on this machine.

    *Errors*: UsageError for a memory that is none, or limits of a kind that holds none; HostError for what
    cannot be had here.
    """
    from prony.model import SandboxChoice
    from prony.sandbox.available import look
    from prony.sandbox.choice import STRONGEST_FIRST, Wish, choose
    from prony.sandbox.namespaces import gain_namespaces

    # A user's app may need a database on the loopback: it is never taken away unasked.
    network = options.net or (Network.HOST if own_app else Network.ISOLATED)
    if network is Network.ISOLATED:
        gain_namespaces()
    choice = SandboxChoice(
        network=network,
        share_cpus=options.share_cpus,
        run_as=options.run_as,
        cpu_quota=options.cpus,
        memory_bytes=optional(memory_of, "--memory", options.memory),
        pids=options.pids,
    )
    kind = None if options.kind is SandboxWish.AUTO else SandboxKind(options.kind.value)
    wish = Wish(kind, choice, options.limits())
    return choose(wish, look((kind,) if kind else STRONGEST_FIRST))
