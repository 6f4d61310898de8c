"""The catalogue on this machine: does every server install, start, answer rightly, take load and end.

For each server, variant and interface one short trial around the app `hello`, in its sandbox, with the
engine beside it. Must not know the command line or reports.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from prony.analysis.summary import flat_account
from prony.catalog.environment import Environment, EnvironmentRequest, Unavailable, prepare, server_version
from prony.catalog.launch import make_launch, materialise_app
from prony.catalog.loader import Catalog
from prony.catalog.resolve import built_in_requirements
from prony.engine import open_engine
from prony.errors import UsageError
from prony.host import available_cpus
from prony.model import (
    Address,
    App,
    Cell,
    ClosedLoop,
    Contract,
    DurationStop,
    EngineChoice,
    Failed,
    Interface,
    Invalid,
    Launch,
    LogTail,
    Ok,
    Placement,
    Readiness,
    Request,
    SandboxChoice,
    Subject,
    Trial,
    Workload,
)
from prony.runas import RunAs
from prony.sandbox import EngineSeat, RunningSubject, Sandbox, SandboxFacts, StopReport, open_sandbox
from prony.sandbox.identity import Identity, boot_id
from prony.sandbox.journal import Run, clear_remains, open_run
from prony.sandbox.placement import place
from prony.study import StudyListener
from prony.trial import Position, Task, run_trial

__all__ = ["CheckListener", "ServerCheck", "check_servers", "judge", "names_to_check"]

CheckListener = StudyListener

APP = "hello"
CONNECTIONS = 4
DURATION_NS = 2_000_000_000
TIMEOUT_NS = 5_000_000_000

# Above this share of failures a trial's speed is not worth showing: the same bound as a report's.
MAX_ERROR_RATIO = 0.001
# What no load makes right: another reply than the app's.
_WRONG = ("bad_status", "failed_validation", "short_body", "parse")
# Failures that nobody could put a name to.
_UNNAMED = "client_other"

_LOG_LINES = 20


@dataclass(frozen=True, slots=True)
class ServerCheck:
    """What became of one server, variant and interface.

    ``ready_s`` null: it did not become ready. ``failures``: requests by class. ``stage`` and ``reason`` are
    empty when it passed; ``log`` has the last lines that it, or its installation, wrote.
    """

    server: str
    interface: Interface
    version: str | None = None
    interpreter: str | None = None
    ready_s: float | None = None
    ok: int = 0
    failures: Mapping[str, int] = field(default_factory=dict)
    stopped: StopReport | None = None
    stage: str = ""
    reason: str = ""
    log: str = ""

    @property
    def passed(self) -> bool:
        """Whether nothing was wrong."""
        return not self.reason

    @property
    def failed(self) -> int:
        """Requests without a right reply."""
        return sum(self.failures.values())


def names_to_check(catalog: Catalog, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of servers and variants: all that came with Prony, or those that ``names`` mean.

    An entry's name stands for its variants too.

    *Errors*: UsageError for an unknown name.
    """
    built_in = [name for name in catalog.servers if name not in catalog.own]
    found: list[str] = []
    for name in names or built_in:
        entry, variant = catalog.find(name)
        variants = [] if variant else [f"{entry.name}-{other}" for other in entry.variants]
        found += [name, *variants]
    return tuple(dict.fromkeys(found))


def check_servers(
    catalog: Catalog, names: Sequence[str], user: RunAs, listener: CheckListener, *, share_cpus: bool = False
) -> Iterator[ServerCheck]:
    """Yield what became of each server, variant and interface in ``names``, in their order.

    Environments are built in parallel first; then one server runs at a time. Closing the iterator, or an
    interruption, ends what runs.

    *Errors*: HostError when there is no uv, no interpreter, no writable cache, or only one CPU.
    """
    for remains in clear_remains(user):
        if remains.processes_ended:
            listener.notice(f"ended {remains.processes_ended} processes that run {remains.run} had left")
    app = catalog.app(APP)
    cells = tuple(_cells(catalog, names, app, SandboxChoice(share_cpus=share_cpus)))
    placement = place(available_cpus(), share_cpus, EngineChoice().threads)
    requests = [
        EnvironmentRequest(name, catalog.server(name), built_in_requirements())
        for name in dict.fromkeys(cell.subject.server for cell in cells)
    ]
    environments = prepare(requests, user, listener.environment, jobs=max(2, len(available_cpus())))
    listener.planned(sum(isinstance(environments[cell.subject.server], Environment) for cell in cells))
    with open_run(user) as run:
        bench = _Bench(catalog, user, run, materialise_app(app, user), placement, listener)
        for cell in cells:
            yield bench.check(cell, environments[cell.subject.server])


