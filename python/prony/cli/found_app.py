"""What the folder of the user's own app says, for `prony run` and `prony tune`: where it lies, its command of
today, and what it needs.

A study as it was asked for, with the apps of the user's own that its file names: each as `prony run --app`
would have it. Folders are read, and nothing is started.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from prony.cli.applicable import refuse_options_of_servers
from prony.cli.load_options import AskOptions, CheckOptions
from prony.cli.protocol import own_app
from prony.cli.run_checks import check_files
from prony.cli.run_options import AppOptions, LoadOptions, OutputOptions, RunOptions, SureOptions, WhatOptions
from prony.cli.sandbox_options import SandboxOptions
from prony.cli.talk import say
from prony.cli.variables import variables
from prony.core.errors import UsageError
from prony.core.users import expanded
from prony.model.subject import YOURS

if TYPE_CHECKING:
    from prony.catalog.discover.current import Current, FoundCurrent
    from prony.catalog.discover.sources import Program
    from prony.catalog.discover.survey import Survey
    from prony.catalog.schema.loader import Catalog
    from prony.catalog.schema.studies import StudySource
    from prony.core.users import RunAs
    from prony.model.subject import App
    from prony.plan.document import AppDocument, StudyDocument
    from prony.study.own_app import OwnApp, StudyApp
    from prony.study.task import OwnPackages


def in_folder_of_app(options: RunOptions) -> RunOptions:
    """Return the options with the folder that has the app, which may lie below the one that was named."""
    from prony.catalog.discover.programs import usual_servers
    from prony.model.subject import Interface
    from prony.study.app_folder import app_folder, page_of, workspace_of

    own = options.own
    folder = app_folder(own.folder, own.app) if options.study is None and own.app else own.folder
    if folder != own.folder:
        say(f"the app is in {folder}")
        own = replace(own, directories=[folder, *own.folders[1:]])
    if own.app == "." and (found := workspace_of(folder, own.current or "")):
        own = replace(own, directories=[found[0], *own.folders[1:]], app=found[1])
    own = with_file(own)
    page, said = page_of(folder) if own.app == "." and not own.current else ("", "")
    if page:
        say(said)
        own = replace(own, app=page, servers=own.servers or ",".join(usual_servers(Interface.PHP)))
    return replace(options, own=own)


def with_file(own: AppOptions) -> AppOptions:
    """Return the options with the file that is the app, where the folder has one of Perl or Ruby."""
    from prony.study.app_folder import psgi_of, rack_of

    file = (psgi_of(own.folder) or rack_of(own.folder, own.current or "")) if own.app == "." else ""
    return replace(own, app=file) if file else own


@dataclass(frozen=True, slots=True)
class Found:
    """What the folder of the user's own app says: of an app for servers, or of a program that is one.

    ``why_not``: why there is no command of today, where that is known.
    """

    app: "Survey | None" = None
    program: "Program | None" = None
    current: "Current | None" = None
    remarks: tuple[str, ...] = ()
    why_not: str = ""

    def words(self, own: AppOptions, app: "App") -> str:
        """Return what was found, as the end of a sentence; empty: nothing was."""
        from prony.catalog.schema.apps import interface_of_file

        if self.program is not None:
            packages = f"packages of {self.program.packages}" if self.program.packages else "no packages"
            return f": {self.program.name} ({self.program.source}); {packages}"
        if self.app is None:
            of_file = interface_of_file(own.app or "")
            return f": {of_file} (its name); modules of the system" if of_file else ""
        interface = next(iter(app.targets))
        reason = self.app.reason
        how = f"{interface} ({reason})" if reason else f"taken as {interface} (--interface)"
        declared = self.app.dependencies
        needs = f"packages of {declared.source}" if declared else "no packages"
        needs = "packages as typed" if own.has_packages else needs
        return f": {how}; {needs}"


def found_app(options: RunOptions, known: "Catalog") -> Found:
    """Return what the folder of the user's own app says of it.

    *Errors*: UsageError as `program_of` and `survey_of`, and for options that a program has no use for.
    """
    from prony.study.app_folder import program_of, script_of, survey_of

    own, declared = options.own, options.own.has_packages
    if options.study is not None or own.app is None or own.app in known.apps:
        return Found()
    today = _today(options)
    if own.app.endswith((".psgi", ".ru")):
        return _with_current(Found(), today, own)
    named = today.current.app if today.current else ""
    command = own.current or "" if today.current is None else ""
    if script := script_of(own.folder, own.app, today.current, declared=declared):
        return _with_current(Found(script), today, own)
    program = program_of(own.folder, own.app, named=named, command=command)
    if own.servers and own.app.endswith(".php"):
        # A page: PHP's own server would serve it too.
        return Found()
    if program is not None:
        refuse_options_of_servers(options.typed, own.app, program.source)
        return Found(program=program, remarks=_offer(own, ".env", program.offered))
    found = survey_of(own.folder, own.app, today.current, declared=declared)
    return _with_current(Found(found), today, own)


def _today(options: RunOptions) -> "FoundCurrent":
    """Return the command by which the folder's app is served today."""
    from prony.catalog.discover.current import ReadingAid
    from prony.study.app_folder import current_of, rack_today

    own = options.own
    known = variables(own.env or (), own.env_file)
    read = rack_today if (own.app or "").endswith(".ru") else current_of
    return read(own.folder, ReadingAid(own.current or "", known, os.cpu_count() or 1))


