"""Where subjects run: started, placed on CPUs, kept apart, stopped, and nothing left behind.

Must not know plans or trials. Imports little, for the supervisor starts through this package: a kind of
sandbox when it is opened.

>>> sorted(SANDBOXES)[0]
<SandboxKind.CGROUP: 'cgroup'>
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from prony.model import SandboxChoice, SandboxFacts, SandboxKind
from prony.runas import RunAs
from prony.sandbox.base import EngineSeat, RunningSubject, Sandbox, StopReport

if TYPE_CHECKING:
    # The supervisor passes through here, and needs none of it.
    from prony.sandbox.groups import Groups

__all__ = [
    "SANDBOXES",
    "EngineSeat",
    "RunningSubject",
    "Sandbox",
    "StopReport",
    "describe",
    "open_sandbox",
]


def _process(choice: SandboxChoice, user: RunAs, folder: Path, groups: "Groups | None") -> Sandbox:
    from prony.sandbox.process import ProcessSandbox

    return ProcessSandbox(choice, user, folder, groups)


def _container(choice: SandboxChoice, user: RunAs, folder: Path, _groups: "Groups | None") -> Sandbox:
    from prony.sandbox.container import ContainerSandbox

    return ContainerSandbox(choice, user, folder)


SANDBOXES: Mapping[SandboxKind, Callable[[SandboxChoice, RunAs, Path, "Groups | None"], Sandbox]] = {
    SandboxKind.PROCESS: _process,
    # The same, with what `groups.open_groups` opens for it.
    SandboxKind.CGROUP: _process,
    SandboxKind.CONTAINER: _container,
}


def open_sandbox(choice: SandboxChoice, user: RunAs, folder: Path, groups: "Groups | None" = None) -> Sandbox:
    """Return the sandbox of one trial; ``folder`` is its own: the subject's working directory.

    ``groups``: what `prony.sandbox.groups.open_groups` gave for this choice.
    """
    return SANDBOXES[choice.kind](choice, user, folder, groups)


def describe(choice: SandboxChoice, user: RunAs, groups: "Groups | None" = None) -> SandboxFacts:
    """Return what such a sandbox keeps apart on this machine, and the reason for each thing it does not."""
    return open_sandbox(choice, user, user.cache, groups).facts
