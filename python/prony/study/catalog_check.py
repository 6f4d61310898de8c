"""Checks the catalogue on this machine: each server must install, start, answer correctly, take load and
stop.

Runs one short trial with an app, in a sandbox, for each server, variant, interface and wire, and for each
frontend with the servers that it names.

>>> names_to_check(Catalog({}, {}, {}, {}), [])
()
>>> ServerCheck("wsgiref", Interface.WSGI, reason="no request was answered").passed
False
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

from prony.catalog.install.environment import Environment
from prony.catalog.install.prepare import materialise_app, prepare
from prony.catalog.launch import spoken_wire
from prony.catalog.schema.entry import FrontendEntry, ServerEntry
from prony.catalog.schema.loader import Catalog
from prony.catalog.schema.settings import HTTP2, TLS, needs_tls, speaks_tls
from prony.core.errors import FailureStage, UsageError
from prony.core.units import SECOND_NS, seconds
from prony.core.users import RunAs
from prony.figures.account import RequestClass, Tally, tally
from prony.machine.claim import claim_machine
from prony.machine.cpus import available_cpus
from prony.model.address import TlsKey, Wire
from prony.model.exchange import Check
from prony.model.observation import Sample
from prony.model.plan import Cell
from prony.model.sandbox import Placement, SandboxChoice
from prony.model.subject import App, Interface, Subject
from prony.model.trial import Failed, Invalid, Ok, Trial
from prony.model.workload import ClosedLoop, DurationStop, EngineChoice, Workload
from prony.sandbox.certificates import Authority
from prony.sandbox.choice import STRONGEST_FIRST, Wish, choose
from prony.sandbox.groups import Groups, look, open_groups
from prony.sandbox.identity import Identity, boot_id
from prony.sandbox.journal import open_run
from prony.sandbox.pipe import StopReport
from prony.sandbox.placement import place
from prony.sandbox.remains import clear_and_report
from prony.study import StudyListener
from prony.study.assembly import SubjectNeeds, entrance_tls, entrance_wire, needs_of, why_unavailable
from prony.study.bench import Bench, measured
from prony.study.preparing import Ready
from prony.study.trial import Stay

CONNECTIONS = 4
"""How many connections a check uses."""

# With a higher share of failures a trial's speed is not shown: the same bound as in reports.
MAX_ERROR_RATIO = 0.001
# Failures that no load excuses: a reply that is not the app's.
_WRONG = ("bad_status", "failed_validation", "short_body", "parse")
# Failures that the generator could not classify.
_UNNAMED = RequestClass("client_other")

_LOG_LINES = 20


@dataclass(frozen=True, slots=True)
class ServerCheck:
    """The result for one server, variant, interface and wire, perhaps behind a frontend.

    ``clients``: what is spoken to clients, by the frontend if there is one. ``tls``: the key of the
    certificate with which that was TLS, null without TLS.
    ``ready_s`` null: it did not become ready. ``failures``: requests by how they ended. ``stage`` null
    and ``reason`` empty: it passed; ``log`` has the last lines of the server's or its installation's output.
    """

    server: str
    interface: Interface
    wire: Wire = Wire.HTTP
    tls: TlsKey | None = None
    clients: Wire = Wire.HTTP
    version: str | None = None
    interpreter: str | None = None
    ready_s: float | None = None
    ok: int = 0
    failures: Mapping[RequestClass, int] = field(default_factory=dict)
    stopped: StopReport | None = None
    stage: FailureStage | None = None
    reason: str = ""
    log: str = ""

    @property
    def passed(self) -> bool:
        """Whether everything was right."""
        return not self.reason

    @property
    def failed(self) -> int:
        """Requests without a correct reply."""
        return sum(self.failures.values())


def verdict_of(
    found: ServerCheck,
    stay: Stay,
    left: Sequence[str] = (),
) -> ServerCheck:
    """Return ``found`` with the trial's result: whether it passed, else at which stage it failed and why.

    ``left``: what still ran after it was stopped.
    """
    trial = stay.trial
    account = tally(trial.recording.account) if trial.recording else Tally()
    failures = dict(account.failed)
    unnamed = account.lost - sum(failures.values())
    if unnamed:
        failures[_UNNAMED] = failures.get(_UNNAMED, 0) + unnamed
    stage, reason = _fault(trial, account.ok, failures, left)
    return replace(
        found,
        ready_s=None if stay.ready_ns is None else seconds(stay.ready_ns),
        ok=account.ok,
        failures=failures,
        stopped=stay.stopped,
        stage=stage,
        reason=reason,
        log=log_end(trial.log.text) if reason else "",
    )


def _fault(
    trial: Trial, ok: int, failures: Mapping[RequestClass, int], left: Sequence[str]
) -> tuple[FailureStage | None, str]:
    match trial.outcome:
        case Failed(stage, reason):
            return stage, reason
        case Invalid(reason):
            return FailureStage.LOAD, f"not measured: {reason}"
        case Ok():
            pass
    reason = _fault_under_load(ok, failures)
    if reason:
        return FailureStage.LOAD, reason
    if left:
        return FailureStage.STOP, f"still running after it was stopped: {'; '.join(left)}"
    return None, ""


def _fault_under_load(ok: int, failures: Mapping[RequestClass, int]) -> str:
    wrong = sum(count for ending, count in failures.items() if ending.name in _WRONG)
    failed = sum(failures.values())
    if wrong:
        return f"{wrong} of {ok + failed} replies were wrong"
    if failures.get(_UNNAMED):
        return f"{failures[_UNNAMED]} requests failed for an unknown reason"
    if not ok:
        return "no request was answered"
    if failed > ok:
        return f"{failed} of {ok + failed} requests failed"
    # One failure on each connection is allowed: a server that serves one connection at a time starves the
    # rest.
    many = failed > max(CONNECTIONS, MAX_ERROR_RATIO * (ok + failed))
    return f"{failed} of {ok + failed} requests failed" if many else ""


def log_end(log: str) -> str:
    """Return the last lines of a log."""
    return "\n".join(log.rstrip().splitlines()[-_LOG_LINES:])


# --- its rows ---------------------------------------------------------------------------------------------


_WITH_TLS = MappingProxyType({TLS: str(TlsKey.ECDSA)})
_OVER_HTTP2 = MappingProxyType({HTTP2: "true"})


def subjects_to_check(catalog: Catalog, names: Sequence[str], app: App) -> Iterator[Subject]:
    """Yield the rows of a check: each of ``names`` (see `names_to_check`) with each interface and wire, and
    once more with TLS if it speaks that, HTTP/2 with TLS too.

    *Errors*: UsageError for an app that a server cannot serve.
    """
    for name in names:
        yield from _subjects(catalog, name, app)


def names_to_check(catalog: Catalog, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of single servers that ``names`` stand for; without names, all that come with Prony.

    An entry's name includes its variants; a frontend's name stands for the frontend with each server that it
    is checked with: ``uwsgi-socket@nginx``. A server that needs a frontend is checked behind it.

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
        around = f"@{entry.behind}" if entry.behind else ""
        yield f"{name}{around}"
        if not variant:
            yield from (f"{entry.name}-{other}{around}" for other in entry.variants)


def _frontend_of(catalog: Catalog, name: str) -> FrontendEntry | None:
    """Return the frontend of which ``name`` is a variant, unless it is a server's name too."""
    entry = catalog.entry(name) if "@" not in name else None
    return entry if isinstance(entry, FrontendEntry) else None


