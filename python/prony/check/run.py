"""The rows of a check, one short trial after the other. Must not know the command line or reports.

>>> CheckListener is StudyListener
True
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from prony.assembly import (
    SubjectNeeds,
    entrance_tls,
    entrance_wire,
    needs_of,
    why_unavailable,
)
from prony.catalog.install.apps import materialise_app
from prony.catalog.install.environment import Environment
from prony.catalog.install.prepare import prepare
from prony.catalog.launch.processes import spoken_wire
from prony.catalog.schema.loader import Catalog
from prony.certificates import Authority
from prony.check.rows import subjects_to_check
from prony.check.verdict import CONNECTIONS, ServerCheck, log_end, verdict_of
from prony.errors import FailureStage
from prony.host import available_cpus, claim_machine
from prony.model.exchange import Check
from prony.model.observation import Sample
from prony.model.plan import Cell
from prony.model.sandbox import Placement, SandboxChoice
from prony.model.subject import App, Subject
from prony.model.workload import ClosedLoop, DurationStop, EngineChoice, Workload
from prony.runas import RunAs
from prony.sandbox.available import look
from prony.sandbox.choice import STRONGEST_FIRST, Wish, choose
from prony.sandbox.groups import Groups, open_groups
from prony.sandbox.identity import Identity, boot_id
from prony.sandbox.journal import open_run
from prony.sandbox.placement import place
from prony.sandbox.remains import clear_and_report
from prony.study import StudyListener
from prony.study.bench import Bench, measured
from prony.study.preparing import Ready
from prony.units import SECOND_NS


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
                found[int(process.name)] = (process / "comm").read_text().strip()
    return found


CheckListener = StudyListener

APP = "hello"
DURATION_NS = SECOND_NS
TIMEOUT_NS = 5 * SECOND_NS


def check_servers(  # noqa: PLR0913 - what a user may say of a check
    catalog: Catalog,
    names: Sequence[str],
    user: RunAs,
    listener: CheckListener,
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
        expect_status=check.status,
        expect_body=check.body,
    )
    for number, subject in enumerate(subjects_to_check(catalog, names, app)):
        yield Cell(number, subject, workload, sandbox=sandbox)


@dataclass(frozen=True, slots=True)
class _Checking:
    """What all checks share."""

    bench: Bench
    app_folder: Path
    placement: Placement
    listener: CheckListener

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
