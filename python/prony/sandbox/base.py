"""The roles of a sandbox: what starts a subject, what runs, and where the generator sits.

Must not know how subjects are kept apart.

>>> EngineSeat(cpus=(1,)).network_namespace is None
True
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Literal, Protocol, Self

from prony.model import Address, Contract, Launch, LogTail, Placement, Request, SandboxFacts
from prony.sandbox.cgroup.base import Counters

__all__ = ["EngineSeat", "RunningSubject", "Sandbox", "StopReport"]


@dataclass(frozen=True, slots=True)
class EngineSeat:
    """Where the generator sits: beside the subject, in its network, on its own CPUs.

    ``network_namespace`` is a file such as ``/proc/7/ns/net``, null for the host's. ``uid``, ``gid``,
    ``groups``: the user to change to once the namespace is entered; null: stay. ``folder``: where it may keep
    files, which go with the trial's; null: where temporary files are.
    """

    cpus: tuple[int, ...]
    network_namespace: str | None = None
    uid: int | None = None
    gid: int | None = None
    groups: tuple[int, ...] | None = None
    nice: int = 0
    folder: str | None = None


@dataclass(frozen=True, slots=True)
class StopReport:
    """How a subject came to its end.

    ``ended``: its main process left by itself; ``leftovers``: processes that had to be killed; ``left``:
    those that were still there when all of them had been killed for some time.
    """

    how: Literal["ended", "killed"]
    seconds: float
    leftovers: int = 0
    left: int = 0


class RunningSubject(Protocol):
    """A subject that was started. As a context manager its exit is ``stop``: nothing of it is left."""

    @property
    def address(self) -> Address:
        """Where the load goes, as its launch says: to the frontend, if there is one."""
        ...

    @property
    def pids(self) -> Mapping[str, int]:
        """The processes that were started, by their names, as numbered here; ``server`` is always one."""
        ...

    @property
    def tree_pid(self) -> int:
        """The root for a process sampler: every process below it, and not itself, belongs to the subject."""
        ...

    @property
    def network_pid(self) -> int:
        """A process in the subject's network that lives as long as the sandbox: for /proc/<pid>/net."""
        ...

    @property
    def seat(self) -> EngineSeat:
        """Where the generator sits."""
        ...

    def wait_until_ready(self, request: Request | None = None) -> int:
        """Wait until each of its processes is ready; return how many ns that took.

        By its own readiness each accepts a connection, and server and frontend answer ``request``.

        *Errors*: SubjectError when one ends before that or its time is over, with its last lines of log.
        """
        ...

    def verify(self, contract: Contract) -> str | None:
        """Return null when every check of the contract holds, else why the first one that does not fails."""
        ...

    def strays(self, placement: Placement) -> tuple[int, ...]:
        """Return its processes that may run on other CPUs than the server's: servers can set their own."""
        ...

    def exit_reason(self) -> str | None:
        """Return which process ended first and how, as ``the server exited with status 1``; null: all run."""
        ...

    def counters(self) -> Mapping[str, Counters]:
        """Return what the kernel has counted for each of its processes' control groups; without, nothing."""
        ...

    def log(self) -> LogTail:
        """Return what it wrote to its output so far."""
        ...

    def stop(self) -> StopReport:
        """End it by its own rule, then kill what is left. A second call returns the first one's report."""
        ...

    def __enter__(self) -> Self:
        """Return itself."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        ...


class Sandbox(Protocol):
    """Starts subjects, keeps them apart, and leaves nothing behind."""

    @property
    def facts(self) -> SandboxFacts:
        """What it keeps apart here."""
        ...

    @property
    def folder(self) -> Path:
        """The trial's own folder: the subject's working directory and home, and writable by its user."""
        ...

    def folder_for(self, name: str) -> Path:
        """Return the folder of the subject's process of this name: its working directory and home."""
        ...

    def free_port(self, random: Random | None = None) -> int:
        """Return a port, drawn at random, on which nothing listens where the subject will.

        ``random``: makes the draw, so that it can be repeated, where the subject has a network of its own. On
        the host's it is ignored: the same port soon again would meet the connections of an earlier trial.
        """
        ...

    def start(self, launch: Launch, placement: Placement) -> RunningSubject:
        """Start one process; it need not be ready when this returns.

        *Errors*: SubjectError with stage ``start``; HostError when the sandbox itself cannot be made.
        """
        ...
