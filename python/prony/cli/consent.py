"""What an archive would run, open or join on this machine, and whether the user agrees to it.

An archive may come from anyone. A study of built-in apps on the catalogue's servers needs no consent. All
else is allowed only when the user types it again, or sees it and agrees with ``--trust-plan``. Must not know
how a study continues.

>>> escaped("ls \\x1b[2K")
'ls \\\\x1b[2K'
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from prony.cli.talk import say
from prony.errors import UsageError
from prony.escapes import escaped
from prony.factors import variables_of
from prony.model.subject import Interface
from prony.model.workload import ELSEWHERE

if TYPE_CHECKING:
    from prony.catalog.schema.entry import ProcessEntry
    from prony.catalog.schema.loader import Catalog
    from prony.model.plan import Cell, Plan
    from prony.model.sandbox import SandboxChoice
    from prony.model.subject import App, Subject


@dataclass(frozen=True, slots=True)
class Again:
    """The parts of a study that were typed again beside ``--resume``; null or empty: not typed.

    ``folder``: that of ``--dir``, resolved.
    """

    app: str | None
    folder: Path
    commands: tuple[str, ...]
    run_as: str | None
    network: str | None
    sandbox: str | None
    engine: str | None = None
    listen: str | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """A study in an archive: the plan's and all added ``cells``, and the programs that it would run.

    ``program``: what stands for a program in its app's folder, such as ``.``; empty: there is none.
    """

    file: Path
    cells: tuple["Cell", ...]
    commands: tuple[str, ...]
    program: str = ""


def agree(asked: Asked, again: Again, known: "Catalog", *, trusted: bool) -> None:
    """Return if everything that needs consent was typed again or is ``trusted``, which is still shown.

    *Errors*: UsageError with all that lacks consent, or with what was typed differently from the archive.
    """
    _refuse_other(asked, again)
    _show_requests(asked, known)
    left = tuple(dict.fromkeys(_left(asked, again, known)))
    if not left:
        return
    shown = "\n".join(f"  {escaped(one)}" for one in left)
    if not trusted:
        raise UsageError(
            f"`{asked.file}` would run or open on this machine:\n{shown}",
            hint="type these again (--app with --dir, --command, --engine, --run-as, --net host, --listen, "
            "--sandbox container); or, if you know and trust them all, add --trust-plan",
        )
    say(f"trusted, of `{asked.file}`:\n{shown}")


def _show_requests(asked: Asked, known: "Catalog") -> None:
    """Show what will be sent to one's own app, which may change its data, unless it is plain."""
    own = [cell for cell in asked.cells if not is_of_catalogue(cell.subject.app, known)]
    checks = [check.request for cell in own for check in cell.subject.app.contract.checks]
    sent = [*(request for cell in own for request in cell.workload.requests), *checks]
    found = dict.fromkeys(f"{one.method} {one.path}" for one in sent)
    if found.keys() - {"GET /"}:
        shown = "\n".join(f"  {escaped(one)}" for one in found)
        say(f"requests to your app, of `{asked.file}`:\n{shown}")


# --- what lacks consent -----------------------------------------------------------------------------------


def _left(asked: Asked, again: Again, known: "Catalog") -> Iterator[str]:
    subjects = {cell.subject.name: cell.subject for cell in asked.cells}.values()
    for subject in subjects:
        if not is_of_catalogue(subject.app, known):
            yield from _of_app(subject.app, asked, again)
        yield from _of_settings(subject, known)
        # A variable such as LD_PRELOAD runs what it names.
        yield from (f"the variable {name}={value}" for name, value in variables_of(subject.levels).items())
    yield from (f"the command {one}" for one in asked.commands if one not in again.commands)
    for program in dict.fromkeys(cell.engine.command for cell in asked.cells):
        if program and program != again.engine:
            yield f"the generator {program}"
    for sandbox in dict.fromkeys(cell.sandbox for cell in asked.cells):
        yield from _of_sandbox(sandbox, again, known)


def is_of_catalogue(app: "App", known: "Catalog") -> bool:
    """Return whether an app of an archive is the catalogue's: then only the catalogue describes it."""
    local = known.apps.get(app.name)
    return local is not None and (local.folder == app.folder or local.digest == app.digest)


def _of_app(app: "App", asked: Asked, again: Again) -> Iterator[str]:
    called = {target for interface, target in app.targets.items() if interface is not Interface.NONE}
    for target in called:
        if (target, app.folder) != _place(again):
            yield f"the app {target} of the folder {app.folder}"
    is_there = app.folder == str(again.folder)
    if asked.program and not (again.app == asked.program and is_there):
        yield f"the program {asked.program} of the folder {app.folder}"
    elif not called and not ((again.commands or asked.program) and is_there):
        yield f"commands in the folder {app.folder}"


