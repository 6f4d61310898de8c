"""What an app's folder declares that it needs, and what of it is locked. Pure.

A lock's exact versions become constraints: the server's own packages are resolved beside them, and what is
locked is what is measured.

>>> found = find_dependencies({"requirements.txt": "flask==3.1.2\\n"}.get)
>>> found.file, found.source
('requirements.txt', 'requirements.txt')

What an app imports that is neither in its folder nor in Python. Pure.

>>> from prony.catalog.discover.sources import Sources
>>> [one.name for one in foreign_imports(Sources({"shop.py": "import os, flask"}.get), "shop")]
['flask']
"""

import ast
import json
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from prony.catalog.discover.images import DOCKERFILES
from prony.catalog.discover.interface import origin_of_import
from prony.catalog.discover.sources import Module, Read, Sources, table_at, table_in
from prony.core.errors import UsageError

_MISSING = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


@dataclass(frozen=True, slots=True)
class ForeignImport:
    """The top-level name of a module that must be installed, and the first place that imports it."""

    name: str
    path: str
    line: int


def foreign_imports(sources: Sources, name: str) -> tuple[ForeignImport, ...]:
    """Return what importing the module ``name`` needs from elsewhere, each once, in the order of the files.

    Imports that may fail, that only a type checker sees, or that a function runs later, are left out.
    """
    found: dict[str, ForeignImport] = {}
    for module in own_modules(sources, name):
        for imported, line in _imports(module):
            top = imported.partition(".")[0]
            if not sources.has(top) and top not in sys.stdlib_module_names:
                found.setdefault(top, ForeignImport(top, module.path, line))
    return tuple(found.values())


def own_modules(sources: Sources, name: str) -> Iterator[Module]:
    """Yield the modules of the folder that importing ``name`` runs, each once."""
    seen: set[str] = set()
    waiting = [part for part in _parents(name) if sources.module(part)]
    while waiting:
        module = sources.module(waiting.pop(0))
        if module is None or module.path in seen:
            continue
        seen.add(module.path)
        yield module
        for imported, _ in _imports(module):
            if sources.has(imported.partition(".")[0]):
                waiting += _parents(imported)


def _parents(name: str) -> list[str]:
    """Return the packages of a dotted name, and itself: importing it runs them all."""
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts) + 1)]


def _imports(module: Module) -> Iterator[tuple[str, int]]:
    for statement in certain(module.body):
        match statement:
            case ast.Import(names=aliases, lineno=line):
                yield from ((one.name, line) for one in aliases)
            case ast.ImportFrom(module=origin, names=aliases, level=0, lineno=line) if origin:
                yield origin, line
                yield from ((f"{origin}.{one.name}", line) for one in aliases)
            case ast.ImportFrom(level=level, lineno=line) if level:
                yield from ((one, line) for one in _relative(module, statement))


def _relative(module: Module, statement: ast.ImportFrom) -> Iterator[str]:
    if base := origin_of_import(module, statement):
        yield base
        yield from (f"{base}.{one.name}" for one in statement.names)


def certain(body: list[ast.stmt], failures: frozenset[str] = _MISSING) -> Iterator[ast.stmt]:
    """Yield the statements that run whenever the body does, and of whose ``failures`` nothing catches any."""
    for statement in body:
        yield statement
        match statement:
            case ast.Try(body=tried, finalbody=last):
                if not any(_catches(handler, failures) for handler in statement.handlers):
                    yield from certain(tried, failures)
                yield from certain(last, failures)
            case ast.With(body=inner) | ast.ClassDef(body=inner):
                yield from certain(inner, failures)


def _catches(handler: ast.ExceptHandler, failures: frozenset[str]) -> bool:
    if handler.type is None:
        return True
    return any(isinstance(node, ast.Name) and node.id in failures for node in ast.walk(handler.type))


# The plain files, the one for production first.
_PLAIN = (
    "requirements.txt",
    "requirements/production.txt",
    "requirements/prod.txt",
    "requirements/base.txt",
)
DECLARING = ("requirements.txt", "pyproject.toml", "uv.lock", "poetry.lock", "Pipfile.lock", "setup.py")
"""The files that people usually write; a few more are read."""

# In a lock, where a package comes from: only what has one version in a registry can be held by its version.
_REGISTRY = ("registry", "legacy")


@dataclass(frozen=True, slots=True)
class Dependencies:
    """An app's dependencies. ``file``: one for uv to read, by its path in the app's folder; ``lines``:
    requirements; ``constraints``: the exact versions of what is locked. ``source``: the files that say so.
    """

    source: str
    file: str | None = None
    lines: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()


def find_dependencies(read: Read) -> Dependencies | None:
    """Return what the folder declares; None when no file does. A lock counts before what it was made of.

    *Errors*: UsageError for a file that cannot be read as what its name says.
    """
    for find in (_of_uv, _of_poetry, _of_pdm, _of_pipenv, _of_plain, _of_project, _of_line):
        found = find(read)
        if found is not None:
            return found
    return None


