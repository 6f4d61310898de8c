"""``prony run --resume``: an interrupted study, rebuilt from its archive and this machine.

The archive gives names and numbers. What is executed, installed or joined comes from the local catalogue,
from the options beside ``--resume``, or from what the user has seen and trusts (see `prony.cli.consent`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from prony.cli.consent import Again, Asked, agree, app_of, commands_of, is_of_catalogue
from prony.cli.run_fleet import check_address
from prony.errors import UsageError
from prony.escapes import escaped, shortened
from prony.factors import variables_of, with_variables
from prony.model.exchange import Contract
from prony.model.subject import Interface

if TYPE_CHECKING:
    from prony.catalog.schema.loader import Catalog
    from prony.engine.fleet.address import Fleet
    from prony.model.exchange import Request
    from prony.model.plan import Cell, Plan
    from prony.model.subject import App, Subject
    from prony.study import Study
    from prony.survey.survey import Survey

ALLOWED = frozenset(
    (
        *("resume", "trust_plan", "force", "catalog", "env", "env_file", "header", "requirements", "python"),
        "ready_timeout",
        *("json_to", "full", "no_html", "strict", "show_only"),
        *("app", "directory", "commands", "engine", "run_as", "net", "sandbox"),
        *("fleet", "fleet_certificates", "listen"),
    )
)
"""The options that are allowed with ``--resume``: what an archive lacks or may not decide, and how to report.
"""


@dataclass(frozen=True, slots=True)
class Resumption:
    """The typed options. ``environment`` and ``headers``: values that no archive keeps. ``root``: where the
    imports of the user's own app begin, as its folder says.
    """

    file: Path
    known: "Catalog"
    environment: Mapping[str, str]
    headers: Mapping[str, str]
    requirements: Path | None
    python: Path | None
    again: Again
    trust_plan: bool
    force: bool
    ready_timeout_ns: int | None = None
    root: str = ""
    fleet: "Fleet | None" = None


def resumed_study(wish: Resumption) -> "Study":
    """Return the study of the archive, ready to continue in its original order.

    *Errors*: UsageError for what this machine no longer has, or for what the archive does not keep and was
    not typed again; ArchiveError for a file that is no archive.
    """
    from prony.archive import open_archive
    from prony.calibration import kept_fitness
    from prony.engine.own import check_command
    from prony.model.sandbox import Network
    from prony.model.trial import TrialRole
    from prony.runas import resolve_user
    from prony.sandbox.choice import Chosen
    from prony.sandbox.namespaces import gain_namespaces
    from prony.study import Study
    from prony.study.found import declared_in

    with open_archive(wish.file) as archive:
        plan, checks = archive.plan(), archive.cells(TrialRole.CROSS_CHECK)
    _check_objective(plan, wish)
    cells = (*plan.cells, *((plan.calibration,) if plan.calibration else ()), *checks)
    for app in (cell.subject.app for cell in cells):
        _check_app(app, wish)
    for program in dict.fromkeys(cell.engine.command for cell in cells if cell.engine.command):
        check_command(program)
    for address in {cell.sandbox.listen for cell in cells} - {None}:
        check_address(address)
    commands, program = _commands(plan, wish), _typed_program(plan, wish)
    agree(Asked(wish.file, cells, commands, program), wish.again, wish.known, trusted=wish.trust_plan)
    if plan.cells[0].sandbox.network is Network.ISOLATED:
        gain_namespaces()
    known = _with_commands(commands, program, plan, wish)
    found = _survey(plan, wish)
    if found is not None:
        wish = replace(wish, environment={**found.environment, **wish.environment}, root=found.root)
    user = resolve_user(plan.cells[0].sandbox.run_as)
    here = replace(
        plan,
        cells=tuple(_here(cell, known, wish) for cell in plan.cells),
        calibration=plan.calibration and _here(plan.calibration, wish.known, wish),
    )
    return Study(
        plan=here,
        catalog=known,
        user=user,
        out=wish.file,
        requirements_file=wish.requirements,
        python=wish.python,
        declared=declared_in(Path(plan.cells[0].subject.app.folder), found),
        ready_timeout_ns=wish.ready_timeout_ns,
        sandbox=Chosen(choice=plan.cells[0].sandbox),
        force=wish.force,
        cross_checks=tuple(_here(cell, known, wish) for cell in checks),
        resumes=True,
        fitness=partial(kept_fitness, user.cache),
        fleet=wish.fleet,
    )


def _survey(plan: "Plan", wish: Resumption) -> "Survey | None":
    """Return what the folder of the user's own app says now; the same as when the study began, or the study
    is refused for its changes.
    """
    from prony.study.found import survey_of

    app = plan.cells[0].subject.app
    target = next((target for target in app.targets.values() if ":" in target), "")
    if is_of_catalogue(app, wish.known) or not target:
        return None
    typed = wish.requirements is not None or wish.python is not None
    return survey_of(Path(app.folder), target, declared=typed)


def is_complete(file: Path) -> bool:
    """Return whether the study in ``file`` ran to its end.

    *Errors*: ArchiveError for a file that is no archive.
    """
    from prony.archive import open_archive
    from prony.model.records import RunStatus

    with open_archive(file) as archive:
        return any(run.status is RunStatus.FINISHED for run in archive.runs())


# --- what the archive only names --------------------------------------------------------------------------


def _here(cell: "Cell", known: "Catalog", wish: Resumption) -> "Cell":
    """Return a cell with the app of this machine, and with the values that no archive keeps."""
    app = _app(cell.subject, known, wish)
    _check_known(cell.subject, known)
    _check_load(cell, wish)
    _check_sandbox(cell, wish)
    load = replace(cell.workload, request=_request(cell.workload.request, wish))
    app = with_variables(app, variables_of(cell.subject.levels))
    return replace(cell, subject=replace(cell.subject, app=app), workload=load)


def _check_load(cell: "Cell", wish: Resumption) -> None:
    """Refuse a generator that this machine does not know, and a load that nobody could type: it would exhaust
    the generator's machine.
    """
    from prony.engine.registry import ENGINES
    from prony.model.workload import (
        ELSEWHERE,
        MAX_CONNECTIONS,
        MAX_RATE_PER_S,
        MAX_STREAMS,
        OpenLoop,
        is_fleet,
    )
    from prony.study_document import MAX_THREADS

    if cell.engine.name == ELSEWHERE and (wish.fleet is None or wish.fleet.workers is not None):
        raise UsageError(
            f"the study in `{wish.file}` has generators on other machines, which no archive names",
            hint="name them again: --fleet hosts.toml, or --fleet tls://HOST:PORT",
        )
    known = cell.engine.name in (*ENGINES, ELSEWHERE) or is_fleet(cell.engine.name)
    if not cell.engine.command and not known:
        raise UsageError(
            f"`{wish.file}`: there is no engine `{escaped(cell.engine.name)}`",
            hint=f"one of: {', '.join(sorted(ENGINES))}",
        )
    loop = cell.workload.loop
    asked: tuple[tuple[str, float, float], ...] = (
        ("threads", cell.engine.threads, MAX_THREADS),
        ("connections", loop.connections if loop.connections is not None else 1, MAX_CONNECTIONS),
        ("streams", cell.workload.streams, MAX_STREAMS),
        ("requests/s", loop.rate_per_s if isinstance(loop, OpenLoop) else 1, MAX_RATE_PER_S),
    )
    for unit, number, most in asked:
        if not 0 < number <= most:
            raise UsageError(
                f"`{wish.file}`: a load of {shortened(f'{number:,}')} {unit}; "
                f"expected more than 0 and at most {most:,.0f}"
            )


def _check_sandbox(cell: "Cell", wish: Resumption) -> None:
    """Refuse limits and settings of the kernel that nobody could type, and levels that are not the subject's
    settings: a report would name others than were measured.
    """
    from prony.cli.sandbox_options import LEAST_CPUS
    from prony.factors import is_as_named
    from prony.kernel_settings import why_not
    from prony.units import MIB

    sandbox = cell.sandbox
    least = (("CPUs", sandbox.cpu_quota, LEAST_CPUS), ("processes", sandbox.pids, 1))
    for unit, number, most in (*least, ("bytes of memory", sandbox.memory_bytes, MIB)):
        if number is not None and number < most:
            raise UsageError(f"`{wish.file}`: a limit of {number:g} {unit}; expected at least {most:,g}")
    for name, value in sandbox.sysctl:
        expected = why_not(name, value)
        if expected:
            found = f"`{shortened(escaped(name))}` = `{shortened(escaped(value))}`"
            raise UsageError(f"`{wish.file}` sets {found} of the kernel; expected {expected}")
    if not is_as_named(cell):
        raise UsageError(
            f"`{wish.file}`: `{escaped(cell.subject.name)}` has other settings than its levels name",
            hint="somebody changed the archive; start a new study with another --out",
        )


def _check_objective(plan: "Plan", wish: Resumption) -> None:
    """Refuse a search for what is no objective, before anything is prepared."""
    from prony.analysis.objective import parse_objective

    try:
        if plan.design.find_rate:
            parse_objective(plan.design.find_rate)
    except ValueError as error:
        raise UsageError(f"`{wish.file}` searches for a rate by what is no objective: {error}") from error


def _check_known(subject: "Subject", known: "Catalog") -> None:
    """Refuse names that the catalogue lacks, or that only the working folder has."""
    if subject.server in known.unasked:
        raise UsageError(
            f"the study has `{subject.server}` of this folder's `prony.d`, which runs only when you name it",
            hint=f"look at prony.d/{subject.server}.toml, then add --catalog prony.d/{subject.server}.toml",
        )
    named = f"{subject.server}-{subject.variant}" if subject.variant else subject.server
    entry, variant = known.find(named)
    front = subject.frontend and known.frontend(subject.frontend.name)
    wanted = (subject.server, subject.variant, subject.frontend and subject.frontend.entry)
    if wanted != (entry.name, variant, front and front.entry):
        raise UsageError(f"`{escaped(named)}` is a variant of `{entry.name}`; expected an entry's own name")


def _check_app(app: "App", wish: Resumption) -> None:
    """Refuse an app that Prony never writes: a server may evaluate a target that is more than a name.

    *Errors*: UsageError, also for an app with features of a catalogue's app that the local catalogue lacks.
    """
    from prony.catalog.schema.apps import is_target

    if is_of_catalogue(app, wish.known):
        _check_same(app, wish)
        return
    for interface, target in app.targets.items():
        if not is_target(interface, target):
            raise UsageError(
                f"`{wish.file}`: the app `{escaped(app.name)}` has the target `{escaped(target)}`; "
                "expected `module:attribute`, or the name of a .psgi or .php file"
            )
    if app.requirements or app.services:
        raise UsageError(
            f"`{wish.file}`: the app `{escaped(app.name)}` has requirements or services, but is not in the "
            "catalogue of this machine",
            hint="if one of your folders has it, add --catalog FOLDER",
        )


def _check_same(app: "App", wish: Resumption) -> None:
    """Refuse a catalogue's app that the archive describes differently."""
    local = wish.known.apps[app.name]
    targets = {name: target for name, target in app.targets.items() if (name, target) != (Interface.NONE, "")}
    told = (app.digest, targets, app.requirements, app.services)
    if told != (local.digest, dict(local.targets), local.requirements, local.services):
        raise _changed(wish, app, "has changed")


