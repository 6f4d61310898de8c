"""What a project's scripts run: those that its files name, and those that start a server at their end. Pure.

>>> from prony.catalog.discover.sources import Sources
>>> shop = "import uvicorn\\nfrom web import app\\nuvicorn.run(app, port=80, workers=2)"
>>> served_by(Sources({"shop.py": shop, "web.py": ""}.get), "shop").text
'uvicorn web:app --workers 2'
"""

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from posixpath import basename, dirname, normpath

from prony.catalog.discover.interface import (
    CALLABLES,
    FACTORIES,
    bound_names,
    find_factory,
    find_interface,
    is_literal_call,
    is_main_guard,
    origin_of,
)
from prony.catalog.discover.servers import SERVERS
from prony.catalog.discover.sources import Module, Read, Sources, assigned_names, table_at

# *Source*: documentation of each: the command `run`.
_RUNNERS = ("poetry", "pdm", "uv", "hatch", "pipenv", "rye")
_ENTRY = re.compile(r"(?P<module>[A-Za-z_]\w*(?:\.\w+)*):(?P<name>[A-Za-z_]\w*)")
_CALLED = re.compile(r"import (?P<module>[\w.]+); (?P=module)\.(?P<name>\w+)\(\)")


def of_project(read: Read, text: str) -> str:
    """Return a command with what a project's script runs in the place of its name; as it is without one.

    *Source*: Python Packaging User Guide, Entry points; documentation of Poetry, PDM, Hatch and Pipenv.

    >>> project = '[tool.pdm.scripts]\\nweb = "gunicorn shop:app"'
    >>> of_project({"pyproject.toml": project}.get, "pdm run web -w 2")
    'gunicorn shop:app -w 2'
    """
    words = text.split()
    is_run = words[1:2] == ["run"] and basename(words[0]) in _RUNNERS
    rest = words[2:] if is_run else words
    while is_run and rest and rest[0].startswith("-") and rest[0] != "-m":
        del rest[0]
    if not rest:
        return text
    if is_run and (rest[0] == "-m" or rest[0].endswith(".py")):
        return " ".join(["python", *rest])  # as uv has it
    said = None if rest[0] in SERVERS else dict(named_scripts(read)).get(rest[0])
    return " ".join([said, *rest[1:]]) if said else text


def called_module(code: str) -> str:
    """Return the module that the code of `of_project` calls a function of; empty: it is other code."""
    match = _CALLED.fullmatch(code)
    return match["module"] if match else ""


def named_scripts(read: Read) -> Iterator[tuple[str, str]]:
    """Yield name and command of each script of a project."""
    project, pipfile = _toml(read, "pyproject.toml"), _toml(read, "Pipfile")
    tools = table_at(project, "tool")
    entries = {**table_at(project, "project", "scripts"), **table_at(tools, "poetry", "scripts")}
    yield from ((name, text) for name, entry in entries.items() if (text := _of_entry(entry)))
    commands = {**table_at(pipfile, "scripts"), **table_at(tools, "pdm", "scripts")}
    for env, table in table_at(tools, "hatch", "envs").items():
        scripts = table_at(table, "scripts")
        commands |= {name if env == "default" else f"{env}:{name}": one for name, one in scripts.items()}
    yield from ((name, text) for name, one in commands.items() if (text := _of_command(one)))


def _of_entry(written: object) -> str:
    match = _ENTRY.fullmatch(written) if isinstance(written, str) else None
    return f"python -c 'import {match['module']}; {match['module']}.{match['name']}()'" if match else ""


def _of_command(written: object) -> str:
    match written:
        case str():
            return written
        case [*_, str() as last]:
            return " ".join(map(str, written)) if not last.count(" ") else last
        case {"cmd": inner} | {"shell": inner}:
            return _of_command(inner)
        case {"call": entry}:
            return _of_entry(entry)
    return ""


def _toml(read: Read, name: str) -> Mapping[str, object]:
    try:
        return tomllib.loads(read(name) or "")
    except (ValueError, RecursionError):
        return {}