def _of_plain(read: Read) -> Dependencies | None:
    name = next((name for name in _PLAIN if read(name) is not None), None)
    name = name or next(filter(read, _installed(read)), None)
    return Dependencies(name, name) if name else None


# *Source*: pip install, --requirement; Dockerfile reference, COPY.
_INSTALLED = re.compile(r"\bpip3?[^\n&|;]*?\binstall\b[^\n&|;]*?(?:-r|--requirement)[ =]?(?P<path>[\w./-]+)")
_COPIED = re.compile(r"^(?:COPY|ADD)[ \t]+(?P<words>[^\n]+)$", re.MULTILINE)


def _installed(read: Read) -> Iterator[str]:
    """Yield the files that a Dockerfile installs: as it names them, and as they lie before it copies them."""
    text = "\n".join(read(name) or "" for name in DOCKERFILES).replace("\\\n", " ")
    copied = [word for found in _COPIED.finditer(text) for word in found["words"].split()]
    for found in _INSTALLED.finditer(text):
        path = found["path"].removeprefix("./")
        yield path
        yield from (one for one in copied if one.rpartition("/")[2] == path.rpartition("/")[2])


_PIP = re.compile(r"\bpip3?\b[^\n&|;]*?\binstall\b(?P<words>[^\n&|;]*)")
_REQUIREMENT = re.compile(r"[A-Za-z0-9][\w.-]*(?:\[[\w,. -]+\])?(?:[=<>!~]=?[\w.*+,<>=!~ -]+)?")
# *Source*: pip install, Options: those with a value.
_PIP_VALUES = (
    *("-r", "--requirement", "-c", "--constraint", "-i", "--index-url", "--extra-index-url", "-f"),
    *("--find-links", "-t", "--target", "--prefix", "--root", "--trusted-host", "--timeout", "--retries"),
    *(
        "--proxy",
        "--platform",
        "--python",
        "--cache-dir",
        "--progress-bar",
        "-e",
        "--editable",
        "--no-binary",
    ),
)
_LONGEST = 20_000
# They install others, or are files.
_NO_NEEDS = re.compile(r"(?:pip|setuptools|wheel|uv|poetry|pdm|pipenv|hatch)\b(?!-).*|.*\.(?:whl|gz|zip|txt)")


def _of_line(read: Read) -> Dependencies | None:
    """Return what a Dockerfile installs by name, where no file says it.

    >>> _of_line({"Dockerfile": "RUN pip install -U pip && pip install -i URL a 'b>=22'"}.get).lines
    ('a', 'b>=22')
    """
    for name in DOCKERFILES:
        lines = [one for one in (read(name) or "").splitlines() if not one.lstrip().startswith("#")]
        text = re.sub(r"\\[ \t]*\n", " ", "\n".join(lines))
        kept = [line for line in text.splitlines() if len(line) < _LONGEST]
        found = [
            one for line in kept for match in _PIP.finditer(line) for one in _requirements(match["words"])
        ]
        if found:
            return Dependencies(f"`pip install` in {name}", lines=tuple(dict.fromkeys(found)))
    return None


def _requirements(text: str) -> Iterator[str]:
    try:
        words = shlex.split(text)
    except ValueError:
        return
    for before, word in zip(["", *words], words, strict=False):
        is_need = _REQUIREMENT.fullmatch(word) and not _NO_NEEDS.fullmatch(word)
        if is_need and before not in _PIP_VALUES:
            yield word


def _of_project(read: Read) -> Dependencies | None:
    project = _toml(read, "pyproject.toml") or {}
    if "project" in project:
        return Dependencies("pyproject.toml", "pyproject.toml")
    if _poetry(project):
        return Dependencies("pyproject.toml", "pyproject.toml")
    for name in ("setup.py", "setup.cfg"):
        if read(name) is not None:
            return Dependencies(name, name)
    pipfile = _toml(read, "Pipfile")
    if pipfile is not None:
        return Dependencies("Pipfile", lines=tuple(_lines(pipfile.get("packages", {}))))
    return None


# --- locks ------------------------------------------------------------------------------------------------


def _of_uv(read: Read) -> Dependencies | None:
    """*Source*: uv documentation, Locking; its marker of a fork is `resolution-markers`."""
    lock = _toml(read, "uv.lock")
    if lock is None:
        return None
    if read("pyproject.toml") is None:
        raise UsageError("`uv.lock` has no `pyproject.toml` beside it; expected both")
    locked = [
        _Locked(str(one.get("name")), str(one.get("version")), " or ".join(map(_grouped, _markers(one))))
        for one in _packages(lock)
        if "version" in one and table_at(one, "source").keys() & set(_REGISTRY)
    ]
    return Dependencies("uv.lock", "pyproject.toml", constraints=_pinned(locked))


