"""How a Python app is called: read from the statement that makes it. Pure.

>>> from prony.catalog.discover.sources import Sources
>>> files = {"shop.py": "from fastapi import FastAPI\\napp = FastAPI()"}
>>> found = find_interface(Sources(files.get), "shop:app")
>>> found.interface.value, found.reason
('asgi', 'FastAPI in shop.py')
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prony.catalog.discover.sources import Module, Sources, statements
from prony.model.subject import Interface

CALLABLES = ("app", "application", "api", "wsgi", "asgi", "server")
"""The names under which modules usually offer their app, the commonest first."""

FACTORIES = (
    *("create_app", "make_app", "get_app", "build_app", "create_application", "make_application"),
    *("get_application", "app_factory", "create_api"),
)
"""The names under which modules usually offer a function that makes their app."""

# By what makes the app, the longest name that fits: each framework's documentation on deployment.
_MAKERS: Mapping[str, Interface] = {
    "a2wsgi.ASGIMiddleware": Interface.WSGI,
    "a2wsgi.WSGIMiddleware": Interface.ASGI,
    "apiflask": Interface.WSGI,
    "ariadne.asgi": Interface.ASGI,
    "ariadne.wsgi": Interface.WSGI,
    "asgiref.wsgi.WsgiToAsgi": Interface.ASGI,
    "blacksheep": Interface.ASGI,
    "bottle": Interface.WSGI,
    "channels": Interface.ASGI,
    "cherrypy": Interface.WSGI,
    "connexion.AsyncApp": Interface.ASGI,
    "dash": Interface.WSGI,
    "django.core.asgi": Interface.ASGI,
    "django.core.wsgi": Interface.WSGI,
    "falcon": Interface.WSGI,
    "falcon.asgi": Interface.ASGI,
    "fastapi": Interface.ASGI,
    "flask": Interface.WSGI,
    "litestar": Interface.ASGI,
    "pyramid": Interface.WSGI,
    "quart": Interface.ASGI,
    "sanic": Interface.ASGI,
    "socketio.ASGIApp": Interface.ASGI,
    "socketio.WSGIApp": Interface.WSGI,
    "starlette": Interface.ASGI,
    "strawberry.asgi": Interface.ASGI,
    "tornado.wsgi": Interface.WSGI,
    "web": Interface.WSGI,
    "webob": Interface.WSGI,
    "werkzeug": Interface.WSGI,
    "whitenoise": Interface.WSGI,
}
# Factories within factories; beyond it the app's code is too indirect to say.
_MOST_STEPS = 12


@dataclass(frozen=True, slots=True)
class FoundInterface:
    """How an app is called, and by what that was recognised."""

    interface: Interface
    reason: str


def find_interface(sources: Sources, target: str) -> FoundInterface | None:
    """Return how ``target``, a ``module:attribute``, is called; None when its source does not say."""
    name, _, attribute = target.partition(":")
    module = sources.module(name)
    return _Search(sources).of_name(_Place(module, module.body), attribute, _MOST_STEPS) if module else None


@dataclass(frozen=True, slots=True)
class Factory:
    """A function that makes an app; ``found`` null: its source does not say of which interface."""

    found: FoundInterface | None


def find_factory(sources: Sources, target: str, *, is_given: bool = False) -> Factory | None:
    """Return the factory ``target``, a ``module:attribute``; None when that is an app, or not known, or a
    function that needs arguments, unless it ``is_given`` some.
    """
    name, _, attribute = target.partition(":")
    module = sources.module(name)
    search = _Search(sources, is_given)
    return search.factory(_Place(module, module.body), attribute, _MOST_STEPS) if module else None


def is_literal_call(text: str) -> bool:
    """Return whether a text is the arguments of a call, in parentheses, and all of them are literals.

    *Source*: Gunicorn documentation, WSGI_APP: it takes no other call.

    >>> [is_literal_call(one) for one in ("()", "('live', debug=False)", "(secret())", "(*names)")]
    [True, True, False, False]
    """
    try:
        call = ast.parse(f"f{text}", mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            return False
        for value in (*call.args, *(one.value for one in call.keywords if one.arg)):
            ast.literal_eval(value)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return False
    return all(one.arg for one in call.keywords)


def origin_of(module: Module, value: ast.expr) -> str:
    """Return the dotted name that an expression stands for, by its module's imports; empty: it has none."""
    return _origin(_Place(module, module.body), value)


def is_main_guard(statement: ast.stmt) -> bool:
    """Return whether a statement runs only where its module is the program."""
    return isinstance(statement, ast.If) and ast.unparse(statement.test) == "__name__ == '__main__'"


