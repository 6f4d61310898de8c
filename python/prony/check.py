"""The catalogue on this machine: does every server install, start, answer rightly, take load and end.

For each server, variant, interface and wire, and each frontend before the servers that it names, one short
trial around an app, in its sandbox, with the engine beside it. Must not know the command line or reports.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Self

from prony.analysis.summary import flat_account
from prony.assembly import Needs, Site, assemble, needs_of, unavailable
from prony.catalog.entry import FrontendEntry, ServerEntry
from prony.catalog.environment import Environment, Unavailable, prepare
from prony.catalog.launch import materialise_app, spoken_wire
from prony.catalog.loader import Catalog
from prony.engine import open_engine
from prony.errors import UsageError
from prony.host import available_cpus, claim_machine
from prony.model import (
    Address,
    App,
    Cell,
    Check,
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
    Request,
    SandboxChoice,
    Subject,
    Trial,
    Wire,
    Workload,
)
from prony.runas import RunAs
from prony.sandbox import EngineSeat, RunningSubject, Sandbox, SandboxFacts, StopReport, open_sandbox
from prony.sandbox.available import look
from prony.sandbox.cgroup.base import Counters
from prony.sandbox.choice import STRONGEST_FIRST, Wish, choose
from prony.sandbox.groups import Groups, open_groups
from prony.sandbox.identity import Identity, boot_id
from prony.sandbox.journal import Run, open_run
from prony.sandbox.placement import place
from prony.sandbox.remains import clear_and_tell
from prony.schedule import Position
from prony.study import StudyListener
from prony.trial import Task, run_trial

__all__ = ["CheckListener", "ServerCheck", "check_servers", "judge", "names_to_check", "subjects_to_check"]

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
    """What became of one server, variant, interface and wire, perhaps behind a frontend.

    ``ready_s`` null: it did not become ready. ``failures``: requests by class. ``stage`` and ``reason`` are
    empty when it passed; ``log`` has the last lines that it, or its installation, wrote.
    """

    server: str
    interface: Interface
    wire: Wire = Wire.HTTP
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


def subjects_to_check(catalog: Catalog, names: Sequence[str], app: App) -> Iterator[Subject]:
    """Yield the rows of a check: each of ``names`` (see `names_to_check`) by all that it speaks.

    *Errors*: UsageError for an app that a server cannot serve.
    """
    for name in names:
        yield from _subjects(catalog, name, app)


def names_to_check(catalog: Catalog, names: Sequence[str]) -> tuple[str, ...]:
    """Return what ``names`` mean, as names of single servers: all that came with Prony, or those given.

    An entry's name stands for its variants too, a frontend's for each server that it is checked with:
    ``uwsgi-socket@nginx``.

    *Errors*: UsageError for an unknown name.
    """
    built_in = [name for name in catalog.servers if name not in catalog.own]
    found = [
        single for name in names or [*built_in, *catalog.frontends] for single in _singles(catalog, name)
    ]
    return tuple(dict.fromkeys(found))


def _singles(catalog: Catalog, name: str) -> Iterator[str]:
    if "@" in name:
        catalog.processes(name)
        yield name
    elif name in catalog.frontends:
        frontend = catalog.frontends[name]
        yield from (f"{example}@{name}" for example in frontend.examples)
        for variant in frontend.variants:
            yield from (f"{example}@{name}-{variant}" for example in _one_a_wire(catalog, frontend))
    elif (front := _frontend_of(catalog, name)) is not None:
        yield from (f"{example}@{name}" for example in _one_a_wire(catalog, front))
    else:
        entry, variant = catalog.find(name)
        yield name
        if not variant:
            yield from (f"{entry.name}-{other}" for other in entry.variants)


def _frontend_of(catalog: Catalog, name: str) -> FrontendEntry | None:
    """Return the frontend of which ``name`` is a variant, unless it is a server's name too."""
    entry = catalog.entry(name) if "@" not in name else None
    return entry if isinstance(entry, FrontendEntry) else None


def _one_a_wire(catalog: Catalog, frontend: FrontendEntry) -> Iterable[str]:
    """Return the first of the frontend's examples for each wire: its variants need no more."""
    first: dict[Wire, str] = {}
    for name in frontend.examples:
        entry, variant = catalog.find(name)
        preset = entry.variants[variant].settings if variant else {}
        first.setdefault(Wire(str(preset.get("wire", entry.wires[0]))), name)
    return first.values()


def check_servers(  # noqa: PLR0913 - what a user may say of a check
    catalog: Catalog,
    names: Sequence[str],
    user: RunAs,
    listener: CheckListener,
    *,
    app: str = APP,
    share_cpus: bool = False,
) -> Iterator[ServerCheck]:
    """Yield what became of each of ``names`` (see `names_to_check`) around ``app``, in their order.

    Environments are built in parallel first; then one server runs at a time. Closing the iterator, or an
    interruption, ends what runs.

    *Errors*: HostError when there is no uv, no interpreter, no writable cache, only one CPU, or when another
    Prony measures here; UsageError for an app that a server cannot serve.
    """
    with claim_machine():
        clear_and_tell(user, listener.notice)
        sandbox = choose(Wish(choice=SandboxChoice(share_cpus=share_cpus)), look(STRONGEST_FIRST)).choice
        with open_groups(sandbox) as groups:
            yield from _check_servers(catalog, names, user, listener, app, sandbox, groups)