def _changed(wish: Resumption, app: "App", what: str) -> UsageError:
    return UsageError(
        f"`{wish.file}`: the app `{escaped(app.name)}` {what}, and a study continues only with the same app",
        hint="undo the change, or start a new study with another --out",
    )


def _app(subject: "Subject", known: "Catalog", wish: Resumption) -> "App":
    """Return the app of a catalogue's name from this machine, or a user's own from its folder."""
    from prony.catalog.schema.apps import folder_digest

    app = subject.app
    if is_of_catalogue(app, known):
        local = known.apps[app.name]
        return replace(local, targets={**local.targets, **_of_commands(app)})
    folder = Path(app.folder)
    if not folder.is_dir():
        raise _changed(wish, app, f"is no longer at `{escaped(app.folder)}`")
    if folder_digest(folder) != app.digest:
        raise _changed(wish, app, "has changed")
    checks = tuple(replace(check, request=_request(check.request, wish)) for check in app.contract.checks)
    own = variables_of(subject.levels)
    variables = {name: _variable(name, wish) for name in app.environment if name not in own}
    return replace(app, contract=Contract(checks), environment=variables, root=wish.root)


def _of_commands(app: "App") -> Mapping[Interface, str]:
    """Return the part of an app that commands compared with it need."""
    return {Interface.NONE: ""} if Interface.NONE in app.targets else {}


