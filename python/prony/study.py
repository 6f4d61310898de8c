"""A plan -> trials -> an archive.

Prepares every subject, then runs randomised blocks with a fresh server for each trial, and archives each
trial as it ends. Must not know the command line or reports.
"""

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from prony.archive import ArchiveWriter, RunStatus, SubjectRecord, create
from prony.assembly import Needs, Site, assemble, command_line, needs_of, unavailable
from prony.catalog.environment import (
    Environment,
    EnvironmentProgress,
    EnvironmentRequest,
    Unavailable,
    prepare,
)
from prony.catalog.launch import (
    declared_facts,
    materialise_app,
    resolved_settings,
)
from prony.catalog.loader import Catalog
from prony.engine import open_engine
from prony.errors import SubjectError
from prony.host import available_cpus, claim_machine, fingerprint, preflight
from prony.model import Cell, Check, Json, Launch, Placement, Plan, SandboxChoice, Subject, Trial
from prony.plan import Nuisances, block_order, nuisances, with_arrivals
from prony.runas import RunAs
from prony.sandbox import Sandbox, SandboxFacts, describe, open_sandbox
from prony.sandbox.contract import probe
from prony.sandbox.exchange import Reply
from prony.sandbox.groups import Groups, open_groups
from prony.sandbox.journal import Run, clear_remains, open_run
from prony.sandbox.placement import place
from prony.trial import Position, Task, run_trial

__all__ = ["Study", "StudyListener", "run_study"]


@dataclass(frozen=True, slots=True)
class Study:
    """What is to be measured, and with what.

    ``requirements_file`` and ``python`` are a user app's own (see `EnvironmentRequest`); ``jobs``:
    environments built at a time.
    """

    plan: Plan
    catalog: Catalog
    user: RunAs
    out: Path
    requirements_file: Path | None = None
    python: Path | None = None
    jobs: int = 2


class StudyListener(Protocol):
    """Who is told how a study goes."""

    def notice(self, text: str) -> None:
        """Tell something that the user should see and keep."""

    def environment(self, progress: EnvironmentProgress) -> None:
        """Tell how an environment gets on."""

    def planned(self, trials: int) -> None:
        """Tell how many trials there will be, now that it is known which subjects are available."""

    def trial_started(self, cell: Cell, block: int, blocks: int) -> None:
        """Tell that a trial begins."""

    def trial_event(self, cell: Cell, event: Json) -> None:
        """Pass on an event of the engine."""

    def trial_ended(self, cell: Cell, trial: Trial) -> None:
        """Tell that a trial is over and archived."""


@dataclass(frozen=True, slots=True)
class _Ready:
    """A subject that can be started: what it needs, and the app where its user can read it."""

    subject: Subject
    needs: Needs
    app_folder: Path


@dataclass(frozen=True, slots=True)
class _Bench:
    """All that the trials of one run share."""

    study: Study
    run: Run
    ready: Mapping[str, _Ready]
    environments: Mapping[str, Environment | Unavailable]
    placement: Placement
    groups: Groups | None = None

    def sandbox(self, name: str, choice: SandboxChoice) -> Sandbox:
        return open_sandbox(choice, self.study.user, self.run.folder / name, self.groups)

    def launch(self, subject: Subject, sandbox: Sandbox, nuisance: Nuisances) -> Launch:
        """Return the exact processes to start, on free ports, with the nuisances in the environment."""
        ready = self.ready[subject.name]
        cpus = len(self.placement.server_cpus)
        site = Site(sandbox.free_port, sandbox.folder_for, ready.app_folder, cpus)
        launch = assemble(self.study.catalog, subject, ready.needs, self.environments, site)
        return replace(launch, environment={**launch.environment, **nuisance.as_environment()})