def _check_servers(  # noqa: PLR0913, PLR0917 - as check_servers
    catalog: Catalog,
    names: Sequence[str],
    user: RunAs,
    listener: CheckListener,
    app: str,
    sandbox: SandboxChoice,
    groups: Groups | None,
) -> Iterator[ServerCheck]:
    served = catalog.app(app)
    cells = tuple(_cells(catalog, names, served, sandbox))
    placement = place(available_cpus(), sandbox.share_cpus, EngineChoice().threads)
    needs = {cell.id: needs_of(catalog, cell.subject, user) for cell in cells}
    requests = {one.key: one for need in needs.values() for one in need.all()}
    found = prepare(tuple(requests.values()), user, listener.environment, jobs=max(2, len(available_cpus())))
    listener.planned(sum(unavailable(need, found) is None for need in needs.values()))
    with open_run(user) as run:
        app_folder = materialise_app(served, user)
        bench = _Bench(catalog, user, run, app_folder, found, placement, listener, groups)
        for cell in cells:
            yield bench.check(cell, needs[cell.id])


def _cells(catalog: Catalog, names: Sequence[str], app: App, sandbox: SandboxChoice) -> Iterator[Cell]:
    check = app.contract.checks[0] if app.contract.checks else Check()
    workload = Workload(
        ClosedLoop(CONNECTIONS),
        DurationStop(DURATION_NS),
        request=check.request,
        timeout_ns=TIMEOUT_NS,
        grace_ns=TIMEOUT_NS,
        expect_status=check.status,
        expect_body=check.body,
    )
    for number, subject in enumerate(subjects_to_check(catalog, names, app)):
        yield Cell(number, subject, workload, sandbox=sandbox)


def _subjects(catalog: Catalog, name: str, app: App) -> Iterator[Subject]:
    server, at, front = name.partition("@")
    frontend = catalog.frontend(front) if at else None
    entry, variant = catalog.find(server)
    offered = [*app.targets, *([Interface.NONE] if app.name in entry.serves else [])]
    spoken = [interface for interface in entry.interfaces if interface in offered]
    if not spoken:
        raise UsageError(f"`{name}` speaks {', '.join(entry.interfaces)}, which `{app.name}` does not offer")
    for interface in spoken:
        subject = Subject(name, entry.name, app, interface, variant, frontend=frontend)
        yield subject
        for wire in () if variant or frontend else _other_wires(entry):
            yield replace(subject, settings={"wire": wire})


def _other_wires(entry: ServerEntry) -> list[Wire]:
    """Return the wires besides the first for which no variant stands."""
    shown = {variant.settings.get("wire") for variant in entry.variants.values()}
    return [wire for wire in entry.wires[1:] if wire not in shown]


@dataclass(frozen=True, slots=True)
class _Bench:
    """What all checks share."""

    catalog: Catalog
    user: RunAs
    run: Run
    app_folder: Path
    environments: Mapping[str, Environment | Unavailable]
    placement: Placement
    listener: CheckListener
    groups: Groups | None

    def check(self, cell: Cell, needs: Needs) -> ServerCheck:
        subject = cell.subject
        wire = spoken_wire(self.catalog.server(subject.server), subject)
        found = ServerCheck(subject.name, subject.interface, wire)
        lacking = unavailable(needs, self.environments)
        if lacking:
            self.listener.notice(f"{subject.name} is unavailable: {lacking.reason}")
            return replace(found, stage="install", reason=lacking.reason, log=_tail(lacking.log))
        environment = self.environments[needs.server.key]
        if isinstance(environment, Environment):
            found = replace(found, version=environment.version, interpreter=environment.interpreter)
        folder = self.run.folder / f"check-{cell.id}"
        sandbox = _Watched(open_sandbox(cell.sandbox, self.user, folder, self.groups))
        self.listener.trial_started(cell, 0, 1)
        try:
            task = self._task(cell, needs, sandbox)
            trial = run_trial(task, partial(self.listener.trial_event, cell))
            self.listener.trial_ended(cell, trial)
            return judge(found, trial, sandbox.ready_ns, sandbox.stopped, _left(trial, sandbox.folder))
        finally:
            self.run.remove_trial_folder(sandbox.folder.name)

    def _task(self, cell: Cell, needs: Needs, sandbox: Sandbox) -> Task:
        cpus = len(self.placement.server_cpus)
        site = Site(sandbox.free_port, sandbox.folder_for, self.app_folder, cpus)
        launch = assemble(self.catalog, cell.subject, needs, self.environments, site)
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
    if failed > ok:
        return f"{failed} of {ok + failed} requests failed"
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

    def folder_for(self, name: str) -> Path:
        return self._sandbox.folder_for(name)

    def free_port(self, random: Random | None = None) -> int:
        return self._sandbox.free_port(random)

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
