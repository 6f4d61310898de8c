"""Where subjects run: starts them, places them on CPUs, isolates them, stops them, and leaves nothing behind.

Imports little, because the supervisor starts through this package: a kind of sandbox is imported only when it
is opened.

>>> sorted(SANDBOXES)[0]
<SandboxKind.CGROUP: 'cgroup'>
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Protocol

from prony.core.users import RunAs
from prony.model.launch import Launch
from prony.model.sandbox import Placement, SandboxChoice, SandboxFacts, SandboxKind
from prony.sandbox.subject import RunningSubject

if TYPE_CHECKING:
    # The supervisor imports this package, but needs none of these.
    from prony.sandbox.groups import Groups


class Sandbox(Protocol):
    """Starts subjects, isolates them, and leaves nothing behind."""

    @property
    def facts(self) -> SandboxFacts:
        """What it isolates on this machine."""

    @property
    def folder(self) -> Path:
        """The trial's folder: the subject's working directory and home, writable by its user."""

    def folder_for(self, name: str) -> Path:
        """Return the folder of the subject's process of this name: its working directory and home."""

    def free_port(self, random: Random | None = None) -> int:
        """Return a random port on which nothing listens in the subject's network.

        ``random`` makes the draw repeatable if the subject has a network of its own. On the host's network it
        is ignored: reusing a port soon would meet the connections of an earlier trial.
        """

    def start(self, launch: Launch, placement: Placement) -> RunningSubject:
        """Start the subject; it need not be ready when this returns.

        *Errors*: SubjectError with stage ``start``; HostError when the sandbox itself cannot be created.
        """


def _process(
    choice: SandboxChoice, user: RunAs, folder: Path, groups: "Groups | None", hidden: Path | None
) -> Sandbox:
    from prony.sandbox.process import ProcessSandbox

    return ProcessSandbox(choice, user, folder, groups, hidden)


def _container(
    choice: SandboxChoice, user: RunAs, folder: Path, _groups: "Groups | None", hidden: Path | None
) -> Sandbox:
    from prony.sandbox.container import ContainerSandbox

    return ContainerSandbox(choice, user, folder, hidden)


SANDBOXES: Mapping[
    SandboxKind, Callable[[SandboxChoice, RunAs, Path, "Groups | None", Path | None], Sandbox]
] = {
    SandboxKind.PROCESS: _process,
    # The same, with the groups that `groups.open_groups` opened.
    SandboxKind.CGROUP: _process,
    SandboxKind.CONTAINER: _container,
}


def open_sandbox(
    choice: SandboxChoice,
    user: RunAs,
    folder: Path,
    groups: "Groups | None" = None,
    hidden: Path | None = None,
) -> Sandbox:
    """Return the sandbox of one trial; ``folder`` is the trial's folder: the subject's working directory.

    ``groups``: the result of `prony.sandbox.groups.open_groups` for this choice. ``hidden``: a file that the
    subject must not see, if there is one: the archive.
    """
    return SANDBOXES[choice.kind](choice, user, folder, groups, hidden)


def describe(choice: SandboxChoice, user: RunAs, groups: "Groups | None" = None) -> SandboxFacts:
    """Return what such a sandbox isolates on this machine, and the reason for each thing that it does not."""
    return open_sandbox(choice, user, user.cache, groups).facts