def run_study(study: Study, listener: StudyListener) -> None:
    """Run every cell of the plan in every block, and leave the archive at ``study.out``.

    *Errors*: HostError and UsageError before the first trial, also when another Prony measures here; what
    goes wrong in a trial is its outcome. KeyboardInterrupt passes through when everything is stopped; the
    archive then holds all trials that were finished.
    """
    with claim_machine():
        clear_old_remains(study.user, listener)
        with open_groups(study.plan.cells[0].sandbox) as groups:
            _run_study(study, listener, groups)


def _run_study(study: Study, listener: StudyListener, groups: Groups | None) -> None:
    engine = study.plan.cells[0].engine
    placement = place(available_cpus(), study.plan.cells[0].sandbox.share_cpus, engine.threads)
    needs = _needs(study)
    environments = prepare(_requests(needs), study.user, listener.environment, study.jobs)
    facts = describe(study.plan.cells[0].sandbox, study.user, groups)
    ready, records = _resolve(study, needs, environments, placement, facts)
    _tell_what_will_not_fit(study.plan, listener)
    with (
        create(study.out, study.plan, fingerprint()) as writer,
        open_run(study.user) as run,
        _beside_the_generator(placement),
    ):
        for record in records:
            writer.record_subject(record)
            if record.unavailable:
                listener.notice(f"{record.name} is unavailable: {record.unavailable}")
        bench = _Bench(study, run, ready, environments, placement, groups)
        listener.planned(study.plan.blocks * sum(cell.subject.name in ready for cell in study.plan.cells))
        _compare_replies(bench, listener)
        for block in range(study.plan.blocks):
            _run_block(bench, block, writer, listener)
        writer.finish(RunStatus.FINISHED)


@contextmanager
def _beside_the_generator(placement: Placement) -> Iterator[None]:
    """Within the block, Prony's own work stays off the server's CPUs.

    Its nice value stays: a subject would inherit it, and without root could not take it back.
    """
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, placement.generator_cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _tell_what_will_not_fit(plan: Plan, listener: StudyListener) -> None:
    """Look at the machine as it is now; what disturbs is told before it is measured, with what mends it."""
    connections = max(cell.workload.loop.connections for cell in plan.cells)
    for check in preflight(connections, plan.cells[0].sandbox.share_cpus):
        if check.level != "ok":
            mend = f"  ({check.command})" if check.command else ""
            listener.notice(f"{check.name}: {check.found}; wanted: {check.wanted}{mend}")


def clear_old_remains(user: RunAs, listener: StudyListener) -> None:
    """End and remove what a Prony that was killed had left, and say so."""
    for remains in clear_remains(user):
        if remains.kept:
            listener.notice(f"the remains of run {remains.run} are left alone: {remains.kept}")
        elif remains.processes_ended:
            listener.notice(f"ended {remains.processes_ended} processes that run {remains.run} had left")


# --- preparing --------------------------------------------------------------------------------------------


def _needs(study: Study) -> Mapping[str, Needs]:
    return {
        subject.name: needs_of(
            study.catalog,
            subject,
            study.user,
            requirements_file=study.requirements_file,
            python=study.python,
        )
        for subject in study.plan.subjects()
    }


def _requests(needs: Mapping[str, Needs]) -> Sequence[EnvironmentRequest]:
    return tuple({one.key: one for need in needs.values() for one in need.all()}.values())


def _resolve(
    study: Study,
    needs: Mapping[str, Needs],
    environments: Mapping[str, Environment | Unavailable],
    placement: Placement,
    facts: SandboxFacts,
) -> tuple[dict[str, _Ready], list[SubjectRecord]]:
    ready: dict[str, _Ready] = {}
    records: list[SubjectRecord] = []
    for subject in study.plan.subjects():
        need = needs[subject.name]
        lacking = unavailable(need, environments)
        if lacking:
            records.append(SubjectRecord(subject.name, unavailable=lacking.reason))
            continue
        found = _Ready(subject, need, materialise_app(subject.app, study.user))
        ready[subject.name] = found
        records.append(_record(study, found, environments, placement, facts))
    return ready, records