def _one_a_wire(catalog: Catalog, frontend: FrontendEntry) -> Iterable[str]:
    """Return the first of the frontend's examples for each wire: enough for its variants."""
    first: dict[Wire, str] = {}
    for name in frontend.examples:
        entry, variant = catalog.find(name)
        preset = entry.variants[variant].settings if variant else {}
        first.setdefault(Wire(str(preset.get("wire", entry.wires[0]))), name)
    return first.values()


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
            encrypted = _WITH_TLS if needs_tls(entry, wire) else {}
            yield replace(subject, settings={"wire": wire, **encrypted})
    if not variant and frontend is None and speaks_tls(entry):
        yield replace(subject, settings=_WITH_TLS)
        for wire in {Wire.HTTP2} & set(entry.wires[1:]):
            if not needs_tls(entry, wire):
                yield replace(subject, settings={"wire": wire, **_WITH_TLS})
    if frontend:
        for settings in _at_the_front(name, catalog.frontends[frontend.entry]):
            yield replace(subject, frontend=replace(frontend, settings=settings))


def _at_the_front(name: str, entry: FrontendEntry) -> Iterator[Mapping[str, str]]:
    """Yield what else a frontend is checked with before the first of its examples: TLS and HTTP/2."""
    if name != f"{entry.examples[0]}@{entry.name}":
        return
    if speaks_tls(entry):
        yield _WITH_TLS
    if entry.http2:
        yield _OVER_HTTP2
    if speaks_tls(entry) and entry.http2:
        yield {**_OVER_HTTP2, **_WITH_TLS}


