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
from prony.catalog.discover.interface import origin_of
from prony.catalog.discover.sources import Module, Read, Sources, assigned_names

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
        for name, line in (*_asked(module), *_asked_by_readers(sources.read, module)):
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


# --- what a package for settings asks for -----------------------------------------------------------------

# *Source*: documentation of environs and django-environ: what reads one variable, and fails without it.
_READ_ONE = frozenset(
    {"str", "int", "bool", "float", "list", "json", "url", "decimal", "db", "db_url", "dj_db_url"}
)
_ENVIRONMENTS = ("environs.Env", "environ.Env", "environ.FileAwareEnv")
# *Source*: documentation of Pydantic Settings: what a variable of its own sets.
_PLAIN = frozenset(
    {"str", "int", "bool", "float", "SecretStr", "AnyUrl", "HttpUrl", "PostgresDsn", "RedisDsn", "Path"}
)
_SETTINGS = ("pydantic_settings.BaseSettings", "pydantic.BaseSettings")
# What makes other names of them, or takes them from elsewhere.
_OTHERWISE = ("prefixed", "settings_customise_sources", "secrets_dir", "_env_file", "alias_generator")


def _asked_by_readers(read: Read, module: Module) -> Iterator[tuple[str, int]]:
    """Yield each variable without which a reader of settings fails whenever the module is imported."""
    text = read(module.path) or ""
    if any(word in text for word in _OTHERWISE) or re.search(r"read_env\([^)]", text):
        return
    for statement in certain(module.body, _UNSET):
        match statement:
            case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
                for call in (node for node in ast.walk(value) if isinstance(node, ast.Call)):
                    yield from _by_name(read, module, call)
                if isinstance(value, ast.Call) and not value.args and not value.keywords:
                    yield from _by_fields(read, module, value.func)


def _by_name(read: Read, module: Module, call: ast.Call) -> Iterator[tuple[str, int]]:
    match call:
        case ast.Call(func=func, args=[ast.Constant(value=str() as name)], keywords=more):
            has_default = any(one.arg in ("default", "missing", None) for one in more)
            if not has_default and _fails_without(read, module, func):
                yield name, call.lineno


def _fails_without(read: Read, module: Module, func: ast.expr) -> bool:
    match func:
        case ast.Name() if origin_of(module, func) == "decouple.config":
            return read("settings.ini") is None
        case ast.Attribute(value=ast.Name() as reader, attr=kind) if kind in _READ_ONE:
            return _is_environment(module, reader)
        case ast.Name():
            return _is_environment(module, func)
    return False


def _is_environment(module: Module, reader: ast.Name) -> bool:
    assigned = (one for one in module.body if isinstance(one, ast.Assign))
    value = next((one.value for one in assigned if reader.id in assigned_names(one)), None)
    if isinstance(value, ast.Call) and not value.keywords:
        return origin_of(module, value.func) in _ENVIRONMENTS
    return origin_of(module, reader) == "environs.env"


def _by_fields(read: Read, module: Module, maker: ast.expr) -> Iterator[tuple[str, int]]:
    """Yield the variables of the fields without a default, of a class in the same module."""
    classes = (one for one in module.body if isinstance(one, ast.ClassDef) and isinstance(maker, ast.Name))
    made = next((one for one in classes if isinstance(maker, ast.Name) and one.name == maker.id), None)
    if made is None or [origin_of(module, base) in _SETTINGS for base in made.bases] != [True]:
        return
    said = {one.arg: one.value for one in ast.walk(made) if isinstance(one, ast.keyword) and one.arg}
    assigned = (one for one in ast.walk(made) if isinstance(one, ast.Assign))
    said |= {name: one.value for one in assigned for name in assigned_names(one)}
    prefix, file = (said.get(key, ast.Constant("")) for key in ("env_prefix", "env_file"))
    if not isinstance(prefix, ast.Constant) or not isinstance(file, ast.Constant):
        return
    known = {name.upper() for name in names_of_env_file(read, str(file.value or ""))}
    for field in made.body:
        match field:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id=kind), value=None):
                variable = (str(prefix.value) + name).upper()
                if kind in _PLAIN and variable not in known:
                    yield variable, field.lineno
