"""``prony run --resume``: a study that broke off, put together again from its archive and this machine.

The archive gives names and numbers. What is executed, installed or joined comes from the local catalogue,
from what was typed beside ``--resume``, or from what its user has seen and trusts (see `prony.cli.consent`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from prony.cli.consent import Again, Asked, agree, commands_of, is_of_catalogue
from prony.errors import UsageError
from prony.escapes import escaped
from prony.model import Contract, Interface

if TYPE_CHECKING:
    from prony.catalog.schema.loader import Catalog
    from prony.model import App, Cell, Plan, Request, Subject
    from prony.study import Study

__all__ = ["ALLOWED", "Resumption", "is_complete", "resumed_study"]

ALLOWED = frozenset(
    (
        *("resume", "trust_plan", "force", "catalog", "env", "env_file", "header", "requirements", "python"),
        *("json_to", "strict", "show_only"),
        *("app", "directory", "commands", "run_as", "net", "sandbox"),
    )
)
"""The options that a study which goes on may have: what its archive does not hold or may not decide, and how
it is told.
"""


@dataclass(frozen=True, slots=True)
class Resumption:
    """What was typed. ``environment`` and ``headers``: values that no archive keeps."""

    file: Path
    known: "Catalog"
    environment: Mapping[str, str]
    headers: Mapping[str, str]
    requirements: Path | None
    python: Path | None
    again: Again
    trust_plan: bool
    force: bool


def resumed_study(wish: Resumption) -> "Study":
    """Return the study that the archive holds, ready to go on, in the order in which it would have run.

    *Errors*: UsageError for what this machine does not have any more, or what the archive does not keep and
    was not said again; ArchiveError for a file that is none.
    """
    from prony.archive import open_archive
    from prony.model import Network, TrialRole
    from prony.runas import resolve_user
    from prony.sandbox.choice import Chosen
    from prony.sandbox.namespaces import gain_namespaces
    from prony.study import Study

    with open_archive(wish.file) as archive:
        plan, checks = archive.plan(), archive.cells(TrialRole.CROSS_CHECK)
    cells = (*plan.cells, *((plan.calibration,) if plan.calibration else ()), *checks)
    for app in (cell.subject.app for cell in cells):
        _check_app(app, wish)
    commands = _commands(plan, wish)
    agree(Asked(wish.file, cells, commands), wish.again, wish.known, trusted=wish.trust_plan)
    if plan.cells[0].sandbox.network is Network.ISOLATED:
        gain_namespaces()
    known = _with_commands(commands, plan, wish)
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
        sandbox=Chosen(choice=plan.cells[0].sandbox),
        force=wish.force,
        cross_checks=tuple(_here(cell, known, wish) for cell in checks),
        resumes=True,
    )


def is_complete(file: Path) -> bool:
    """Return whether the study in ``file`` ran to its end.

    *Errors*: ArchiveError for a file that is none.
    """
    from prony.archive import open_archive
    from prony.model import RunStatus

    with open_archive(file) as archive:
        return any(run.status is RunStatus.FINISHED for run in archive.runs())


# --- what the archive only names --------------------------------------------------------------------------


def _here(cell: "Cell", known: "Catalog", wish: Resumption) -> "Cell":
    """Return a cell with the app as it is here, and with the values that no archive keeps."""
    app = _app(cell.subject, known, wish)
    _check_known(cell.subject, known)
    load = replace(cell.workload, request=_request(cell.workload.request, wish))
    return replace(cell, subject=replace(cell.subject, app=app), workload=load)


def _check_known(subject: "Subject", known: "Catalog") -> None:
    """Refuse names that the catalogue does not have, or that only lie in the working folder."""
    if subject.server in known.unasked:
        raise UsageError(
            f"the study has `{subject.server}` of this folder's `prony.d`, which runs only when you name it",
            hint=f"look at prony.d/{subject.server}.toml, then add --catalog prony.d/{subject.server}.toml",
        )
    known.find(f"{subject.server}-{subject.variant}" if subject.variant else subject.server)
    if subject.frontend is not None:
        known.frontend(subject.frontend.name)


def _check_app(app: "App", wish: Resumption) -> None:
    """Refuse an app that no Prony writes: a server may evaluate a target that is more than a name.

    *Errors*: UsageError, also for what only an app of a catalogue has, when the catalogue here lacks it.
    """
    from prony.catalog.schema.apps import is_target

    if is_of_catalogue(app, wish.known):
        _check_same(app, wish)
        return
    for interface, target in app.targets.items():
        if not is_target(interface, target):
            raise UsageError(
                f"`{wish.file}`: the app `{escaped(app.name)}` has the target `{escaped(target)}`; "
                "expected `module:attribute`, or the name of a .psgi file"
            )
    if app.requirements or app.services:
        raise UsageError(
            f"`{wish.file}`: the app `{escaped(app.name)}` has requirements or services, and is not in the "
            "catalogue here",
            hint="if it is in a folder of yours, add --catalog FOLDER",
        )


def _check_same(app: "App", wish: Resumption) -> None:
    """Refuse a catalogue's app that the archive describes otherwise."""
    local = wish.known.apps[app.name]
    targets = {name: target for name, target in app.targets.items() if (name, target) != (Interface.NONE, "")}
    told = (app.digest, targets, app.requirements, app.services)
    if told != (local.digest, dict(local.targets), local.requirements, local.services):
        raise _changed(wish, app, "is another one now")


