"""What an app imports that is neither in its folder nor in Python. Pure.

>>> from prony.survey.sources import Sources
>>> [one.name for one in foreign_imports(Sources({"shop.py": "import os, flask"}.get), "shop")]
['flask']
"""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from prony.survey.sources import Module, Sources

_MISSING = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}


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
    seen: set[str] = set()
    waiting = [part for part in _parents(name) if sources.module(part)]
    while waiting:
        module = sources.module(waiting.pop(0))
        if module is None or module.path in seen:
            continue
        seen.add(module.path)
        for imported, line in _imports(module):
            top = imported.partition(".")[0]
            if sources.has(top):
                waiting += _parents(imported)
            elif top not in sys.stdlib_module_names:
                found.setdefault(top, ForeignImport(top, module.path, line))
    return tuple(found.values())


def _parents(name: str) -> list[str]:
    """Return the packages of a dotted name, and itself: importing it runs them all."""
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts) + 1)]


def _imports(module: Module) -> Iterator[tuple[str, int]]:
    for statement in _certain(module.body):
        match statement:
            case ast.Import(names=aliases, lineno=line):
                yield from ((one.name, line) for one in aliases)
            case ast.ImportFrom(module=origin, names=aliases, level=0, lineno=line) if origin:
                yield origin, line
                yield from ((f"{origin}.{one.name}", line) for one in aliases)
            case ast.ImportFrom(level=level, lineno=line) if level:
                yield from ((one, line) for one in _relative(module, statement))


def _relative(module: Module, statement: ast.ImportFrom) -> Iterator[str]:
    parts = module.name.split(".")
    is_package = module.path.endswith("/__init__.py")
    kept = parts[: len(parts) - statement.level + (1 if is_package else 0)]
    base = ".".join([*kept, *([statement.module] if statement.module else [])])
    if base:
        yield base
        yield from (f"{base}.{one.name}" for one in statement.names)


def _certain(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run whenever the body does, and whose failure nothing catches."""
    for statement in body:
        yield statement
        match statement:
            case ast.Try(body=tried, finalbody=last):
                if not any(_catches_missing(handler) for handler in statement.handlers):
                    yield from _certain(tried)
                yield from _certain(last)
            case ast.With(body=inner):
                yield from _certain(inner)


def _catches_missing(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    return any(isinstance(node, ast.Name) and node.id in _MISSING for node in ast.walk(handler.type))
