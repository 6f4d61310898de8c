"""The role of a sandbox, which starts a subject.

>>> Sandbox.__name__
'Sandbox'
"""

from pathlib import Path
from random import Random
from typing import Protocol

from prony.model.launch import Launch
from prony.model.sandbox import Placement, SandboxFacts
from prony.sandbox.subject import RunningSubject


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
