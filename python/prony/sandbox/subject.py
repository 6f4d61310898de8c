"""A subject that runs below a supervisor: watches it, reads its log, and stops it.

>>> exit_words(1), exit_words(-9)
('exited with status 1', 'was killed by SIGKILL')

Waits until a subject is ready: asks repeatedly, and stops at once when the subject has ended.

>>> last_lines("a\\nb\\nc\\n", 2)
'b\\nc'
"""

import contextlib
import os
import shlex
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Self

from prony.core.errors import FailureStage, HostError, SubjectError
from prony.core.units import format_bytes, format_duration, seconds
from prony.model.address import Address
from prony.model.exchange import Contract, Request
from prony.model.json_codec import Json
from prony.model.launch import Launch
from prony.model.observation import LogTail
from prony.model.sandbox import EngineSeat, Placement
from prony.sandbox import journal
from prony.sandbox.cgroup.types import Counters
from prony.sandbox.contract import listeners_of, verify
from prony.sandbox.exchange import BrokenReplyError, NobodyThereError, connect, exchange
from prony.sandbox.groups import TrialGroups
from prony.sandbox.identity import descendants
from prony.sandbox.linux import in_network
from prony.sandbox.pipe import StopReport, Supervisor
from prony.sandbox.spawn import BEFORE_FAILED

_FIRST_PAUSE_S = 0.005
_LONGEST_PAUSE_S = 0.1
# A frontend may answer 502 or 503 until its workers are up; an application that always fails is caught by the
# contract.
_SERVER_ERRORS_S = 2.0
_LOG_LINES = 20


def wait_until_ready(
    subject: "RunningSubject", launches: Sequence[Launch], request: Request | None = None
) -> int:
    """Wait until each process of the subject accepts a connection; return the total time in ns.

    A process with the readiness ``http`` must also answer ``request``, over its own wire.

    *Errors*: SubjectError, with the last lines of the log, when one ends or its time-out is over; HostError
    when the command before it fails, for which the server cannot answer.
    """
    started_ns = time.monotonic_ns()
    for launch in launches:
        trouble = in_network(
            subject.seat.network_namespace, partial(_poll, subject, launch, request or Request())
        )
        if trouble is not None:
            _refuse_failed_before(launch, trouble, subject)
            raise SubjectError(
                trouble,
                hint="see the last lines of the subject's output",
                stage=FailureStage.START,
                log=last_lines(subject.log().text),
            )
    return time.monotonic_ns() - started_ns


def _refuse_failed_before(launch: Launch, trouble: str, subject: "RunningSubject") -> None:
    if launch.before and trouble.startswith(f"the {launch.name} {exit_words(BEFORE_FAILED)}"):
        said = last_lines(subject.log().text, 3).replace("\n", "; ")
        raise HostError(
            f"`{shlex.join(launch.before)}`, which runs before each trial, failed: {said or 'no word'}",
            hint="try it in the app's folder, as the user that servers run as",
        )


def last_lines(text: str, count: int = _LOG_LINES) -> str:
    """Return the last lines of a log."""
    return "\n".join(text.rstrip().splitlines()[-count:])


def _poll(subject: "RunningSubject", launch: Launch, request: Request) -> str | None:
    attempt = _attempt(subject, launch, request)
    timeout_ns = launch.readiness.timeout_ns
    deadline_s = time.monotonic() + seconds(timeout_ns)
    pause_s = _FIRST_PAUSE_S
    while True:
        trouble = attempt(deadline_s)
        if trouble is None:
            return None
        reason = subject.exit_reason()
        if reason is not None:
            return f"{reason} before it was ready"
        if time.monotonic() + pause_s >= deadline_s:
            return f"the {launch.name} was not ready within {format_duration(timeout_ns)}: {trouble}"
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.5, _LONGEST_PAUSE_S)


def _attempt(subject: "RunningSubject", launch: Launch, request: Request) -> Callable[[float], str | None]:
    """Return a function that tries once and returns None, or what failed."""
    errors_since_s: list[float] = []

    def once(deadline_s: float) -> str | None:
        try:
            if not launch.readiness.http:
                connect(launch.address, deadline_s - time.monotonic()).close()
                return None
            reply = exchange(launch.address, request, deadline_s, lambda: subject.exit_reason() is None)
        except NobodyThereError:
            return "it ended"
        except (OSError, BrokenReplyError) as error:
            return _say(error, launch.address)
        if reply.status < 500:
            return None
        errors_since_s.append(time.monotonic())
        return (
            None
            if time.monotonic() - errors_since_s[0] >= _SERVER_ERRORS_S
            else f"it answered {reply.status}"
        )

    return once


def _say(error: Exception, address: Address) -> str:
    where = f"{address.host}:{address.port}" if address.port else address.host
    match error:
        case TimeoutError():
            return f"it accepted a connection on {where} but did not answer"
        case ConnectionRefusedError() | FileNotFoundError():
            return f"nothing listens on {where}"
        case _:
            return f"{where}: {error}"


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


class RunningSubject:
    """A started subject. As a context manager it calls ``stop`` on exit: nothing of it is left.

    ``started``: the supervisor's answer, with PIDs in this namespace. ``address``: that receives the load,
    the frontend's, if there is one; ``seat``: the generator's; ``pids``: the started processes by name,
    ``server`` is always one; ``tree_pid``: every process below it, but not itself, belongs to the subject;
    ``network_pid``: a process in the subject's network that lives as long as the sandbox.
    """

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
        """Wait until it accepts a connection and answers ``request``; return the time in ns.

        *Errors*: as `wait_until_ready`, and SubjectError where another program has the port of its own.
        """
        waited_ns = wait_until_ready(self, self._launch.processes, request)
        if self._launch.is_own_port:
            self._refuse_anothers_port(self._launch.address.port)
        return waited_ns

    def _refuse_anothers_port(self, port: int) -> None:
        """A port that nobody chose may be taken: the load must not go to whoever has it."""
        if all(one.port != port for one in listeners_of(descendants(self.tree_pid))):
            raise SubjectError(
                f"another program listens on port {port}, which the app has of its own",
                stage=FailureStage.START,
                log=last_lines(self.log().text),
            )

    def verify(self, contract: Contract) -> str | None:
        """Return None when every check of the contract passes, else why the first failing one fails."""
        return verify(contract, self.address, self.seat.network_namespace)

    def strays(self, placement: Placement) -> tuple[int, ...]:
        """Return its processes that may run on CPUs other than the server's: servers can change their
        CPUs.
        """
        return strays(self.tree_pid, placement.server_cpus)

    def exit_reason(self) -> str | None:
        """Return which of its processes ended first, and how; None while all run."""
        event = self._supervisor.seen("exited", "ended")
        if event is not None and "outgrew" in event:
            return f"the {event['name']} was killed because its files {_outgrown(event['outgrew'])}"
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
                killed += journal.forget(self._folder)
            # Processes that survive the supervisor are killed with its group.
            left = 0 if gone else report.left
            self._report = replace(report, leftovers=report.leftovers + killed, left=left)
        return self._report

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self.stop()


def _outgrown(limits: Mapping[str, int]) -> str:
    """
    >>> _outgrown({"files": 200000})
    'were more than 200,000'
    """
    if "bytes" in limits:
        return f"took more than {format_bytes(int(limits['bytes']))}"
    return f"were more than {int(limits['files']):,}"


def exit_words(status: int) -> str:
    """Return a status in words; negative: the signal."""
    if status >= 0:
        return f"exited with status {status}"
    with contextlib.suppress(ValueError):
        return f"was killed by {signal.Signals(-status).name}"
    return f"was killed by signal {-status}"