def _cells(catalog: Catalog, names: Sequence[str], app: App, sandbox: SandboxChoice) -> Iterator[Cell]:
    check = app.contract.checks[0]
    workload = Workload(
        ClosedLoop(CONNECTIONS),
        DurationStop(DURATION_NS),
        request=check.request,
        timeout_ns=TIMEOUT_NS,
        grace_ns=TIMEOUT_NS,
        expect_status=check.status,
        expect_body=check.body,
    )
    number = 0
    for name in names:
        entry, variant = catalog.find(name)
        spoken = [interface for interface in entry.interfaces if interface in app.targets]
        if not spoken:
            raise UsageError(f"`{name}` speaks {', '.join(entry.interfaces)}, which `{APP}` does not offer")
        for interface in spoken:
            subject = Subject(name, entry.name, app, interface, variant)
            yield Cell(number, subject, workload, sandbox=sandbox)
            number += 1


@dataclass(frozen=True, slots=True)
class _Bench:
    """What all checks share."""

    catalog: Catalog
    user: RunAs
    run: Run
    app_folder: Path
    placement: Placement
    listener: CheckListener

    def check(self, cell: Cell, environment: Environment | Unavailable) -> ServerCheck:
        subject = cell.subject
        found = ServerCheck(subject.name, subject.interface)
        if isinstance(environment, Unavailable):
            self.listener.notice(f"{subject.name} is unavailable: {environment.reason}")
            return replace(found, stage="install", reason=environment.reason, log=_tail(environment.log))
        found = replace(
            found,
            version=server_version(self.catalog.server(subject.server), environment),
            interpreter=environment.interpreter,
        )
        sandbox = _Watched(open_sandbox(cell.sandbox, self.user, self.run.folder / f"check-{cell.id}"))
        self.listener.trial_started(cell, 0, 1)
        try:
            trial = run_trial(
                self._task(cell, environment, sandbox), partial(self.listener.trial_event, cell)
            )
            self.listener.trial_ended(cell, trial)
            return judge(found, trial, sandbox.ready_ns, sandbox.stopped, _left(trial, sandbox.folder))
        finally:
            self.run.remove_trial_folder(sandbox.folder.name)

    def _task(self, cell: Cell, environment: Environment, sandbox: Sandbox) -> Task:
        launch = make_launch(
            self.catalog.server(cell.subject.server),
            cell.subject,
            environment,
            Address("127.0.0.1", sandbox.free_port()),
            str(self.app_folder),
            str(sandbox.folder),
            len(self.placement.server_cpus),
        )
        engine = open_engine(cell.engine)
        position = Position(0, cell.id)
        contract = cell.subject.app.contract
        return Task(cell, position, launch, contract, sandbox, engine, self.placement, nuisances={})


# --- the verdict ------------------------------------------------------------------------------------------


def judge(
    found: ServerCheck,
    trial: Trial,
    ready_ns: int | None,
    stopped: StopReport | None,
    left: Sequence[str] = (),
) -> ServerCheck:
    """Return ``found`` with what the trial says: whether it passed, else at which stage it failed and why.

    ``left``: what still ran when it had been stopped.
    """
    account = flat_account(trial.recording)
    failures = {name: count for name, count in account.items() if name not in ("scheduled", "ok")}
    unnamed = account.get("scheduled", 0) - account.get("ok", 0) - sum(failures.values())
    if unnamed:
        failures[_UNNAMED] = failures.get(_UNNAMED, 0) + unnamed
    stage, reason = _fault(trial, account.get("ok", 0), failures, left)
    return replace(
        found,
        ready_s=None if ready_ns is None else ready_ns / 1e9,
        ok=account.get("ok", 0),
        failures=failures,
        stopped=stopped,
        stage=stage,
        reason=reason,
        log=_tail(trial.log.text) if reason else "",
    )