def bound_names(module: Module) -> frozenset[str] | None:
    """Return the names that a module binds when it is imported; None when only running it can say."""
    if module.tree is None or any(_binds_unseen(node) for node in ast.walk(module.tree)):
        return None
    return frozenset(name for statement in statements(module.body) for name in _bound(statement))


def _binds_unseen(node: ast.AST) -> bool:
    match node:
        case ast.ImportFrom(names=[ast.alias(name="*")]) | ast.Global():
            return True
        case ast.FunctionDef(name="__getattr__"):
            return True
        case ast.Call(func=ast.Name(id=("globals" | "exec" | "setattr" | "vars"))):
            return True
    return False


def _bound(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            yield from ((one.asname or one.name).partition(".")[0] for one in aliases)
        case _:
            # An expression binds too: a loop's variable, a `with ... as`, a walrus.
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node.id


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a name is looked up: in ``body``, then in its module's."""

    module: Module
    body: list[ast.stmt]

    def bindings(self, name: str) -> list[ast.stmt]:
        """Return the statements that bind a name, the last first: those of the body, then the module's."""
        own = [one for one in statements(self.body) if name in _bound(one)]
        outer = [one for one in statements(self.module.body) if name in _bound(one)]
        return [*reversed(own), *(one for one in reversed(outer) if one not in own)]


@dataclass(frozen=True, slots=True)
class _Search:
    """``is_given``: a factory may need arguments."""

    sources: Sources
    is_given: bool = False

    def of_name(self, place: _Place, name: str, steps: int) -> FoundInterface | None:
        """Return the interface of what a name is bound to, by its last binding that says it."""
        first, _, rest = name.partition(".")
        for statement in place.bindings(first) if steps > 0 else ():
            found = self._of_statement(place, statement, first, rest, steps - 1)
            if found is not None:
                return found
        return None

    def factory(self, place: _Place, name: str, steps: int) -> Factory | None:
        """Return what makes an app under a name, also where it was imported from."""
        statement = next(iter(place.bindings(name)), None)
        match statement:
            case ast.FunctionDef(args=given, returns=returned):
                needed = len(given.posonlyargs) + len(given.args) - len(given.defaults)
                needed += sum(default is None for default in given.kw_defaults)
                if needed and not self.is_given:
                    return None
                said = self._of_maker(place, returned) if returned else None
                return Factory(said or self._of_factory(place, ast.Name(name), steps))
            case ast.ImportFrom() if steps > 0:
                module, _, wanted = _imported(place.module, statement, name).rpartition(".")
                origin = self.sources.module(module) if module else None
                return self.factory(_Place(origin, origin.body), wanted, steps - 1) if origin else None
        return None

    def _of_statement(
        self, place: _Place, statement: ast.stmt, name: str, rest: str, steps: int
    ) -> FoundInterface | None:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return _of_arguments(place.module, statement, statement.args)
            case ast.ClassDef():
                return self._of_class(place, statement, "__init__", steps)
            case ast.ImportFrom() | ast.Import():
                return self._of_import(place, statement, name, rest, steps)
            case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
                return self._of_value(place, value, steps)
            case ast.With(items=items):
                made = (one.context_expr for one in items if _written_by(one) == name)
                return next((self._of_value(place, value, steps) for value in made), None)
        return None

    def _of_import(
        self, place: _Place, statement: ast.ImportFrom | ast.Import, name: str, rest: str, steps: int
    ) -> FoundInterface | None:
        origin = _imported(place.module, statement, name)
        inner, _, attribute = origin.rpartition(".")
        for module_name, wanted in ((inner, attribute), (origin, rest)):
            module = self.sources.module(module_name) if module_name else None
            if module is not None and wanted:
                return self.of_name(_Place(module, module.body), wanted, steps)
        return _of_origin(place.module, f"{origin}.{rest}" if rest else origin)

    def _of_value(self, place: _Place, value: ast.expr, steps: int) -> FoundInterface | None:
        match value:
            case ast.Call(func=maker, args=given):
                return self._of_call(place, maker, given, steps)
            case ast.Name(id=name):
                return self.of_name(place, name, steps)
            case ast.Attribute(value=inner):
                return self._of_maker(place, value) or self._of_value(place, inner, steps)
            case ast.Await(value=inner):
                return self._of_value(place, inner, steps)
        return None

    def _of_call(
        self, place: _Place, maker: ast.expr, given: list[ast.expr], steps: int
    ) -> FoundInterface | None:
        """Return what a call makes: by the maker's name, by a factory's return, or by what is wrapped."""
        found = self._of_maker(place, maker) or self._of_factory(place, maker, steps)
        if found is None and isinstance(maker, ast.Attribute):
            found = self._of_value(place, maker.value, steps)
        if found is None and given and steps > 0:
            found = self._of_value(place, given[0], steps - 1)
        return found

    def _of_maker(self, place: _Place, maker: ast.expr) -> FoundInterface | None:
        origin = _origin(place, maker)
        return _of_origin(place.module, origin) if origin else None

    def _of_factory(self, place: _Place, maker: ast.expr, steps: int) -> FoundInterface | None:
        """Return the interface of what a function or class of this folder makes."""
        if steps <= 0 or not (origin := _origin(place, maker) or _written(maker)):
            return None
        name, _, wanted = origin.rpartition(".")
        module = self.sources.module(name) if name else place.module
        if module is None:
            return None
        at = _Place(module, module.body)
        for statement in at.bindings(wanted):
            match statement:
                case ast.FunctionDef(body=body) | ast.AsyncFunctionDef(body=body):
                    inside = _Place(module, body)
                    for value in _returned(body):
                        if found := self._of_value(inside, value, steps - 1):
                            return found
                case ast.ClassDef():
                    return self._of_class(at, statement, "__call__", steps - 1)
                case ast.ImportFrom():
                    return self._of_factory(at, ast.Name(wanted), steps - 1)
        return None

    def _of_class(
        self, place: _Place, statement: ast.ClassDef, called: str, steps: int
    ) -> FoundInterface | None:
        for inner in statement.body:
            if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) and inner.name == called:
                own = ast.arguments([], inner.args.args[1:], None, [], [], None, [])
                if found := _of_arguments(place.module, inner, own):
                    return found
        for base in statement.bases:
            if found := self._of_maker(place, base) or self._of_factory(place, base, steps):
                return found
        return None