def _record(
    study: Study,
    ready: _Ready,
    environments: Mapping[str, Environment | Unavailable],
    placement: Placement,
    facts: SandboxFacts,
) -> SubjectRecord:
    subject, environment = ready.subject, environments[ready.needs.server.key]
    assert isinstance(environment, Environment), "only subjects that can be had are recorded"
    entry = study.catalog.server(subject.server)
    cpus = len(placement.server_cpus)
    return SubjectRecord(
        name=subject.name,
        server_version=environment.version,
        interpreter=environment.interpreter,
        packages=environment.packages,
        lock_digest=environment.lock_digest,
        settings=resolved_settings(entry, subject, cpus),
        command_line=command_line(study.catalog, subject, cpus, ready.needs, environments),
        sandbox={**asdict(facts), "network": "isolated" if facts.network == "own namespace" else "host"},
        facts=_facts(study.catalog, subject, ready.needs, environments, cpus),
    )


def _facts(
    catalog: Catalog,
    subject: Subject,
    needs: Needs,
    environments: Mapping[str, Environment | Unavailable],
    cpus: int,
) -> Json:
    """Return what the catalogue declares of what the load meets, and what else runs."""
    server = catalog.server(subject.server)
    declared = asdict(declared_facts(server, subject, cpus))
    front = subject.frontend
    entries = [server, *(catalog.service(name) for name in needs.services)]
    found: Json = {
        **declared,
        "frontend": None,
        "services": {name: _version(environments[one.key]) for name, one in needs.services.items()},
    }
    if front is not None and needs.frontend is not None:
        entry = catalog.frontends[front.entry]
        entries.append(entry)
        found |= asdict(declared_facts(entry, front, cpus)) | {
            "behind_it": declared,
            "frontend": {
                "name": front.name,
                "version": _version(environments[needs.frontend.key]),
                "settings": resolved_settings(entry, front, cpus),
            },
        }
    return {**found, "remarks": {one.name: one.remark for one in entries if one.remark}}


def _version(environment: Environment | Unavailable) -> str | None:
    return environment.version if isinstance(environment, Environment) else None


# --- before the first block -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Silent:
    """A subject that did not start: why, and the last lines that it wrote."""

    reason: str
    log: str

    @property
    def telling(self) -> str:
        """The line of the log that says what went wrong; empty when nothing was written."""
        return _up_to_error(self.log)[-1]


# What a subject did when it was asked once: it replied, gave no reply for a reason, or did not start.
_Probed = Reply | str | _Silent

# The last line of a traceback; what a server writes after it says less.
_ERROR_LINE = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Exit)(?::.*)?")
# Enough to see where in the app it happened.
_LOG_LINES_SHOWN = 6


def _compare_replies(bench: _Bench, listener: StudyListener) -> None:
    """Where an app has no contract, ask every subject once and tell how their replies differ.

    Two servers that answer differently do different work: a comparison of their speed would mean nothing.

    *Errors*: SubjectError when no subject of the study starts.
    """
    cells = list(_first_cells(bench))
    found = {
        cell.subject.name: _probed(bench, cell) for cell in cells if not cell.subject.app.contract.checks
    }
    silent = {name: probed for name, probed in found.items() if isinstance(probed, _Silent)}
    if cells and len(silent) == len(cells):
        raise _nothing_starts(silent)
    for name, probed in silent.items():
        listener.notice(f"{name} does not start: {probed.reason}")
        if probed.telling:
            listener.notice(f"  {probed.telling}")
    _tell_replies(
        {name: probed for name, probed in found.items() if not isinstance(probed, _Silent)}, listener
    )


def _tell_replies(replies: Mapping[str, Reply | str], listener: StudyListener) -> None:
    described = {name: _described(reply) for name, reply in replies.items()}
    if len(set(described.values())) > 1:
        listener.notice(
            "the replies to the probe differ; say which is right with --expect-status and --expect-body:"
        )
        for name, reply in described.items():
            listener.notice(f"  {name}: {reply}")
    elif any(not _is_success(reply) for reply in replies.values()):
        listener.notice(f"every subject answers the probe so: {next(iter(described.values()))}")
        listener.notice("if that is right, say so with --expect-status; otherwise see --path")


