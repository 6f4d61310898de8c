"""The environment variables without which an app in Python cannot be imported, read from its source. Pure.

>>> from prony.catalog.discover.sources import Sources
>>> files = {"shop.py": "import os\\nKEY = os.environ['SHOP_KEY']\\nif KEY: B = os.environ['B']"}
>>> [one.name for one in needed_variables(Sources(files.get), ["shop"])]
['SHOP_KEY']
"""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from prony.catalog.discover.dependencies import certain, own_modules
from prony.catalog.discover.sources import Module, Read, Sources

_NAME = re.compile(r"^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=", re.MULTILINE)
# What reads a `.env` beside the app by itself: documentation of python-dotenv, environs, python-decouple.
_READERS = ("dotenv", "environs", "decouple", "environ")
_UNSET = frozenset({"KeyError", "LookupError", "Exception", "BaseException"})
# What every server gets, or the system sets.
_SET = frozenset({"PATH", "HOME", "USER", "LANG", "TMPDIR", "PORT", "HOST", "PYTHONPATH"})


@dataclass(frozen=True, slots=True)
class NeededVariable:
    """A variable, and where its absence is an error; ``of_settings``: in Django's, which may be others."""

    name: str
    path: str
    line: int
    of_settings: bool = False


def names_of_env_file(read: Read, file: str = ".env") -> tuple[str, ...]:
    """Return the names of the variables in a file, without their values."""
    return tuple(dict.fromkeys(_NAME.findall(read(file) or "")))


def needed_variables(sources: Sources, names: Sequence[str]) -> tuple[NeededVariable, ...]:
    """Return each variable that the modules ``names``, and those of the folder that they import, need to be
    imported; without those that the app finds in `.env` by itself.
    """
    found: dict[str, NeededVariable] = {}
    modules = [module for name in names for module in own_modules(sources, name)]
    reads_file = any(_reads_env_file(module) for module in modules)
    known = _SET | set(names_of_env_file(sources.read) if reads_file else ())
    for module in modules:
        for name, line in _asked(module):
            if name not in known:
                found.setdefault(name, NeededVariable(name, module.path, line))
    return tuple(found.values())


def _reads_env_file(module: Module) -> bool:
    return any(
        (isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in _READERS)
        or (
            isinstance(node, ast.Import) and any(one.name.partition(".")[0] in _READERS for one in node.names)
        )
        for node in module.body
    )


def _asked(module: Module) -> Iterator[tuple[str, int]]:
    """Yield each variable that is asked for without a default whenever the module is imported."""
    for statement in certain(module.body, _UNSET):
        match statement:
            case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value) | ast.Expr(value=value):
                yield from _in_expression(value)


def _in_expression(value: ast.expr) -> Iterator[tuple[str, int]]:
    match value:
        case ast.Subscript(
            value=ast.Attribute(attr="environ") | ast.Name(id="environ"),
            slice=ast.Constant(value=str() as name),
            lineno=line,
        ):
            yield name, line
        # What is asked for only sometimes is behind a condition.
        case ast.IfExp() | ast.BoolOp() | ast.Lambda() | ast.ListComp() | ast.DictComp() | ast.GeneratorExp():
            return
        case _:
            for inner in ast.iter_child_nodes(value):
                if isinstance(inner, ast.expr):
                    yield from _in_expression(inner)
                elif isinstance(inner, ast.keyword):
                    yield from _in_expression(inner.value)
