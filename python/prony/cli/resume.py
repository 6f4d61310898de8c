"""``prony run --resume``: a study that broke off, put together again from its archive and this machine.

The archive gives names and numbers. What is executed comes from the local catalogue, the app's own folder,
or, when its user trusts them, from commands that are printed first.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from prony.errors import UsageError

if TYPE_CHECKING:
    from prony.catalog.schema.loader import Catalog
    from prony.model import App, Cell, Plan, Subject
    from prony.study import Study

__all__ = ["ALLOWED", "Resumption", "is_complete", "resumed_study"]

ALLOWED = frozenset(
    (
        *("resume", "trust_plan", "force", "catalog", "env", "env_file", "header", "requirements", "python"),
        *("json_to", "strict", "show_only"),
    )
)
"""The options that a study which goes on may have: what its archive does not hold, and how it is told."""


@dataclass(frozen=True, slots=True)
class Resumption:
    """What was typed. ``environment`` and ``headers``: values that no archive keeps."""

    file: Path
    known: "Catalog"
    environment: Mapping[str, str]
    headers: Mapping[str, str]
    requirements: Path | None
    python: Path | None
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
    if plan.cells[0].sandbox.network is Network.ISOLATED:
        gain_namespaces()
    known = _with_commands(plan, wish)
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
    request = cell.workload.request
    headers = tuple((name, _header(name, value, wish)) for name, value in request.headers)
    load = replace(cell.workload, request=replace(request, headers=headers))
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


def _app(subject: "Subject", known: "Catalog", wish: Resumption) -> "App":
    """Return the app of a built-in name from the catalogue, a user's own from its folder."""
    from prony.catalog.schema.apps import folder_digest

    app = subject.app
    local = known.apps.get(app.name)
    if local is not None and local.digest == app.digest:
        return replace(local, contract=app.contract, targets=app.targets)
    folder = Path(app.folder)
    digest = folder_digest(folder) if folder.is_dir() else None
    if digest != app.digest:
        was = "is another one now" if digest or local is not None else f"is not at `{folder}` any more"
        raise UsageError(
            f"`{wish.file}`: the app `{app.name}` {was}, and a study goes on only with the same",
            hint="undo the change, or begin anew with another --out",
        )
    return replace(app, environment={name: _variable(name, wish) for name in app.environment})


def _variable(name: str, wish: Resumption) -> str:
    if name not in wish.environment:
        raise UsageError(
            f"`{wish.file}`: the app has the variable `{name}`, and an archive keeps no values",
            hint=f"say it again: --env {name}=value",
        )
    return wish.environment[name]


def _header(name: str, value: str, wish: Resumption) -> str:
    from prony.archive.secrets import REDACTED

    if value != REDACTED:
        return value
    if name.lower() not in wish.headers:
        raise UsageError(
            f"`{wish.file}`: the requests have the header `{name}`, and an archive keeps no secrets",
            hint=f"say it again: -H '{name}: value'",
        )
    return wish.headers[name.lower()]


# --- commands ---------------------------------------------------------------------------------------------


def _with_commands(plan: "Plan", wish: Resumption) -> "Catalog":
    """Return the catalogue with the commands that the plan's command line had, if they may be run.

    *Errors*: UsageError, with the commands, when nobody said that they may.
    """
    from prony.catalog.schema.command import named_commands
    from prony.catalog.schema.loader import with_server

    texts = commands_of(plan.text)
    if not texts or all(subject.server in wish.known.servers for subject in plan.subjects()):
        return wish.known
    shown = "\n".join(f"  {text}" for text in texts)
    if not wish.trust_plan:
        raise UsageError(
            f"`{wish.file}` holds commands, which would be run on this machine:\n{shown}",
            hint="if you know and trust them, add --trust-plan",
        )
    typer.echo(f"commands of `{wish.file}`:\n{shown}", err=True)
    known = wish.known
    for entry in named_commands(texts, Path(plan.cells[0].subject.app.folder)):
        known = with_server(known, entry)
    return known


def commands_of(text: str) -> Sequence[str]:
    """Return the programs that a command line gives with ``--command``.

    >>> commands_of("prony run --command 'go=./shop {port}' --command=./other -c 10")
    ('go=./shop {port}', './other')
    >>> commands_of("[profiles]")
    ()
    """
    if not text.startswith("prony "):
        return ()
    words = shlex.split(text)
    return tuple(
        word.removeprefix("--command=")
        for before, word in pairwise(words)
        if before == "--command" or word.startswith("--command=")
    )
