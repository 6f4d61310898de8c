"""The Python modules of an app's folder, found by name as Python's import finds them.

Pure.

>>> sources = Sources({"src/shop.py": "app = 1"}.get)
>>> found = sources.module("shop")
>>> found.path, found.root
('src/shop.py', 'src')

A program that listens on a port, as its folder describes it: how it is built, and how it is started. Pure.

It is no callable of a server's: it is the server.

>>> Folder({"index.php": ""}.get, lambda path: ["index.php"]).has("index.php")
True
"""

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from posixpath import join, normpath
from typing import Literal

from prony.core.errors import UsageError
from prony.core.units import MIB

Read = Callable[[str], str | None]
"""The text of a file by its path in the app's folder; empty for a folder, null for what is not there."""

Names = Callable[[str], Sequence[str]]
"""The names in a folder, by its path in the app's folder; none for what is no folder."""


def no_names(path: str) -> Sequence[str]:
    """Return no names."""
    return ()


def read_below(read: Read, place: str) -> Read:
    """Return what reads files by their paths in the folder ``place``; ``.``: the same."""
    return read if place == "." else lambda path: read(normpath(f"{place}/{path}"))


CONTINUED = re.compile(r"(?<![ \t])[ \t]*\\[ \t]*\n[ \t]*")
"""Where a line of a file goes on in the next one, with the space around it."""

# The app's folder itself, and the layout with sources in a folder of their own. *Source*: Python Packaging
# User Guide, src layout vs flat layout.
_ROOTS = ("", "src")


@dataclass(frozen=True, slots=True)
class Module:
    """A module's file. ``root``: the folder at which imports begin, in the app's; ``tree`` null: Python
    cannot parse it.
    """

    name: str
    path: str
    root: str
    tree: ast.Module | None

    @property
    def body(self) -> list[ast.stmt]:
        """The module's statements; none when it cannot be parsed."""
        return self.tree.body if self.tree else []


@dataclass(frozen=True, slots=True)
class Sources:
    """The modules that ``read`` finds, below the app's folder, its ``src``, or its folder ``root``.
    ``names``: what its folders hold.
    """

    read: Read
    names: Names = no_names
    root: str = ""

    @property
    def roots(self) -> tuple[str, ...]:
        """The folders at which imports may begin, the likeliest first."""
        return tuple(dict.fromkeys((self.root, *_ROOTS)))

    def module(self, name: str) -> Module | None:
        """Return the module of a dotted name; None when this folder does not have it."""
        base = name.replace(".", "/")
        for root in self.roots:
            for end in (".py", "/__init__.py"):
                path = f"{root}/{base}{end}" if root else f"{base}{end}"
                text = self.read(path)
                if text is not None:
                    return Module(name, path, root, _parsed(text))
        return None

    def has(self, name: str) -> bool:
        """Return whether a top-level name belongs to the folder: a module, or a folder with modules."""
        return self.module(name) is not None or any(
            self.read(f"{root}/{name}" if root else name) is not None for root in self.roots
        )

    def packages(self, but: Sequence[str]) -> list[str]:
        """Return the names of folders that may be packages, without some and without hidden ones."""
        found = [name for root in self.roots for name in self.names(root)]
        return [
            name
            for name in dict.fromkeys(found)
            if name.isidentifier() and name not in {*but, "src"} and self.has(name)
        ]


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text) if len(text) < 2 * MIB else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # The last two: nested deeper than the parser goes.
        return None


def table_in(parse: Callable[[str], object], name: str, text: str) -> dict[str, object]:
    """Return the table that a file's text is, by ``json.loads`` or ``tomllib.loads``.

    *Errors*: UsageError, when it cannot be read, or is none.
    """
    try:
        found = parse(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"cannot read `{name}`: {error}") from None
    if not isinstance(found, dict):
        raise UsageError(f"cannot read `{name}`: expected a table at its top")
    return found


def table_at(table: object, *keys: str) -> Mapping[str, object]:
    """Return the table at a path of keys; an empty one where there is none."""
    for key in keys:
        table = table.get(key) if isinstance(table, dict) else None
    return table if isinstance(table, dict) else {}