def _changed(wish: Resumption, app: "App", what: str) -> UsageError:
    return UsageError(
        f"`{wish.file}`: the app `{escaped(app.name)}` {what}, and a study goes on only with the same",
        hint="undo the change, or begin anew with another --out",
    )


def _app(subject: "Subject", known: "Catalog", wish: Resumption) -> "App":
    """Return the app of a catalogue's name as it is here, a user's own from its folder."""
    from prony.catalog.schema.apps import folder_digest

    app = subject.app
    if is_of_catalogue(app, known):
        local = known.apps[app.name]
        return replace(local, targets={**local.targets, **_of_commands(app)})
    folder = Path(app.folder)
    if not folder.is_dir():
        raise _changed(wish, app, f"is not at `{escaped(app.folder)}` any more")
    if folder_digest(folder) != app.digest:
        raise _changed(wish, app, "is another one now")
    checks = tuple(replace(check, request=_request(check.request, wish)) for check in app.contract.checks)
    variables = {name: _variable(name, wish) for name in app.environment}
    return replace(app, contract=Contract(checks), environment=variables)


def _of_commands(app: "App") -> Mapping[Interface, str]:
    """Return what a command needs of an app beside which it is compared."""
    return {Interface.NONE: ""} if Interface.NONE in app.targets else {}


def _request(request: "Request", wish: Resumption) -> "Request":
    return replace(
        request, headers=tuple((name, _header(name, value, wish)) for name, value in request.headers)
    )


def _variable(name: str, wish: Resumption) -> str:
    if name not in wish.environment:
        raise UsageError(
            f"`{wish.file}`: the app has the variable `{escaped(name)}`, and an archive keeps no values",
            hint=f"say it again: --env {escaped(name)}=value",
        )
    return wish.environment[name]


def _header(name: str, value: str, wish: Resumption) -> str:
    from prony.archive.secrets import REDACTED

    if value != REDACTED:
        return value
    if name.lower() not in wish.headers:
        raise UsageError(
            f"`{wish.file}`: the requests have the header `{escaped(name)}`, and an archive keeps no secrets",
            hint=f"say it again: -H '{escaped(name)}: value'",
        )
    return wish.headers[name.lower()]


# --- commands ---------------------------------------------------------------------------------------------


def _commands(plan: "Plan", wish: Resumption) -> tuple[str, ...]:
    """Return the programs that a plan needs and the catalogue has not.

    *Errors*: UsageError for a text that a terminal would not show as it is.
    """
    if all(subject.server in wish.known.servers for subject in plan.subjects()):
        return ()
    commands = commands_of(plan.text)
    for command in commands:
        if not command.isprintable():
            raise UsageError(
                f"`{wish.file}`: the command `{escaped(command)}` has control characters in it",
                hint="no command that was typed has: the archive has been changed",
            )
    return commands


def _with_commands(commands: tuple[str, ...], plan: "Plan", wish: Resumption) -> "Catalog":
    """Return the catalogue with the commands, which somebody has agreed to."""
    from prony.catalog.schema.command import named_commands
    from prony.catalog.schema.loader import with_server

    typed = set(commands) <= set(wish.again.commands)
    folder = wish.again.folder if typed else Path(plan.cells[0].subject.app.folder)
    known = wish.known
    for entry in named_commands(commands, folder):
        known = with_server(known, entry)
    return known
