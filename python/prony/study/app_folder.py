"""Reads the folder of a user's app for what it says of the app.

Units of systemd that this machine has for an app's folder: read as files, and never started.

>>> installed_units(Path("/no/such/folder"), {}.get)
[]
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from prony.catalog.discover.current import (
    Current,
    FoundCurrent,
    ReadingAid,
    commands_below,
    find_current,
    started_below,
)
from prony.catalog.discover.node import has_package
from prony.catalog.discover.php import page_of_pool
from prony.catalog.discover.programs import describes_program, find_program, is_program, program_below
from prony.catalog.discover.rack import rack_current, rack_file
from prony.catalog.discover.sources import Folder, Program, Sources, Written
from prony.catalog.discover.survey import Survey, folder_of_app, is_python_target, survey_app, survey_script
from prony.catalog.discover.units import command_of_unit
from prony.catalog.discover.written import laid_below, written_commands
from prony.catalog.install.environment import Declared
from prony.core.deadline import cpu_deadline
from prony.core.errors import UsageError
from prony.core.trees import content
from prony.core.units import MIB

if TYPE_CHECKING:
    from prony.catalog.discover.sources import Read

# No source or lock of an app is larger, and a file that only looks like one must not fill the memory.
_LARGEST_BYTES = 16 * MIB
_LONGEST_S = 9.0

_PSGI = re.compile(r"(?<![\w/])[\w.-][\w./-]*\.psgi\b")

_P = ParamSpec("_P")
_R = TypeVar("_R")


def _in_time(read: Callable[Concatenate[Path, _P], _R]) -> Callable[Concatenate[Path, _P], _R]:
    """Return a reading of an app's folder that gives up where its files cost more than any app's do."""

    @wraps(read)
    def limited(folder: Path, /, *more: _P.args, **options: _P.kwargs) -> _R:
        def refused(why: str) -> UsageError:
            return UsageError(
                f"the files in `{folder}` {why}, and no app's do",
                hint="name what is to run: --command 'PROGRAM --port {port}'",
            )

        try:
            with cpu_deadline(_LONGEST_S, lambda: refused(f"take more than {_LONGEST_S:.0f} s to read")):
                return read(folder, *more, **options)
        except (RecursionError, MemoryError):
            raise refused("have too many levels") from None

    return limited


@_in_time
def current_of(folder: Path, around: ReadingAid) -> FoundCurrent:
    """Return the command by which the app in ``folder`` is served today, as its files have it; else as a
    Compose file above has it, which builds that folder.
    """
    return find_current(_folder(folder), around, _above(folder))


@_in_time
def configured_in(folder: Path, target: str, around: ReadingAid) -> Current | None:
    """Return the command of a server whose configuration lies in ``folder``, and that serves the app
    ``target``; None without one, and where a file has a command.
    """
    whole = _folder(folder)
    if written_commands(whole) or _above(folder):
        return None
    texts = {"gunicorn.conf.py": f"gunicorn {target}", "uwsgi.ini": "uwsgi uwsgi.ini"}
    found = (
        (name, find_current(whole, replace(around, typed=text)).current)
        for name, text in texts.items()
        if (folder / name).is_file()
    )
    return next((replace(one, source=name) for name, one in found if one and one.serves(target)), None)


def _above(folder: Path) -> list[Written]:
    """Return the commands with which Docker or Compose, in the folders above, starts what is in this one."""
    return [
        written
        for place in list(folder.absolute().parents)[:2]
        for written in commands_below(_files(place), folder.absolute().relative_to(place).as_posix())
    ]


@_in_time
def app_folder(folder: Path, typed: str) -> Path:
    """Return the folder of the app ``typed``: for ``.`` a folder below may have it, such as ``backend``.

    *Errors*: UsageError when several have one.
    """
    whole = _folder(folder)
    if typed != "." or psgi_of(folder):
        return folder
    commands = written_commands(whole)
    # What describes a program in another language leaves only what stands before it.
    if started := started_below(whole, commands[:1] if is_program(whole) else commands):
        return folder / started
    laid = laid_below(whole)
    # A Procfile may only lead to the folder that has the app.
    leads = bool(laid) and commands[0].place == laid and commands[0].source.endswith("in Procfile")
    if describes_program(whole) and not leads:
        return folder
    if laid:
        return folder / laid
    if is_program(whole):
        return folder
    current = find_current(whole, ReadingAid()).current
    place = folder_of_app(whole, (current.target or current.script) if current else "")
    return folder / ((program_below(whole) if place is None else place) or "")


@_in_time
def workspace_of(folder: Path, command: str) -> tuple[Path, str] | None:
    """Return the folder above in whose workspace this one is a package for Node.js, and its path there; None:
    it is none. ``command``: what the user typed as that of today.
    """
    whole = folder.absolute()
    places = ((root, whole.relative_to(root).as_posix()) for root in list(whole.parents)[:3])
    try:
        found = next(((root, place) for root, place in places if has_package(_files(root), place)), None)
        own = program_of(folder, ".", command=command) if found else None
    except UsageError:
        return None  # of a folder above: no matter of this app's; of its own: said where that is read alone
    return found if own is not None and own.name == "node" else None


def psgi_of(folder: Path) -> str:
    """Return the PSGI application of a folder, that of its command of today first; empty: it has none.

    *Source*: Plack::Runner; Dancer2::Cookbook.
    """
    there = [name for name in _names(folder, "") if name.endswith(".psgi")]
    texts = (one.text for one in written_commands(_folder(folder)))
    started = [name for text in texts for name in _PSGI.findall(text) if ".." not in name.split("/")]
    files = [*started, "app.psgi", *(there if len(there) == 1 else ()), "bin/app.psgi"]
    return next((name for name in files if (folder / name).is_file()), "")


@_in_time
def rack_of(folder: Path, command: str = "") -> str:
    """Return the Rack application of a folder, where a server of the catalogue, or rackup, starts it today;
    empty: it has none. ``command``: what the user typed as that of today.
    """
    whole = _folder(folder)
    try:
        program = program_of(folder, ".", command=command) if whole.has("config.ru") else None
    except UsageError:
        return ""  # of another language, whose own reading says what is wrong
    found = rack_current(program, whole.read, ReadingAid()) if program else None
    return rack_file(program) if program and found else ""


@_in_time
def rack_today(folder: Path, around: ReadingAid) -> FoundCurrent:
    """Return the command by which the Rack app in ``folder`` is served today."""
    program = program_of(folder, ".", command=around.typed)
    return FoundCurrent(rack_current(program, _folder(folder).read, around) if program else None)


@_in_time
def page_of(folder: Path) -> tuple[str, str]:
    """Return the page that PHP-FPM serves today, and in words what starts it; both empty: it serves none.

    *Errors*: UsageError as `page_of_pool`.
    """
    whole = _folder(folder)
    return page_of_pool(whole, [*written_commands(whole), *_above(folder)])


@_in_time
def survey_of(
    folder: Path, typed: str, current: Current | None = None, *, declared: bool = False
) -> Survey | None:
    """Return what ``folder`` says of the app ``typed``; None when that is not an app in Python.

    ``current``: the command of today; ``declared``: the user says what it needs.

    *Errors*: UsageError as `survey_app`.
    """
    named, root, file = (current.app, current.root, current.env_file) if current else ("", "", "")
    sources = Sources(_reader(folder), partial(_names, folder), root)
    if not is_python_target(typed, sources, named):
        return None
    return survey_app(typed, sources, declared=declared, named=named, env_file=file)


@_in_time
def script_of(folder: Path, typed: str, current: Current | None, *, declared: bool = False) -> Survey | None:
    """Return what ``folder`` says of the program in Python that ``current`` starts; None when it is none, or
    when the folder has an app for servers.

    *Errors*: UsageError as `survey_script`.
    """
    if typed != "." or current is None or not current.script:
        return None
    sources = Sources(_reader(folder), partial(_names, folder), current.root)
    if is_python_target(typed, sources, current.target):
        return None
    return survey_script(current.script, sources, declared=declared)


@_in_time
def program_of(folder: Path, typed: str, *, named: str = "", command: str = "") -> Program | None:
    """Return the program in ``folder`` that was typed as an app; None when it is an app in Python, or none.

    ``named``: the app that the command of today names; ``command``: what the user typed as that.

    *Errors*: UsageError as `find_program`.
    """
    if typed == "." and is_python_target(typed, Sources(_reader(folder), partial(_names, folder)), named):
        return None
    return find_program(typed, _folder(folder), command, _above(folder))


def _folder(folder: Path) -> Folder:
    """Return a folder with the units that the machine has for it."""
    files = _files(folder)
    return replace(files, installed=installed_units(folder, files.read))


def _files(folder: Path) -> Folder:
    return Folder(_reader(folder), partial(_names, folder))


def _names(folder: Path, path: str) -> list[str]:
    try:
        return sorted(os.listdir(folder / path))  # noqa: PTH208
    except OSError:
        return []


def declared_in(folder: Path, found: Survey | None) -> Declared | None:
    """Return what was found to be declared, with the path of its file; None when nothing is."""
    said = found.dependencies if found else None
    if said is None:
        return None
    return Declared(folder / said.file if said.file else None, said.lines, said.constraints)


def _reader(folder: Path) -> "Read":
    @cache
    def read(path: str) -> str | None:
        file = folder / path
        try:
            if file.is_dir():
                return ""
            return content(file, _LARGEST_BYTES).decode("utf-8-sig", errors="replace")
        except OSError:
            return None

    return read


# *Source*: systemd.unit(5), Unit File Load Path: what an administrator or a user has put there.
_OF_SYSTEM = (Path("/etc/systemd/system"), Path("/usr/local/lib/systemd/system"))
_OF_USERS = (Path("/etc/systemd/user"), Path("/usr/local/lib/systemd/user"))
_LARGEST_UNIT_BYTES = MIB


def installed_units(folder: Path, read: "Read") -> list[Written]:
    """Return what the units of the machine start that work in ``folder``, below it, or with a file of it.
    ``read``: of that folder.
    """
    here = os.path.realpath(folder)
    if here == "/" or not folder.is_dir():
        return []
    texts = (pair for folders, home in _managers() for pair in _texts(folders, home))
    commands = (command_of_unit(read, path, text) for path, text in texts)
    spelled = dict.fromkeys((here, str(folder.absolute())))
    return [placed for one in commands if one and (placed := _placed(one, list(spelled)))]


def _managers() -> Iterator[tuple[Sequence[Path], str]]:
    """Yield where the system's units lie, then its user's, those that count first; and what `%h` is there."""
    home = os.path.expanduser(f"~{os.environ.get('SUDO_USER', '')}")  # noqa: PTH111 - it may be nobody's
    yield _OF_SYSTEM, "/root"
    yield (Path(home, ".config/systemd/user"), *_OF_USERS), home


def _texts(folders: Sequence[Path], home: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each unit, with what is dropped in behind it.

    *Source*: systemd.unit(5): of two units of one name the first folder's counts; of drop-ins all do, in the
    order of their names.
    """
    names = {name for folder in folders for name in _names(folder, "") if name.endswith(".service")}
    for name in sorted(names):
        unit = next(folder / name for folder in folders if os.path.lexists(folder / name))
        places = (folder / f"{name}.d" for folder in folders)
        dropped = [place / more for place in places for more in _names(place, "")]
        more = sorted((one for one in dropped if one.suffix == ".conf"), key=lambda one: one.name)
        try:
            read = [content(one, _LARGEST_UNIT_BYTES).decode(errors="replace") for one in (unit, *more)]
        except OSError:
            # What runs is not known without all of it.
            continue
        said = f" with {' and '.join(one.name for one in more)}" if more else ""
        yield f"{unit}{said}", "\n".join(read).replace("%h", home)


def _placed(written: Written, spelled: Sequence[str]) -> Written | None:
    """Return a unit's command as one of the folder that is ``spelled`` so; None: it is none of it."""
    here, base = spelled[0], written.base
    copies = tuple((one, ".") for one in spelled)
    if (place := _below(here, base)) is not None:
        return replace(written, place=place, copies=copies)
    # Relative names are of another folder then.
    is_above = base not in ("", "/") and _below(base, here) is not None
    if is_above or not any(re.search(rf"(?<![\w./-]){re.escape(one)}/", written.text) for one in spelled):
        return None
    elsewhere = () if base in ("", "/") else (f"`WorkingDirectory={base}`",)
    return replace(written, base=here, copies=copies, remarks=(*written.remarks, *elsewhere))


def _below(outer: str, inner: str) -> str | None:
    """Return the path of a folder in another one; empty: it is that one; None: it lies elsewhere."""
    outer, real = os.path.realpath(outer), os.path.realpath(inner)
    is_there = inner.startswith("/") and os.path.isdir(real)  # noqa: PTH112
    if not is_there or not f"{real}/".startswith(f"{outer}/"):
        return None
    return real[len(outer) + 1 :]