def _fault(trial: Trial, ok: int, failures: Mapping[str, int], left: Sequence[str]) -> tuple[str, str]:
    match trial.outcome:
        case Failed(stage, reason):
            return stage, reason
        case Invalid(reason):
            return "load", f"not measured: {reason}"
        case Ok():
            pass
    reason = _fault_under_load(ok, failures)
    if reason:
        return "load", reason
    return ("stop", f"still there when it had been stopped: {'; '.join(left)}") if left else ("", "")


def _fault_under_load(ok: int, failures: Mapping[str, int]) -> str:
    wrong = sum(count for name, count in failures.items() if name.partition(" ")[0] in _WRONG)
    failed = sum(failures.values())
    if wrong:
        return f"{wrong} of {ok + failed} replies were wrong"
    if failures.get(_UNNAMED):
        return f"{failures[_UNNAMED]} requests failed for a reason without a name"
    if not ok:
        return "not one request was answered"
    # One on each connection may: a server that serves connections one after the other starves the rest.
    many = failed > max(CONNECTIONS, MAX_ERROR_RATIO * (ok + failed))
    return f"{failed} of {ok + failed} requests failed" if many else ""


def _tail(log: str) -> str:
    return "\n".join(log.rstrip().splitlines()[-_LOG_LINES:])


def _left(trial: Trial, folder: Path) -> list[str]:
    """Return the processes that were seen under load and still run, and all that work in the folder."""
    boot = boot_id()
    seen = {
        Identity(row.pid, row.start_time_ticks, boot): row.command
        for sample in trial.samples
        for row in sample.processes
    }
    alive = {one.pid: command for one, command in seen.items() if one.is_alive()}
    return [f"{command} ({pid})" for pid, command in {**_working_in(folder), **alive}.items()]


def _working_in(folder: Path) -> dict[int, str]:
    own = str(folder)
    found: dict[int, str] = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            place = str((process / "cwd").readlink())
            if place == own or place.startswith(f"{own}/"):
                found[int(process.name)] = (process / "comm").read_text().strip()
    return found


# --- a sandbox that is looked over its shoulder -----------------------------------------------------------


class _Watched(Sandbox):
    """A sandbox that keeps how long its subject took to be ready, and how it ended."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._subject: _WatchedSubject | None = None

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
        return self._sandbox.facts

    @property
    def folder(self) -> Path:
        return self._sandbox.folder

    def free_port(self) -> int:
        return self._sandbox.free_port()

    def start(self, launch: Launch, placement: Placement) -> RunningSubject:
        self._subject = _WatchedSubject(self._sandbox.start(launch, placement))
        return self._subject


class _WatchedSubject(RunningSubject):
    """A running subject that keeps what was observed of it."""

    def __init__(self, subject: RunningSubject) -> None:
        self._subject = subject
        self.ready_ns: int | None = None

    @property
    def address(self) -> Address:
        return self._subject.address

    @property
    def main_pid(self) -> int:
        return self._subject.main_pid

    @property
    def tree_pid(self) -> int:
        return self._subject.tree_pid

    @property
    def network_pid(self) -> int:
        return self._subject.network_pid

    @property
    def seat(self) -> EngineSeat:
        return self._subject.seat

    def wait_until_ready(self, readiness: Readiness, request: Request | None = None) -> int:
        self.ready_ns = self._subject.wait_until_ready(readiness, request)
        return self.ready_ns

    def verify(self, contract: Contract) -> str | None:
        return self._subject.verify(contract)

    def strays(self, placement: Placement) -> tuple[int, ...]:
        return self._subject.strays(placement)

    def exit_reason(self) -> str | None:
        return self._subject.exit_reason()

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
