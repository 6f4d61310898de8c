"""The roles of a sandbox: what starts a subject, a running subject, and the generator's seat.

Must not know how subjects are isolated.

>>> StopReport("killed", 5.0, leftovers=2)
StopReport(how='killed', seconds=5.0, leftovers=2, left=0)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Literal, Protocol, Self

from prony.model.address import Address
from prony.model.exchange import Contract, Request
from prony.model.launch import Launch
from prony.model.observation import LogTail
from prony.model.sandbox import EngineSeat, Placement, SandboxFacts
from prony.sandbox.cgroup.base import Counters


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


class RunningSubject(Protocol):
    """A started subject. As a context manager it calls ``stop`` on exit: nothing of it is left."""

    @property
    def address(self) -> Address:
        """The address that receives the load: the frontend's, if there is one."""
        ...

    @property
    def pids(self) -> Mapping[str, int]:
        """The started processes by name, with their PIDs in this namespace; ``server`` is always one."""
        ...

    @property
    def tree_pid(self) -> int:
        """The root for a process sampler: every process below it, but not itself, belongs to the subject."""
        ...

    @property
    def network_pid(self) -> int:
        """A process in the subject's network that lives as long as the sandbox: for /proc/<pid>/net."""
        ...

    @property
    def seat(self) -> EngineSeat:
        """The generator's seat."""
        ...

    def wait_until_ready(self, request: Request | None = None) -> int:
        """Wait until each of its processes is ready; return the time in ns.

        Ready means, by each process's declaration: it accepts a connection, or it answers ``request``.

        *Errors*: SubjectError, with the last lines of the log, when one ends or its time-out is over.
        """
        ...

    def verify(self, contract: Contract) -> str | None:
        """Return null when every check of the contract passes, else why the first failing one fails."""
        ...

    def strays(self, placement: Placement) -> tuple[int, ...]:
        """Return its processes that may run on CPUs other than the server's: servers can change their
        CPUs.
        """
        ...

    def exit_reason(self) -> str | None:
        """Return which process ended first and how: ``the server exited with status 1``; null: all run."""
        ...

    def counters(self) -> Mapping[str, Counters]:
        """Return the kernel's counters of each process's control group; nothing without control groups."""
        ...

    def log(self) -> LogTail:
        """Return its output so far."""
        ...

    def stop(self) -> StopReport:
        """Stop it by its own rule, then kill what is left. A second call returns the first one's report."""
        ...

    def __enter__(self) -> Self:
        """Return itself."""
        ...

    def __exit__(self, *_: object) -> None:
        """Stop."""
        ...


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

    def start(self, launch: Launch, placement: Placement) -> RunningSubject:
        """Start the subject; it need not be ready when this returns.

        *Errors*: SubjectError with stage ``start``; HostError when the sandbox itself cannot be created.
        """
        ...