# --- the app that a framework's own program serves ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolApp:
    """What it serves: ``target``, made by a call of ``call``, whose imports begin at ``root``."""

    target: str
    call: str = ""
    root: str = ""


# *Source*: flask/cli.py, locate_app; quart/cli.py, load_app; fastapi_cli/discover.py, get_default_path.
_USUAL = {
    "flask": ("wsgi.py", "app.py"),
    "quart": ("wsgi.py", "app.py"),
    "fastapi": ("main.py", "app.py", "api.py", "app/main.py", "app/app.py", "app/api.py"),
    "litestar": ("app.py", "application.py", "asgi.py"),
}
_NAMED = re.compile(r"(?P<module>[\w./-]+?)(?::(?P<name>[A-Za-z_][\w.]*)(?P<call>\(.*\))?)?")


def app_of_tool(sources: Sources, program: str, given: Sequence[str], app: str) -> ToolApp | None:
    """Return the app that `flask`, `fastapi`, `sanic` or `litestar` serves; None: the folder has none such.

    ``given``: the words that are no options; ``app``: what the option or the variable of that names.

    >>> sources = Sources({"web/shop.py": "app = 1"}.get)
    >>> app_of_tool(sources, "fastapi", ["run", "web/shop.py"], "")
    ToolApp(target='shop:app', call='', root='web')
    """
    written = (given[1:] if program == "fastapi" else given if program == "sanic" else [])[:1]
    named = written[0] if written else "" if program == "fastapi" else app
    match = _NAMED.fullmatch(named) if named else None
    usual = (path for path in _USUAL.get(program, ()) if sources.read(path) is not None)
    path = match["module"] if match else next(usual, "")
    module = _module_of(sources, path) if path and (match or not named) else None
    said, call = (match["name"], match["call"] or "") if match else (None, "")
    name = said or (app if program == "fastapi" else "") or (_usual_name(module) if module else "")
    if module is None or not name or (call and not is_literal_call(call)):
        return None
    target = f"{module.name}:{name}"
    factory = find_factory(replace(sources, root=module.root), target)
    return ToolApp(target, call or ("()" if factory else ""), module.root)


def _module_of(sources: Sources, written: str) -> Module | None:
    """Return a module by its dotted name, or by a path: its packages begin where no `__init__.py` is."""
    path = normpath(written).removesuffix(".py")
    if "/" not in path and not written.endswith(".py"):
        return sources.module(written)
    if path.startswith(("/", "..")):
        return None
    root, name = dirname(path), basename(path)
    while root and sources.read(f"{root}/__init__.py") is not None:
        root, name = dirname(root), f"{basename(root)}.{name}"
    return replace(sources, root=root).module(name)


def _usual_name(module: Module) -> str:
    bound = bound_names(module)
    names = (*CALLABLES, *FACTORIES)
    return next((name for name in names if bound is None or name in bound), "")


# --- the server that a script starts ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Served:
    """What a script starts when it is run. ``text``: the same as a command without an address; ``target``:
    the app, and ``workers``: its processes, or empty. ``left_out``: arguments that are no plain values.
    """

    text: str
    target: str
    workers: str = ""
    left_out: tuple[str, ...] = ()


_ADDRESS = ("app", "host", "port", "listen", "sockets", "ssl_keyfile", "ssl_certfile")
# *Source*: uvicorn/main.py; waitress/runner.py; flask/cli.py. What may be turned off.
_SWITCHES = ("access_log", "use_colors", "proxy_headers", "server_header", "date_header")


def served_by(sources: Sources, name: str) -> Served | None:
    """Return what the module ``name`` starts when it is run; None: no call that is known."""
    if (module := sources.module(name)) is None:
        return None
    for statement in module.body:
        match statement:
            case ast.ClassDef():
                continue
            case ast.FunctionDef(body=body) | ast.AsyncFunctionDef(body=body):
                scope = body
            case ast.If(body=body) if is_main_guard(statement):
                scope = body
            case _:
                scope = []
        calls = (node for node in ast.walk(statement) if isinstance(node, ast.Call))
        served = (_Call(sources, module, scope, call).served() for call in calls)
        if found := next(filter(None, served), None):
            return found
    return None


