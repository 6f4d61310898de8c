"""A sandbox that records how long its subject took to be ready, and how it ended.

Must not know what the subject is.

>>> WatchedSandbox.__name__
'WatchedSandbox'
"""

from collections.abc import Mapping
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Self

from prony.model.address import Address
from prony.model.exchange import Contract, Request
from prony.model.launch import Launch
from prony.model.observation import LogTail
from prony.model.sandbox import Placement, SandboxFacts
from prony.sandbox import RunningSubject, Sandbox, StopReport
from prony.sandbox.cgroup.base import Counters
from prony.seat import EngineSeat


class WatchedSandbox(Sandbox):
    """Wraps a sandbox and records how long its subject took to be ready, and how it ended."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._subject: _Subject | None = None

    @property
    def ready_ns(self) -> int | None:
        """How long the subject took; null: it did not become ready."""
        return self._subject.ready_ns if self._subject else None

    @property
    def stopped(self) -> StopReport | None:
        """How the subject ended; null: it was never started."""
        return self._subject.stop() if self._subject else None

    @property
    def facts(self) -> SandboxFacts:
        """What it isolates on this machine."""
        return self._sandbox.facts

    @property
    def folder(self) -> Path:
        """The trial's own folder."""
        return self._sandbox.folder

    def folder_for(self, name: str) -> Path:
        """Return the folder of the subject's process of this name."""
        return self._sandbox.folder_for(name)

    def free_port(self, random: Random | None = None) -> int:
        """Return a port on which nothing listens in the subject's network."""
        return self._sandbox.free_port(random)

    def start(self, launch: Launch, placement: Placement) -> RunningSubject:
        """Start one process, and watch it."""
        self._subject = _Subject(self._sandbox.start(launch, placement))
        return self._subject


class _Subject(RunningSubject):
    """Wraps a running subject and records what is observed of it."""

    def __init__(self, subject: RunningSubject) -> None:
        self._subject = subject
        self.ready_ns: int | None = None

    @property
    def address(self) -> Address:
        return self._subject.address

    @property
    def pids(self) -> Mapping[str, int]:
        return self._subject.pids

    @property
    def tree_pid(self) -> int:
        return self._subject.tree_pid

    @property
    def network_pid(self) -> int:
        return self._subject.network_pid

    @property
    def seat(self) -> EngineSeat:
        return self._subject.seat

    def wait_until_ready(self, request: Request | None = None) -> int:
        self.ready_ns = self._subject.wait_until_ready(request)
        return self.ready_ns

    def verify(self, contract: Contract) -> str | None:
        return self._subject.verify(contract)

    def strays(self, placement: Placement) -> tuple[int, ...]:
        return self._subject.strays(placement)

    def exit_reason(self) -> str | None:
        return self._subject.exit_reason()

    def counters(self) -> Mapping[str, Counters]:
        return self._subject.counters()

    def log(self) -> LogTail:
        return self._subject.log()

    def stop(self) -> StopReport:
        return self._subject.stop()

    def __enter__(self) -> Self:
        self._subject.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._subject.__exit__(kind, error, trace)