def assigned_names(statement: ast.Assign) -> list[str]:
    """Return the plain names that a statement binds."""
    return [target.id for target in statement.targets if isinstance(target, ast.Name)]


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run when the body does, also those in conditions and loops, in order."""
    for statement in body:
        yield statement
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                continue
        for part in ("body", "orelse", "finalbody"):
            yield from statements(getattr(statement, part, []))
        for handler in getattr(statement, "handlers", []):
            yield from statements(handler.body)


@dataclass(frozen=True, slots=True)
class Written:
    """A command as it stands in ``source``. ``text``: for a shell to read; ``environment``: the variables
    that the same place sets. ``base``: the folder where the app lies there, or empty. ``remarks``: what else
    of that place is not taken over. ``place``: the folder, below that of its file, in which it works; empty:
    that itself.
    ``copies``: what else of the app's folder lies where. ``env_file``: one in that folder with the variables
    of that place, or empty. ``is_whole``: the text is all that stands there. ``several``: what says there
    that several copies of it run, or empty.
    """

    source: str
    text: str
    environment: Mapping[str, str] = field(default_factory=dict)
    base: str = ""
    remarks: tuple[str, ...] = ()
    place: str = ""
    copies: tuple[tuple[str, str], ...] = ()
    env_file: str = ""
    is_whole: bool = True
    several: str = ""

    @property
    def left_out(self) -> tuple[str, ...]:
        """What of its place is not taken over."""
        return (*self.remarks, *([f"{self.several}, of which one is started"] if self.several else []))

    def placed(self, path: str) -> str:
        """Return a whole path there as one in the app's folder; as it is when it lies elsewhere.

        >>> Written("", "", base="/srv", copies=(("/start", "ops/start"),)).placed("/start")
        'ops/start'
        """
        for at, inner in sorted(
            [(self.base, self.place or "."), *self.copies], key=lambda pair: len(pair[0]), reverse=True
        ):
            if len(at) > 1 and f"{path}/".startswith(f"{at.rstrip('/')}/"):
                return normpath(join(inner, path[len(at) :].lstrip("/")))
        return path

    def value_here(self, value: str) -> str:
        """Return a variable's value there with a whole path as one in the app's folder; a list of paths, and
        an address, as it is.
        """
        return value if ":" in value else self.placed(value)


@dataclass(frozen=True, slots=True)
class Folder:
    """The app's folder: the texts of its files, and the names in its folders. ``installed``: the commands in
    units that the machine has for it.
    """

    read: Read
    names: Names
    installed: Sequence[Written] = ()

    def has(self, path: str) -> bool:
        """Return whether there is a file or a folder of this path."""
        return self.read(path) is not None

    def below(self, place: str) -> "Folder":
        """Return a folder below this one.

        >>> Folder({"api/go.mod": ""}.get, lambda path: []).below("api").has("go.mod")
        True
        """
        return Folder(
            lambda path: self.read(f"{place}/{path}"), lambda path: self.names(f"{place}/{path}".rstrip("/"))
        )


@dataclass(frozen=True, slots=True)
class Program:
    """How a program is built and started.

    ``name``: of the server that it is. ``source``: what of its folder says how it is started. ``command`` and
    ``build`` may have the placeholders ``host``, ``port`` and ``build`` and those of ``tools``: the system's
    programs, by where they may be. ``build``: commands that run in a copy of the folder; ``product``: the
    file that they leave in ``{build}``. ``is_carried``: it works in ``{build}``, a copy of the whole folder;
    else in the folder. ``packages``: the file that says what is installed, or empty. ``debian``: the packages
    that have the tools. ``left_out``: what of the place that starts it is not taken over, each in words;
    ``offered``: the names of the variables in `.env` beside it, which are not passed on.
    """

    name: str
    language: Literal["go", "javascript", "other"]
    source: str
    command: tuple[str, ...]
    tools: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    build: tuple[tuple[str, ...], ...] = ()
    product: str = ""
    is_carried: bool = False
    packages: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    debian: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    offered: tuple[str, ...] = ()