def _other_wires(entry: ServerEntry) -> list[Wire]:
    """Return the wires, except the first, that no variant uses."""
    shown = {variant.settings.get("wire") for variant in entry.variants.values()}
    return [wire for wire in entry.wires[1:] if wire not in shown]


def still_running(samples: Sequence[Sample], folder: Path) -> list[str]:
    """Return the processes that were seen under load and still run, and all whose folder is this one."""
    boot = boot_id()
    seen = {
        Identity(row.pid, row.start_time_ticks, boot): row.command
        for sample in samples
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
                found[int(process.name)] = (process / "comm").read_text(errors="replace").strip()
    return found


APP = "hello"
DURATION_NS = SECOND_NS
TIMEOUT_NS = 5 * SECOND_NS


def check_servers(  # noqa: PLR0913 - what a user may say of a check
    catalog: Catalog,
    names: Sequence[str],
    user: RunAs,
    listener: StudyListener,
    *,
    app: str = APP,
    share_cpus: bool = False,
) -> Iterator[ServerCheck]:
    """Yield the result of checking each of ``names`` (see `names_to_check`) with ``app``, in their order.

    Environments are built in parallel first; then one server runs at a time. Closing or interrupting the
    iterator stops everything.

    *Errors*: HostError when uv, an interpreter, a writable cache or a second CPU is missing, or when another
    Prony measures on this machine; UsageError for an app that a server cannot serve.
    """
    with claim_machine() as claim:
        clear_and_report(user, listener.notice)
        for words in claim:
            listener.notice(words)
        sandbox = choose(Wish(choice=SandboxChoice(share_cpus=share_cpus)), look(STRONGEST_FIRST)).choice
        with open_groups(sandbox) as groups:
            yield from _check_servers(catalog, names, user, listener, app, sandbox, groups)


def _check_servers(  # noqa: PLR0913, PLR0917 - as check_servers
    catalog: Catalog,
    names: Sequence[str],
    user: RunAs,
    listener: StudyListener,
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
    listener.planned(sum(why_unavailable(need, found) is None for need in needs.values()))
    with open_run(user) as run:
        bench = Bench(catalog, user, run, found, Authority(run.folder), groups)
        checking = _Checking(bench, materialise_app(served, user), placement, listener)
        for cell in cells:
            yield checking.check(cell, needs[cell.id])


def _cells(catalog: Catalog, names: Sequence[str], app: App, sandbox: SandboxChoice) -> Iterator[Cell]:
    check = app.contract.checks[0] if app.contract.checks else Check()
    workload = Workload(
        ClosedLoop(CONNECTIONS),
        DurationStop(DURATION_NS),
        request=check.request,
        timeout_ns=TIMEOUT_NS,
        grace_ns=TIMEOUT_NS,
    ).expecting(check)
    for number, subject in enumerate(subjects_to_check(catalog, names, app)):
        yield Cell(number, subject, workload, sandbox=sandbox)


@dataclass(frozen=True, slots=True)
class _Checking:
    """What all checks share."""

    bench: Bench
    app_folder: Path
    placement: Placement
    listener: StudyListener

    def check(self, cell: Cell, needs: SubjectNeeds) -> ServerCheck:
        environments = self.bench.environments
        found = _described(self.bench.catalog, cell.subject)
        lacking = why_unavailable(needs, environments)
        if lacking:
            self.listener.notice(f"{cell.subject.name} is unavailable: {lacking.reason}")
            return replace(found, stage=FailureStage.INSTALL, reason=lacking.reason, log=log_end(lacking.log))
        environment = environments[needs.server.key]
        if isinstance(environment, Environment):
            found = replace(found, version=environment.version, interpreter=environment.interpreter)
        with self.bench.sandbox(f"check-{cell.id}", cell.sandbox) as sandbox:
            self.listener.trial_started(cell, 0, 1)
            ready = Ready(cell.subject, needs, self.app_folder)
            task = self.bench.task(cell, ready, sandbox, self.placement)
            stay = measured(task, partial(self.listener.trial_event, cell))
            self.listener.trial_ended(cell, stay.trial)
            return verdict_of(found, stay, still_running(stay.trial.samples, sandbox.folder))


def _described(catalog: Catalog, subject: Subject) -> ServerCheck:
    asked = entrance_tls(catalog, subject)
    return ServerCheck(
        subject.name,
        subject.interface,
        spoken_wire(catalog.server(subject.server), subject),
        asked.key if asked else None,
        entrance_wire(catalog, subject),
    )