def _returned(body: list[ast.stmt]) -> Iterator[ast.expr]:
    for statement in statements(body):
        match statement:
            case ast.Return(value=ast.expr() as value):
                yield value


def _of_arguments(
    module: Module, function: ast.FunctionDef | ast.AsyncFunctionDef, given: ast.arguments
) -> FoundInterface | None:
    """Return the interface by the arguments. *Source*: PEP 3333; ASGI 3.0, Applications."""
    names = [one.arg for one in given.args]
    where = f"{function.name}({', '.join(names)}) in {module.path}"
    if isinstance(function, ast.AsyncFunctionDef) and len(names) == 3:
        return FoundInterface(Interface.ASGI, where)
    if isinstance(function, ast.FunctionDef) and len(names) == 2 and not function.decorator_list:
        return FoundInterface(Interface.WSGI, where)
    return None


def _of_origin(module: Module, origin: str) -> FoundInterface | None:
    parts = origin.split(".")
    for count in range(len(parts), 0, -1):
        interface = _MAKERS.get(".".join(parts[:count]))
        if interface is not None:
            return FoundInterface(interface, f"{parts[-1]} in {module.path}")
    return None


def _origin(place: _Place, value: ast.expr) -> str:
    """Return the dotted name that an expression stands for, by the imports; empty when it has none."""
    written = _written(value)
    first, _, rest = written.partition(".")
    for statement in place.bindings(first) if first else ():
        if isinstance(statement, ast.Import | ast.ImportFrom):
            origin = _imported(place.module, statement, first)
            return f"{origin}.{rest}" if rest else origin
    return ""


def _written_by(item: ast.withitem) -> str:
    return _written(item.optional_vars) if item.optional_vars else ""


def _written(value: ast.expr) -> str:
    match value:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=inner, attr=name):
            before = _written(inner)
            return f"{before}.{name}" if before else ""
    return ""


def _imported(module: Module, statement: ast.Import | ast.ImportFrom, name: str) -> str:
    """Return the dotted name of what an import binds to ``name``."""
    for alias in statement.names:
        if name not in (alias.asname, alias.name.partition(".")[0]):
            continue
        if isinstance(statement, ast.Import):
            return alias.name if alias.asname else name
        return ".".join(part for part in (origin_of_import(module, statement), alias.name) if part)
    return ""


def origin_of_import(module: Module, statement: ast.ImportFrom) -> str:
    """Return the dotted name of the module that a statement imports from, also where that is relative."""
    if not statement.level:
        return statement.module or ""
    is_package = module.path.endswith("/__init__.py")
    parts = module.name.split(".")
    kept = parts[: len(parts) - statement.level + (1 if is_package else 0)]
    return ".".join([*kept, *([statement.module] if statement.module else [])])
