"""A subject that runs below a supervisor: watches it, reads its log, and stops it.

Must not know how it was started.

>>> exit_words(1), exit_words(-9)
('exited with status 1', 'was killed by SIGKILL')
"""

import contextlib
import os
import signal
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from prony.model.address import Address
from prony.model.exchange import Contract, Request
from prony.model.launch import Launch
from prony.model.observation import LogTail
from prony.model.sandbox import Placement
from prony.model.shapes import Json
from prony.sandbox import journal
from prony.sandbox.base import StopReport
from prony.sandbox.cgroup.base import Counters
from prony.sandbox.contract import verify
from prony.sandbox.groups import TrialGroups
from prony.sandbox.identity import descendants
from prony.sandbox.pipe import Supervisor
from prony.sandbox.readiness import wait_until_ready
from prony.seat import EngineSeat
from prony.units import format_bytes


def strays(tree_pid: int, cpus: Iterable[int]) -> tuple[int, ...]:
    """Return the processes below ``tree_pid`` that may run on other CPUs too: servers can change their
    CPUs.
    """
    allowed = set(cpus)
    return tuple(pid for pid in descendants(tree_pid) if not _affinity(pid) <= allowed)


def _affinity(pid: int) -> set[int]:
    try:
        return os.sched_getaffinity(pid)
    except OSError:
        # It has ended.
        return set()


class SupervisedSubject:
    """See ``RunningSubject``. ``started``: the supervisor's answer, with PIDs in this namespace."""

    def __init__(  # noqa: PLR0913, PLR0917 - the parts that a running subject is made of
        self,
        launch: Launch,
        seat: EngineSeat,
        supervisor: Supervisor,
        started: Json,
        folder: Path,
        groups: TrialGroups,
    ) -> None:
        self._launch = launch
        self._supervisor = supervisor
        self._folder = folder
        self._groups = groups
        self._report: StopReport | None = None
        self.address: Address = launch.entrance
        self.seat = seat
        self.pids = {str(name): int(pid) for name, pid in started["pids"].items()}
        self.tree_pid = int(started["tree_pid"])
        self.network_pid = int(started["network_pid"])

    def wait_until_ready(self, request: Request | None = None) -> int:
        """Wait until it accepts a connection and answers ``request``; return the time in ns."""
        return wait_until_ready(self, self._launch.processes, request)

    def verify(self, contract: Contract) -> str | None:
        """Return null when every check of the contract passes, else why the first failing one fails."""
        return verify(contract, self.address, self.seat.network_namespace)

    def strays(self, placement: Placement) -> tuple[int, ...]:
        """Return its processes that may run on CPUs other than the server's: servers can change their
        CPUs.
        """
        return strays(self.tree_pid, placement.server_cpus)

    def exit_reason(self) -> str | None:
        """Return which of its processes ended first, and how; null while all run."""
        event = self._supervisor.seen("exited", "ended")
        if event is not None and "outgrew" in event:
            most = format_bytes(int(event["outgrew"]))
            return f"the {event['name']} was killed because its files took more than {most}"
        if event is not None and "status" in event:
            return f"the {event['name']} {exit_words(int(event['status']))}"
        gone = event is not None or self._supervisor.is_gone()
        return "the server ended with its supervisor" if gone else None

    def counters(self) -> Mapping[str, Counters]:
        """Return the kernel's counters of each process's control group; nothing without control groups."""
        return self._groups.counters()

    def log(self) -> LogTail:
        """Return its output so far."""
        event = self._supervisor.ask_for_log()
        return LogTail(str(event["text"]), bool(event["truncated"])) if event else LogTail("")

    def stop(self) -> StopReport:
        """Stop it by its own rule, then kill what is left; when interrupted, kill all of it at once."""
        if self._report is None:
            try:
                report = self._supervisor.stop([process.stop for process in self._launch.processes])
            except BaseException:
                self._supervisor.kill()
                raise
            finally:
                killed, gone = self._groups.remove()
                journal.forget(self._folder)
            # Processes that survive the supervisor are killed with its group.
            left = 0 if gone else report.left
            self._report = replace(report, leftovers=report.leftovers + killed, left=left)
        return self._report

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self.stop()


def exit_words(status: int) -> str:
    """Return a status in words; negative: the signal."""
    if status >= 0:
        return f"exited with status {status}"
    with contextlib.suppress(ValueError):
        return f"was killed by {signal.Signals(-status).name}"
    return f"was killed by signal {-status}"
