"""The role of a sandbox, which starts a subject, and how a subject ended.

Must not know how subjects are isolated.

>>> StopReport("killed", 5.0, leftovers=2)
StopReport(how='killed', seconds=5.0, leftovers=2, left=0)
"""

from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Literal, Protocol

from prony.model.launch import Launch
from prony.model.sandbox import Placement, SandboxFacts

if TYPE_CHECKING:
    from prony.sandbox.subject import RunningSubject


@dataclass(frozen=True, slots=True)
class StopReport:
    """How a subject ended.

    ``ended``: its main process exited by itself; ``leftovers``: the number of processes that had to be
    killed; ``left``: the number that could not be killed.
    """

    how: Literal["ended", "killed"]
    seconds: float
    leftovers: int = 0
    left: int = 0


class Sandbox(Protocol):
    """Starts subjects, isolates them, and leaves nothing behind."""

    @property
    def facts(self) -> SandboxFacts:
        """What it isolates on this machine."""
        ...

    @property
    def folder(self) -> Path:
        """The trial's folder: the subject's working directory and home, writable by its user."""
        ...

    def folder_for(self, name: str) -> Path:
        """Return the folder of the subject's process of this name: its working directory and home."""
        ...

    def free_port(self, random: Random | None = None) -> int:
        """Return a random port on which nothing listens in the subject's network.

        ``random`` makes the draw repeatable if the subject has a network of its own. On the host's network it
        is ignored: reusing a port soon would meet the connections of an earlier trial.
        """
        ...

    def start(self, launch: Launch, placement: Placement) -> "RunningSubject":
        """Start the subject; it need not be ready when this returns.

        *Errors*: SubjectError with stage ``start``; HostError when the sandbox itself cannot be created.
        """
        ...