def _with_current(found: Found, today: "FoundCurrent", own: AppOptions) -> Found:
    """Return what was found with the command of today, if that serves the app.

    *Errors*: UsageError for a typed command that does not.
    """
    if found.app:
        found = replace(found, remarks=_offer(own, found.app.env_file, found.app.offered))
    if own.no_current:
        return found
    from prony.catalog.discover.current import SEARCHED

    target = found.app.target if found.app else ""
    current = today.current
    offered = [target, *(found.app.others.values() if found.app else ())]
    if current is not None and any(current.serves(one) for one in offered):
        return replace(found, current=current)
    reason = today.reason or (f"no command of today found in {SEARCHED}" if own.app == "." else "")
    if current is not None:
        reason = f"{current.source} is `{current.text}`, which serves `{current.target}`, not `{target}`"
    if own.current and reason:
        raise UsageError(reason, hint="name a server and the app, such as --current 'gunicorn -w 4 shop:app'")
    without = (f"without yours: {reason}; --current '...' names it",) if reason else ()
    return replace(found, remarks=(*found.remarks, *without), why_not=reason)


def _offer(own: AppOptions, file: str, names: tuple[str, ...]) -> tuple[str, ...]:
    if not names or own.env_file:
        return ()
    sets = f"--env-file {own.folder / file} sets {', '.join(names)}"
    return (f"`{file}` beside the app is not passed on: {sets}",)


def wishes_of(options: RunOptions, known: "Catalog", found: Found) -> "tuple[OwnApp, ...]":
    """Return the app of each folder, of which the first was ``found``.

    *Errors*: UsageError for one that has no app which servers run, where there are several.
    """
    first = replace(own_app(options, known, found.app, found.program), current=found.current)
    others = []
    for folder in options.own.folders[1:]:
        there = in_folder_of_app(replace(options, own=replace(options.own, directories=[folder])))
        its = found_app(there, known)
        others.append(replace(own_app(there, known, its.app, its.program), current=its.current))
    without = next((one for one in (first, *others) if others and one.app is None), None)
    if without is not None:
        raise UsageError(
            f"`--dir {without.folder}`: of several folders each needs an app that servers run, and this one "
            "has a program",
            hint="give each a command: --command 'old=...' --command 'new=...'",
        )
    return (first, *others)


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
    from prony.study.task import check_names, read_source

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