@dataclass(frozen=True, slots=True)
class _Call:
    """A call in ``module``. ``scope``: the statements around it that do not run when that is imported."""

    sources: Sources
    module: Module
    scope: Sequence[ast.stmt]
    call: ast.Call

    def served(self) -> Served | None:
        called = origin_of(self.module, self.call.func) or ast.unparse(self.call.func)
        keywords = {one.arg: one.value for one in self.call.keywords if one.arg}
        first = self.call.args[0] if self.call.args else keywords.get("app")
        match called:
            case "uvicorn.run" | "waitress.serve":
                target, is_factory = self._target(first)
                program = "uvicorn" if called == "uvicorn.run" else "waitress-serve"
                made = ("--factory" if program == "uvicorn" else "--call",) if is_factory else ()
                return self._made(program, (*made, target), target, keywords) if target else None
        if isinstance(self.call.func, ast.Attribute) and self.call.func.attr == "run":
            # Of Flask-SocketIO the app is the first argument; Flask's own method has its host there.
            target = self._of_flask(first) or self._of_flask(self.call.func.value)
            if target:
                debug = keywords.pop("debug", None)
                on = ("--debug",) if isinstance(debug, ast.Constant) and debug.value else ()
                return Served(" ".join(["flask", "--app", target, "run", *on]), target)
        return None

    def _of_flask(self, value: ast.expr | None) -> str:
        """Return the app of Flask that an expression stands for; empty: it is none."""
        target, is_factory = self._target(value)
        maker = find_factory(self.sources, target) if target and is_factory else None
        found = maker.found if maker else find_interface(self.sources, target) if target else None
        return target if found and found.reason.startswith("Flask ") else ""

    def _made(
        self, program: str, words: Sequence[str], target: str, keywords: Mapping[str, ast.expr]
    ) -> Served:
        options: list[str] = []
        left: list[str] = []
        for name, value in keywords.items():
            option = name.replace("_", "-")
            match value:
                case _ if name in _ADDRESS:
                    continue
                case ast.Constant(value=None):
                    continue
                case ast.Constant(value=bool() as is_on):
                    options += [f"--{option}"] if is_on else [f"--no-{option}"] * (name in _SWITCHES)
                case ast.Constant(value=int() | str() as plain):
                    options += (
                        [f"--{option}={plain}"]
                        if program == "waitress-serve"
                        else [f"--{option}", f"{plain}"]
                    )
                case _:
                    left.append(f"`{name}` in {self.module.path}")
        workers = keywords.get("workers")
        count = str(workers.value) if isinstance(workers, ast.Constant) else ""
        return Served(" ".join([program, *words, *options]), target, count, tuple(left))

    def _target(self, value: ast.expr | None) -> tuple[str, bool]:
        """Return the app that an expression stands for as ``module:attribute``, and whether that is called;
        empty: it is not known.
        """
        match value:
            case ast.Constant(value=str() as text) if _ENTRY.fullmatch(text):
                return text, False
            case ast.Call(func=maker, args=[], keywords=[]):
                return self._target(maker)[0], True
            case ast.Name(id=name):
                made = (one for one in self.scope if isinstance(one, ast.Assign))
                here = (one.value for one in made if name in assigned_names(one))
                if (local := next(here, None)) is not None:
                    return self._target(local)
                origin = origin_of(self.module, value)
                place, _, attribute = origin.rpartition(".")
                if place and self.sources.module(place):
                    return f"{place}:{attribute}", False
                is_own = name in (bound_names(self.module) or (name,)) and not origin
                is_own &= not self.module.name.endswith("__main__")
                return (f"{self.module.name}:{name}" if is_own else ""), False
        return "", False