def _packages(lock: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    found = lock.get("package", [])
    yield from (one for one in found if isinstance(one, dict)) if isinstance(found, list) else ()


def _markers(package: Mapping[str, object]) -> Sequence[str]:
    written = package.get("resolution-markers", [])
    return [str(one) for one in written] if isinstance(written, list) else []


def _grouped(marker: str) -> str:
    return f"({marker})"


def _of_poetry(read: Read) -> Dependencies | None:
    """*Source*: Poetry documentation, poetry.lock; its format 2.1 has markers by group."""
    lock = _toml(read, "poetry.lock")
    if lock is None:
        return None
    project = _toml(read, "pyproject.toml")
    if project is None:
        raise UsageError("`poetry.lock` has no `pyproject.toml` beside it; expected both")
    locked = [
        _Locked(str(one.get("name")), str(one.get("version")), _main_marker(one.get("markers")))
        for one in _packages(lock)
        if "version" in one and table_at(one, "source").get("type", "legacy") in _REGISTRY
    ]
    declared = _poetry(project)
    if "project" in project or not declared:
        return Dependencies("poetry.lock", "pyproject.toml", constraints=_pinned(locked))
    wanted = {name: one for name, one in declared.items() if name.lower() != "python"}
    return Dependencies("poetry.lock", lines=tuple(_lines(wanted)), constraints=_pinned(locked))


def _of_pdm(read: Read) -> Dependencies | None:
    """*Source*: PDM documentation, Lock file; what has a path or a repository is left to `pyproject.toml`."""
    lock = _toml(read, "pdm.lock")
    if lock is None or read("pyproject.toml") is None:
        return None
    locked = [
        _Locked(str(one.get("name")), str(one.get("version")), str(one.get("marker", "")))
        for one in _packages(lock)
        if "version" in one and not one.keys() & {"path", "git", "url"}
    ]
    return Dependencies("pdm.lock", "pyproject.toml", constraints=_pinned(locked))


def _poetry(project: Mapping[str, object]) -> Mapping[str, object]:
    return table_at(project, "tool", "poetry", "dependencies")


def _main_marker(written: object) -> str:
    if isinstance(written, dict):
        written = written.get("main", "")
    return written if isinstance(written, str) else ""


def _of_pipenv(read: Read) -> Dependencies | None:
    """*Source*: Pipenv documentation, Pipfile.lock: `default` is what production needs."""
    text = read("Pipfile.lock")
    if text is None:
        return None
    lock = table_in(json.loads, "Pipfile.lock", text)
    return Dependencies("Pipfile.lock", lines=tuple(_lines(lock.get("default", {}), exact=True)))


@dataclass(frozen=True, slots=True)
class _Locked:
    name: str
    version: str
    marker: str


def _pinned(locked: Sequence[_Locked]) -> tuple[str, ...]:
    """Return constraints. Of a name with several versions only those whose marker says when they apply."""
    names = [one.name for one in locked]
    return tuple(
        f"{one.name}=={one.version}" + (f" ; {one.marker}" if names.count(one.name) > 1 else "")
        for one in locked
        if names.count(one.name) == 1 or one.marker
    )


# --- dependencies by name, as Poetry and Pipenv write them ---------------------------------------------


def _lines(wanted: object, *, exact: bool = False) -> Iterator[str]:
    """Yield requirements. The versions of those that are not ``exact`` are left to the lock."""
    for name, written in wanted.items() if isinstance(wanted, dict) else ():
        for one in written if isinstance(written, list) else [written]:
            line = _line(str(name), one if isinstance(one, dict) else {"version": one}, exact=exact)
            if line:
                yield line


def _line(name: str, one: Mapping[str, object], *, exact: bool) -> str:
    if one.get("optional"):
        return ""
    if "path" in one or "file" in one:
        raise UsageError(
            f"the dependency `{name}` is a path, which Prony does not install",
            hint="name what the app needs in a file of its own: --requirements FILE",
        )
    extras = one.get("extras")
    full = f"{name}[{','.join(map(str, extras))}]" if isinstance(extras, list) and extras else name
    if "git" in one:
        at = next((f"@{one[key]}" for key in ("rev", "ref", "tag", "branch") if key in one), "")
        full += f" @ git+{one['git']}{at}"
    elif exact or _is_comparison(one.get("version")):
        full += str(one.get("version", ""))
    marker = one.get("markers")
    return f"{full} ; {marker}" if marker else full


def _is_comparison(version: object) -> bool:
    """Return whether a version is written as in PEP 440, not with Poetry's own signs."""
    return isinstance(version, str) and version.startswith(("=", "<", ">", "!", "~="))


def _toml(read: Read, name: str) -> dict[str, object] | None:
    text = read(name)
    return None if text is None else table_in(tomllib.loads, name, text)