def _place(again: Again) -> tuple[str, str]:
    """Return target and folder of the typed app; for a file outside that folder, the file's."""
    from prony.catalog.schema.apps import interface_of_file

    typed = again.app or ""
    if interface_of_file(typed):
        file = (again.folder / typed).absolute()
        inside = file.is_relative_to(again.folder) and ".." not in file.parts
        return file.name, str(again.folder if inside else file.parent)
    return typed, str(again.folder)


def _of_settings(subject: "Subject", known: "Catalog") -> Iterator[str]:
    """Yield the settings that are free texts: only the entry's author knows what they can do."""
    from prony.catalog.schema.entry import TextSetting

    front = subject.frontend
    chosen: tuple[tuple[ProcessEntry | None, Mapping[str, int | str]], ...] = (
        (known.servers.get(subject.server), subject.settings),
        (known.frontends.get(front.entry) if front else None, front.settings if front else {}),
    )
    for entry, settings in chosen:
        for key, value in settings.items():
            if entry is not None and isinstance(entry.settings.get(key), TextSetting):
                yield f"the setting {entry.name}.{key}={value}"


def _of_sandbox(sandbox: "SandboxChoice", again: Again, known: "Catalog") -> Iterator[str]:
    if sandbox.run_as is not None and sandbox.run_as != again.run_as:
        yield f"servers as the user {sandbox.run_as}"
    # For one's own app or command, typed again, the host's network is the default.
    own = bool(again.commands) or (again.app is not None and again.app not in known.apps)
    if sandbox.listen is None and sandbox.network not in ("isolated", again.network) and not own:
        yield f"servers in the network of the {sandbox.network}"
    if sandbox.listen not in (None, again.listen):
        yield f"servers that listen at {sandbox.listen}"
    if sandbox.kind not in ("process", "cgroup", again.sandbox):
        yield f"servers in the sandbox {sandbox.kind}"


def _refuse_other(asked: Asked, again: Again) -> None:
    """Refuse typed values that differ from the archive's: they would have no effect."""
    apps = [cell.subject.app for cell in asked.cells]
    sandboxes = [cell.sandbox for cell in asked.cells]
    typed: tuple[tuple[str, str | None, Set[str | None]], ...] = (
        (
            "--app",
            _place(again)[0],
            {asked.program, *(name for app in apps for name in (app.name, *app.targets.values()))},
        ),
        ("--engine", again.engine, {name for cell in asked.cells for name in _names(cell)}),
        ("--run-as", again.run_as, {one.run_as for one in sandboxes}),
        ("--net", again.network, {one.network for one in sandboxes}),
        ("--sandbox", again.sandbox, {one.kind for one in sandboxes}),
        ("--listen", again.listen, {one.listen for one in sandboxes}),
        *(("--command", one, set(asked.commands)) for one in again.commands),
    )
    for option, value, there in typed:
        if value and value not in there:
            raise UsageError(
                f"`{option} {value}`: the study in `{asked.file}` started with another value",
                hint=f"leave out {option}, or start a new study without --resume",
            )


def _names(cell: "Cell") -> tuple[str, str]:
    return cell.engine.name, cell.engine.command


# --- command lines ----------------------------------------------------------------------------------------


def commands_of(text: str) -> tuple[str, ...]:
    """Return the programs that a command line gives with ``--command``.

    >>> commands_of("prony run --command 'go=./shop {port}' --command=./other -c 10")
    ('go=./shop {port}', './other')
    >>> commands_of("[profiles]")
    ()
    """
    return tuple(_values(text, "--command"))


def app_of(text: str) -> str:
    """Return the app that a command line gives with ``--app``; empty without one.

    >>> app_of("prony run --app . --dir shop")
    '.'
    """
    return next(iter(_values(text, "--app")), "")


def typed_again(plan: "Plan") -> tuple[str, ...]:
    """Return the options to type again when a plan continues, as words of a command line."""
    sandbox = plan.cells[0].sandbox
    words = [
        word
        for option in ("--app", "--dir", "--command")
        for value in _values(plan.text, option)
        for word in (option, value)
    ]
    host = () if words or sandbox.network == "isolated" else ("--net", sandbox.network)
    user = () if sandbox.run_as is None else ("--run-as", sandbox.run_as)
    kind = ("--sandbox", sandbox.kind) if sandbox.kind == "container" else ()
    programs = dict.fromkeys(cell.engine.command for cell in plan.cells)
    engine = [word for text in programs if text for word in ("--engine", text)]
    trust = ("--trust-plan",) if any(variables_of(one.levels) for one in plan.subjects()) else ()
    listen = () if sandbox.listen is None else ("--listen", sandbox.listen)
    fleet = ("--fleet", "WHERE") if any(cell.engine.name == ELSEWHERE for cell in plan.cells) else ()
    return (*words, *engine, *fleet, *listen, *user, *host, *kind, *trust)


def _values(text: str, option: str) -> Sequence[str]:
    """Return the values of an option in a command line, attached or separate."""
    if not text.startswith("prony "):
        return ()
    words = shlex.split(text)
    return [
        word.removeprefix(f"{option}=")
        for before, word in pairwise(words)
        if before == option or word.startswith(f"{option}=")
    ]