def _nothing_starts(silent: Mapping[str, _Silent]) -> SubjectError:
    parts = ["no server starts"]
    for name, probed in silent.items():
        parts.append(f"  {name}: {probed.reason}")
        parts += [f"    {line}" for line in _up_to_error(probed.log)[-_LOG_LINES_SHOWN:] if line]
    return SubjectError("\n".join(parts), hint=_start_hint([probed.telling for probed in silent.values()]))


def _start_hint(told: Sequence[str]) -> str:
    if any(line.startswith(("ModuleNotFoundError", "ImportError")) for line in told):
        return "name what the app imports with --requirements FILE, and its own folder with --dir"
    if any(line.startswith("KeyError") for line in told):
        return "if the app looks for a variable of its environment, set it with --env NAME=value"
    return "--dry-run shows the commands, to be tried by hand"


def _up_to_error(log: str) -> list[str]:
    """Return the log's lines up to the last that ends a traceback, else all; never an empty list."""
    lines = [line.rstrip() for line in log.splitlines() if line.strip()] or [""]
    ends = [number for number, line in enumerate(lines) if _ERROR_LINE.fullmatch(line)]
    return lines[: ends[-1] + 1] if ends else lines


def _first_cells(bench: _Bench) -> Iterator[Cell]:
    seen: set[str] = set()
    for cell in bench.study.plan.cells:
        if cell.subject.name in bench.ready and cell.subject.name not in seen:
            seen.add(cell.subject.name)
            yield cell


def _probed(bench: _Bench, cell: Cell) -> _Probed:
    sandbox = bench.sandbox(f"probe-{cell.id}", cell.sandbox)
    try:
        launch = bench.launch(cell.subject, sandbox, nuisances(bench.study.plan, -1, cell))
        with sandbox.start(launch, bench.placement) as subject:
            subject.wait_until_ready(cell.workload.request)
            return probe(Check(cell.workload.request), subject.address, subject.seat.network_namespace)
    except SubjectError as error:
        return _Silent(error.message, error.log)


def _described(reply: Reply | str) -> str:
    if isinstance(reply, str):
        return reply
    digest = hashlib.sha256(reply.body).hexdigest()[:12]
    return f"status {reply.status}, {len(reply.body)} bytes, SHA-256 {digest}"


def _is_success(reply: Reply | str) -> bool:
    return isinstance(reply, Reply) and 200 <= reply.status < 400


# --- blocks -----------------------------------------------------------------------------------------------


def _run_block(bench: _Bench, block: int, writer: ArchiveWriter, listener: StudyListener) -> None:
    plan = bench.study.plan
    cells = [cell for cell in block_order(plan, block) if cell.subject.name in bench.ready]
    for position, cell in enumerate(cells):
        listener.trial_started(cell, block, plan.blocks)
        task = _task(bench, cell, Position(block, position))
        trial = run_trial(task, partial(listener.trial_event, cell))
        writer.append(trial)
        bench.run.remove_trial_folder(task.sandbox.folder.name)
        listener.trial_ended(cell, trial)


def _task(bench: _Bench, cell: Cell, position: Position) -> Task:
    sandbox = bench.sandbox(f"trial-{position.block}-{position.position}-{position.attempt}", cell.sandbox)
    nuisance = nuisances(bench.study.plan, position.block, cell, position.attempt)
    launch = bench.launch(cell.subject, sandbox, nuisance)
    return Task(
        cell=replace(cell, workload=with_arrivals(cell.workload, nuisance.arrival_seed)),
        position=position,
        launch=launch,
        contract=cell.subject.app.contract,
        sandbox=sandbox,
        engine=open_engine(cell.engine),
        placement=bench.placement,
        nuisances={**nuisance.as_text(), "port": str(launch.address.port)},
    )
