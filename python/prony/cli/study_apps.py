"""A study as it was asked for, with the apps of the user's own that its file names: each as `prony run --app`
would have it. Folders are read, and nothing is started.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from prony.cli.found_app import Found, found_app, in_folder_of_app
from prony.cli.load_options import AskOptions, CheckOptions
from prony.cli.protocol import own_app
from prony.cli.run_checks import check_files
from prony.cli.run_options import AppOptions, LoadOptions, OutputOptions, RunOptions, SureOptions, WhatOptions
from prony.cli.sandbox_options import SandboxOptions
from prony.cli.variables import variables
from prony.core.errors import UsageError
from prony.core.users import expanded
from prony.model.subject import YOURS

if TYPE_CHECKING:
    from prony.catalog.schema.loader import Catalog
    from prony.catalog.schema.studies import StudySource
    from prony.core.users import RunAs
    from prony.plan.document import AppDocument, StudyDocument
    from prony.study.own_app import OwnApp, StudyApp
    from prony.study.task import OwnPackages


@dataclass(frozen=True, slots=True)
class AskedStudy:
    """``known``: the catalogue with the study's own apps and their commands. ``packages``: what these need,
    by their names. ``said``: what is run of the user's own, and where, in a line for each.
    """

    source: "StudySource"
    known: "Catalog"
    packages: Mapping[str, "OwnPackages"] = field(default_factory=dict)
    said: tuple[str, ...] = ()

    @property
    def is_own(self) -> bool:
        """Whether it measures an app of the user's own."""
        return bool(self.source.document.apps)


@dataclass(frozen=True, slots=True)
class _FoundApp:
    """An app of the study's: the options that its table stands for, what its folder says, and the app."""

    own: AppOptions
    found: Found
    wish: "OwnApp"
    app: "StudyApp"

    def said(self) -> Iterator[str]:
        """Yield what will be run, and where; then what is not taken over of the folder."""
        app, command = self.app.app, "".join(self.own.commands or ())
        target = self.found.app.target if self.found.app else ""
        what = target or app.title if self.own.app else command
        yield f"{app.name}: {what} in {app.folder}{self.found.words(self.own, app)}"
        if self.own.app and command:
            yield f"{app.name}: yours: {command}"
        yield from self.app.notes
        yield from (f"{app.name}: {remark}" for remark in self.found.remarks)

    def packages(self) -> "OwnPackages":
        """Return what it needs: as the table says, else as the folder does."""
        from prony.study.app_folder import declared_in
        from prony.study.task import own_packages

        declared = declared_in(self.own.folder, self.wish.found)
        return own_packages(self.own.requirements, declared, self.own.python)


def asked_study(
    name: str, known: "Catalog", user: "RunAs", env: Sequence[str] = (), env_file: Path | None = None
) -> AskedStudy:
    """Return the study of this name, or in this file. ``env`` and ``env_file``: variables for its own apps,
    as they were typed: a file passes on none of the caller's.

    *Errors*: UsageError with all that is wrong in the file, for a name that the catalogue does not have, and
    as `--app` for its own apps, with the table that names them.
    """
    from prony.study.own_app import catalog_with, fitted_to
    from prony.study.study_plan import check_names, read_source

    source = read_source(name)
    document = source.document
    if not document.apps:
        check_names(name, document, known)
        return AskedStudy(source, known)
    read: dict[str, _FoundApp] = {}
    for key, table in document.apps.items():
        with _of_table(name, key):
            options = _options(table, Path(name).parent, _servers(document, key), (env, env_file))
            read[key] = _read(key, options, known, user)
    apps = {key: one.app for key, one in read.items()}
    known = catalog_with(known, apps.values())
    check_names(name, document, known)
    return AskedStudy(
        replace(source, document=fitted_to(document, apps)),
        known,
        {key: one.packages() for key, one in read.items()},
        tuple(line for one in read.values() for line in one.said()),
    )


@contextlib.contextmanager
def _of_table(study: str, name: str) -> Iterator[None]:
    """Within the block an error names the table of the study's file."""
    try:
        yield
    except UsageError as error:
        typed = f"in a study `--env` and `--env-file` are typed, and the others are keys of `[apps.{name}]`"
        hint = f"{error.hint}; {typed}" if "--" in (error.hint or "") else error.hint
        raise UsageError(f"study `{study}`, `[apps.{name}]`: {error.message}", hint=hint) from error


def _servers(document: "StudyDocument", app: str) -> tuple[str, ...]:
    """Return the servers that the study has for this app, each once."""
    parts = (part for part in document.subjects if app in part.app)
    return tuple(dict.fromkeys(server for part in parts for server in part.server))


def _options(
    table: "AppDocument",
    place: Path,
    servers: Sequence[str],
    typed: tuple[Sequence[str], Path | None],
) -> RunOptions:
    """Return the options of `prony run --app` that stand for a table of a study's file in ``place``."""
    env, env_file = typed
    others = [server for server in servers if server.partition("@")[0] != YOURS]
    wins = variables(env, env_file)
    own = AppOptions(
        app=table.app,
        servers=",".join(others) or None,
        commands=[table.command] if table.command else None,
        current=table.current,
        no_current=len(others) == len(servers) or table.command is not None,
        interface=table.interface,
        directories=[place / expanded(Path(table.dir))],
        requirements=None if table.requirements is None else place / expanded(Path(table.requirements)),
        python=None if table.python is None else place / expanded(Path(table.python)),
        env=[*(f"{name}={value}" for name, value in table.env.items() if name not in wins), *env],
        env_file=env_file,
    )
    keys = [key for key in ("interface", "requirements", "python") if getattr(table, key) is not None]
    return RunOptions(
        typed={**{key: key for key in keys}, **({"servers": f"server = {others[0]}"} if others else {})},
        study=None,
        what=WhatOptions(),
        own=own,
        load=LoadOptions(),
        ask=AskOptions(),
        check=CheckOptions(),
        sure=SureOptions(),
        sandbox=SandboxOptions(),
        output=OutputOptions(),
    )


def _read(name: str, options: RunOptions, known: "Catalog", user: "RunAs") -> _FoundApp:
    """Return what the folder of an app says, and the app.

    *Errors*: UsageError as `--app`, for a file that is not there, and without a command that is measured.
    """
    from prony.study.own_app import study_app

    wants_own = not options.own.no_current
    options = in_folder_of_app(options)
    check_files(options.own, user)
    found = found_app(options, known)
    wish = replace(own_app(options, known, found.app, found.program), current=found.current)
    app = study_app(name, wish, known)
    if wants_own and app.command is None:
        raise UsageError(
            f"a subject has `yours`, and {found.why_not or 'no command of today was found'}",
            hint='name it in this table: current = "gunicorn -w 4 shop:app", or command = "./start {port}"',
        )
    return _FoundApp(options.own, found, wish, app)
