"""What the folder of the user's own app says, for `prony run` and `prony tune`: where it lies, its command of
today, and what it needs.
"""

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from prony.cli.applicable import refuse_options_of_servers
from prony.cli.protocol import own_app
from prony.cli.run_options import AppOptions, RunOptions
from prony.cli.talk import say
from prony.cli.variables import variables
from prony.core.errors import UsageError

if TYPE_CHECKING:
    from prony.catalog.discover.current import Current, FoundCurrent
    from prony.catalog.discover.sources import Program
    from prony.catalog.discover.survey import Survey
    from prony.catalog.schema.loader import Catalog
    from prony.model.subject import App
    from prony.study.own_app import OwnApp


def in_folder_of_app(options: RunOptions) -> RunOptions:
    """Return the options with the folder that has the app, which may lie below the one that was named."""
    from prony.catalog.discover.programs import usual_servers
    from prony.model.subject import Interface
    from prony.study.app_folder import app_folder, page_of

    own = options.own
    folder = app_folder(own.folder, own.app) if options.study is None and own.app else own.folder
    if folder != own.folder:
        say(f"the app is in {folder}")
        own = replace(own, directories=[folder, *own.folders[1:]])
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
