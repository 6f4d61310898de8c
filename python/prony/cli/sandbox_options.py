"""The options of a subject's sandbox, and the sandbox that they choose on this machine."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from prony.cli.options import memory_of, optional
from prony.model import Network, SandboxKind

if TYPE_CHECKING:
    from prony.sandbox.cgroup.base import LimitName
    from prony.sandbox.choice import Chosen

__all__ = ["SandboxOptions", "SandboxWish", "chosen_sandbox"]


class SandboxWish(StrEnum):
    """How subjects are isolated and limited: one of `SandboxKind`, or the strongest available."""

    AUTO = "auto"
    PROCESS = "process"
    CGROUP = "cgroup"
    CONTAINER = "container"


@dataclass(frozen=True, slots=True)
class SandboxOptions:
    """The typed options; null: not typed."""

    PANEL: ClassVar[str] = "Sandbox"

    sandbox: Annotated[
        SandboxWish,
        typer.Option(
            help="process: CPUs by affinity; cgroup: control groups; container: Docker or Podman; "
            "auto: the strongest of process and cgroup that works here."
        ),
    ] = SandboxWish.AUTO
    net: Annotated[
        Network | None, typer.Option(help="Network of the server (a study: isolated; your own app: host).")
    ] = None
    cpu_quota: Annotated[
        float | None,
        typer.Option("--cpus", min=0.01, help="Limit of CPUs for the server, e.g. 0.5 or 2."),
    ] = None
    memory: Annotated[str | None, typer.Option(help="Limit of memory for the server, e.g. 512M.")] = None
    pids: Annotated[
        int | None, typer.Option(min=1, help="Limit of processes and threads for the server.")
    ] = None
    run_as: Annotated[
        str | None, typer.Option(help="The user that servers run as, when Prony runs as root.")
    ] = None
    share_cpus: Annotated[
        bool, typer.Option("--share-cpus", help="Let server and generator run on the same CPUs.")
    ] = False

    def limits(self) -> "dict[LimitName, str]":
        """Return the limits as typed."""
        given: dict[LimitName, str | None] = {
            "cpu_quota": None if self.cpu_quota is None else f"--cpus {self.cpu_quota:g}",
            "memory": None if self.memory is None else f"--memory {self.memory}",
            "pids": None if self.pids is None else f"--pids {self.pids}",
        }
        return {name: text for name, text in given.items() if text is not None}


def chosen_sandbox(options: SandboxOptions, *, own_app: bool, named: SandboxKind | None = None) -> "Chosen":
    """Return the sandbox to use on this machine. ``named``: by the study, where none is typed.

    *Errors*: UsageError for an invalid size of memory, or limits with a sandbox that cannot enforce them;
    HostError for a sandbox that does not work here.
    """
    from prony.model import SandboxChoice
    from prony.sandbox.available import look
    from prony.sandbox.choice import STRONGEST_FIRST, Wish, choose
    from prony.sandbox.namespaces import gain_namespaces

    # A user's app may need a database on the loopback: keep that network unless asked.
    network = options.net or (Network.HOST if own_app else Network.ISOLATED)
    if network is Network.ISOLATED:
        gain_namespaces()
    choice = SandboxChoice(
        network=network,
        share_cpus=options.share_cpus,
        run_as=options.run_as,
        cpu_quota=options.cpu_quota,
        memory_bytes=optional(memory_of, "--memory", options.memory),
        pids=options.pids,
    )
    kind = named if options.sandbox is SandboxWish.AUTO else SandboxKind(options.sandbox.value)
    wish = Wish(kind, choice, options.limits())
    return choose(wish, look((kind,) if kind else STRONGEST_FIRST))