def _request(request: "Request", wish: Resumption) -> "Request":
    return replace(
        request, headers=tuple((name, _header(name, value, wish)) for name, value in request.headers)
    )


def _variable(name: str, wish: Resumption) -> str:
    if name not in wish.environment:
        raise UsageError(
            f"`{wish.file}`: the app has the variable `{escaped(name)}`, and an archive keeps no values",
            hint=f"type it again: --env {escaped(name)}=value",
        )
    return wish.environment[name]


def _header(name: str, value: str, wish: Resumption) -> str:
    from prony.archive.secrets import REDACTED

    if value != REDACTED:
        return value
    if name.lower() not in wish.headers:
        raise UsageError(
            f"`{wish.file}`: the requests have the header `{escaped(name)}`, and an archive keeps no secrets",
            hint=f"type it again: -H '{escaped(name)}: value'",
        )
    return wish.headers[name.lower()]


# --- commands ---------------------------------------------------------------------------------------------


def _commands(plan: "Plan", wish: Resumption) -> tuple[str, ...]:
    """Return the programs that a plan needs and the catalogue lacks.

    *Errors*: UsageError for a text that a terminal would not show unchanged.
    """
    if all(subject.server in wish.known.servers for subject in plan.subjects()):
        return ()
    commands = commands_of(plan.text)
    for command in commands:
        if not command.isprintable():
            raise UsageError(
                f"`{wish.file}`: the command `{escaped(command)}` contains control characters",
                hint="a typed command has none: somebody changed the archive",
            )
    return commands


def _typed_program(plan: "Plan", wish: Resumption) -> str:
    """Return what was typed for the program in the app's folder that a plan has; empty: it has none."""
    app = plan.cells[0].subject.app
    has_targets = any(app.targets.values()) or is_of_catalogue(app, wish.known)
    return "" if has_targets else app_of(plan.text)


def _with_commands(commands: tuple[str, ...], program: str, plan: "Plan", wish: Resumption) -> "Catalog":
    """Return the catalogue with the commands, and the program, to which the user has agreed.

    Their folder is the app's, which the user has seen, or the typed one: that of a catalogue's app is not
    shown.
    """
    from prony.catalog.schema.command import named_commands, program_entry
    from prony.catalog.schema.loader import with_server
    from prony.study.found import program_of

    app = plan.cells[0].subject.app
    typed = set(commands) <= set(wish.again.commands) or is_of_catalogue(app, wish.known)
    folder = wish.again.folder if typed else Path(app.folder)
    known = wish.known
    for entry in named_commands(commands, folder):
        known = with_server(known, entry)
    found = program_of(Path(app.folder), program) if program else None
    return with_server(known, program_entry(found, Path(app.folder))) if found else known
