"""All that an app's folder says, for one run. Pure.

>>> files = {"shop.py": "from flask import Flask\\napp = Flask('shop')", "requirements.txt": "flask"}
>>> found = survey_app("shop", Sources(files.get))
>>> found.target, found.interface.value, found.dependencies.source
('shop:app', 'wsgi', 'requirements.txt')
"""

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

from prony.catalog.discover.dependencies import DECLARING, Dependencies, find_dependencies, foreign_imports
from prony.catalog.discover.interface import (
    CALLABLES,
    FACTORIES,
    bound_names,
    find_factory,
    find_interface,
    is_literal_call,
)
from prony.catalog.discover.sources import Folder, Module, Read, Sources
from prony.catalog.discover.variables import NeededVariable, names_of_env_file, needed_variables
from prony.catalog.discover.written import only_place, places_below
from prony.core.errors import UsageError
from prony.model.subject import Interface

DJANGO_SETTINGS = "DJANGO_SETTINGS_MODULE"

# *Source*: Django documentation, django-admin and manage.py.
_SET = re.compile(
    rf"""setdefault\(\s*["']{DJANGO_SETTINGS}["']\s*,\s*["'](?P<module>[\w.]+)["']"""
    rf"""|environ\[["']{DJANGO_SETTINGS}["']\]\s*=\s*["'](?P<other>[\w.]+)["']"""
)
_SERVED = re.compile(r"""^WSGI_APPLICATION\s*=\s*["'](?P<module>[\w.]+)\.(?P<name>\w+)["']""", re.MULTILINE)


def settings_module(read: Read, file: str = "manage.py") -> str | None:
    """Return the settings that a project's file names; None when there is no such file, or none in it."""
    found = _SET.search(read(file) or "")
    return (found["module"] or found["other"]) if found else None


def target_of_project(read: Read) -> str | None:
    """Return the WSGI application of the project whose ``manage.py`` is in the folder; None without one."""
    settings = settings_module(read)
    if settings is None:
        return None
    said = _SERVED.search(read(f"{settings.replace('.', '/')}.py") or "")
    return f"{said['module']}:{said['name']}" if said else f"{settings.partition('.')[0]}.wsgi:application"


@dataclass(frozen=True, slots=True)
class Survey:
    """What was found. ``interface`` null: the source does not say; ``reason``: by what it was recognised.

    ``root``: the folder, in the app's, at which its imports begin. ``call``: the target makes the app, called
    with these arguments in parentheses. ``others``: the project's targets of other interfaces. ``needed``:
    the variables without which it cannot be imported; ``offered``: the names in ``env_file``, which is its
    `.env` or that of its command of today. ``dependencies`` null: none are declared.
    ``environment``: the variables that the app needs and that another file of its folder sets.
    """

    target: str
    interface: Interface | None
    reason: str
    root: str = ""
    call: str = ""
    others: Mapping[Interface, str] = field(default_factory=dict)
    needed: tuple[NeededVariable, ...] = ()
    offered: tuple[str, ...] = ()
    dependencies: Dependencies | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    env_file: str = ".env"


# By the documentation of Flask, Django, FastAPI and Litestar; a package has them too.
_MODULES = ("app", "wsgi", "asgi", "main", "application", "run", "server", "api")
_NO_APPS = ("conftest", "setup", "manage", "fabfile", "noxfile", "tasks")
_NO_PACKAGES = ("tests", "test", "docs", "node_modules", "migrations", "scripts", "venv", "env")


def is_python_target(typed: str, sources: Sources, named: str = "") -> bool:
    """Return whether what was typed can name an app in Python in this folder; ``named``: the one that its
    command of today names.
    """
    if typed == ".":
        return _target_of_folder(sources, named) is not None
    if typed == "manage.py":
        return True
    name, colon, attribute = typed.partition("(")[0].partition(":")
    name = name if colon else _module_name(name)
    parts = (*name.split("."), *(attribute.split(".") if colon else ()))
    return all(part.isidentifier() for part in parts) and (bool(colon) or sources.has(parts[0]))


def folder_of_app(folder: Folder, named: str) -> str | None:
    """Return the folder with the app in Python: empty for this one itself; else one below that declares what
    its app needs, or whose needs this one declares. Null: there is none.

    *Errors*: UsageError when there are several.
    """
    sources = Sources(folder.read, folder.names)
    if named or target_of_project(folder.read) or _only_app(sources, _MODULES):
        return ""
    inside = {place: folder.below(place) for place in places_below(folder, _NO_PACKAGES)}
    declaring = [place for place, inner in inside.items() if find_dependencies(inner.read)]
    found = [place for place in declaring if _has_app(inside[place])]
    if not found and _usual_target(sources):
        return ""
    if not found and find_dependencies(folder.read):
        found = [place for place, inner in inside.items() if _has_app(inner)]
    return only_place(found)


def _has_app(folder: Folder) -> bool:
    return _target_of_folder(Sources(folder.read, folder.names), "") is not None


def survey_app(
    typed: str, sources: Sources, *, declared: bool = False, named: str = "", env_file: str = ""
) -> Survey:
    """Return what the folder says of the app ``typed``: ``module:attribute``, a module alone, Django's
    ``manage.py``, or ``.`` for what the folder has.

    ``declared``: something else says what the app needs; ``named``: the app that the folder's command of
    today names, which stands for the folder; ``env_file``: the file of variables that this names.

    *Errors*: UsageError for a module or an attribute that is not there, or for an app that imports what
    nothing declares.
    """
    read = sources.read
    typed = _whole(typed, sources, named)
    name, _, attribute = typed.partition(":")
    name = name if ":" in typed else _module_name(name)
    module = sources.module(name)
    if module is None:
        return Survey(typed, None, "", dependencies=None if declared else _declared(read, sources.root))
    attribute, opened, rest = attribute.partition("(")
    if opened and not is_literal_call(f"({rest}"):
        raise UsageError(
            f"`{typed}` is no call with plain values; expected such as `shop:create_app('live')`"
        )
    target = f"{name}:{_attribute(module, attribute)}"
    factory = find_factory(sources, target, is_given=bool(opened))
    found = factory.found if factory else find_interface(sources, target)
    dependencies = None if declared else _declared(read, sources.root)
    if dependencies is None and not declared:
        _refuse_undeclared(sources, name)
    environment = _settings(read, module)
    settings = [one for one in (*environment.values(), settings_module(read, module.path)) if one]
    needed = {one.name: replace(one, of_settings=True) for one in needed_variables(sources, settings)}
    needed |= {one.name: one for one in needed_variables(sources, [name])}
    env_file = env_file if env_file and not read(".env") else ".env"
    return Survey(
        target=target,
        interface=found.interface if found else None,
        reason=found.reason if found else "",
        root=module.root,
        call=(f"({rest}" if opened else "()") if factory else "",
        others=_others(sources, module, found.interface) if found else {},
        dependencies=dependencies,
        environment=environment,
        needed=tuple(needed.values()),
        offered=names_of_env_file(read, env_file),
        env_file=env_file,
    )


def survey_script(script: str, sources: Sources, *, declared: bool = False) -> Survey:
    """Return what the folder says of a program in Python that listens on a port itself, by its module.

    *Errors*: UsageError for one that imports what nothing declares.
    """
    read = sources.read
    dependencies = None if declared else _declared(read, sources.root)
    if dependencies is None and not declared:
        _refuse_undeclared(sources, script)
    module = sources.module(script)
    return Survey(
        target="",
        root=module.root if module else "",
        interface=Interface.NONE,
        reason=f"`{script}` listens on a port itself, and offers no app to other servers",
        dependencies=dependencies,
        needed=needed_variables(sources, [script]),
        offered=names_of_env_file(read),
    )


# A project's folder, with its sources in `src/package` at most.
_ABOVE = ("../", "../../")


def _declared(read: Read, root: str) -> Dependencies | None:
    """Return what ``root`` in the folder declares, else the folder, else one above it, but none above its
    repository.
    """
    for above in (*([f"{root}/"] if root else ()), "", *_ABOVE):
        if found := find_dependencies(_under(read, above)):
            file = None if found.file is None else f"{above}{found.file}"
            return replace(found, source=f"{above}{found.source}", file=file)
        if read(f"{above}.git") is not None:
            return None
    return None


def _under(read: Read, folder: str) -> Read:
    return lambda path: read(f"{folder}{path}")


def _whole(typed: str, sources: Sources, named: str) -> str:
    """Return the app that stands for its folder, by name."""
    match typed:
        case "manage.py":
            return target_of_project(sources.read) or typed
        case ".":
            return _target_of_folder(sources, named) or typed
    return typed


def _target_of_folder(sources: Sources, named: str) -> str | None:
    """Return the app that a folder has: what its command of today names, its Django project's, or that of a
    usual module.
    """
    return named or target_of_project(sources.read) or _usual_target(sources)


def _usual_target(sources: Sources) -> str | None:
    """Return the app of a usual module, else of one in a package.

    *Errors*: UsageError when several differ.
    """
    packages = sources.packages(_NO_PACKAGES)
    within = [name for package in packages for name in (package, *(f"{package}.{one}" for one in _MODULES))]
    files = (name.removesuffix(".py") for name in sources.names("") if name.endswith(".py"))
    others = [name for name in files if name.isidentifier() and name not in _NO_APPS]
    # A script that starts the app imports it from where it is made.
    others.sort(key=lambda name: not _is_made_in(sources, name))
    return _only_app(sources, _MODULES) or _only_app(sources, within) or _only_app(sources, others)


def _only_app(sources: Sources, modules: Sequence[str]) -> str | None:
    found: dict[str, str] = {}
    for module in modules:
        if target := _offered(sources, module):
            maker = find_factory(sources, target)
            said = maker.found if maker else find_interface(sources, target)
            # The same app may be offered by another module that imports it; two interfaces are one project.
            found.setdefault(said.reason if said and not _is_gate(module) else "", target)
    if len(found) > 1 and "" in found:
        return found[""]
    if len(found) > 1:
        shown = ", ".join(f"`{target}` ({reason})" for reason, target in found.items())
        raise UsageError(
            f"`--app .`: the folder has {len(found)} apps: {shown}; expected the name of one",
            hint=f"--app {next(iter(found.values()))}",
        )
    return next(iter(found.values()), None)


def _is_made_in(sources: Sources, name: str) -> bool:
    """Return whether a module makes the app that it offers, and does not import it."""
    module, target = sources.module(name), _offered(sources, name)
    if module is None or target is None:
        return False
    wanted = target.partition(":")[2]
    imports = (one for one in module.body if isinstance(one, ast.ImportFrom | ast.Import))
    return not any(wanted in (alias.asname, alias.name) for one in imports for alias in one.names)


def _is_gate(module: str) -> bool:
    """Return whether a module is there to offer the app to servers."""
    return module.rpartition(".")[2] in {"wsgi", "asgi"}


def _offered(sources: Sources, module: str) -> str | None:
    """Return the app, else the factory, under a usual name of a module."""
    if sources.module(module) is None:
        return None
    apps = (f"{module}:{name}" for name in CALLABLES)
    factories = (f"{module}:{name}" for name in FACTORIES)
    return next(
        (target for target in apps if find_interface(sources, target)),
        next((one for one in factories if (made := find_factory(sources, one)) and made.found), None),
    )


def _others(sources: Sources, module: Module, interface: Interface) -> dict[Interface, str]:
    """Return the app of the module beside ``module`` that offers the project over another interface."""
    before, dot, last = module.name.rpartition(".")
    beside = {"wsgi": "asgi", "asgi": "wsgi"}.get(last)
    target = _offered(sources, f"{before}{dot}{beside}") if beside else None
    found = find_interface(sources, target) if target else None
    return {found.interface: target} if found and target and found.interface is not interface else {}


def _module_name(typed: str) -> str:
    """Return the module of a file's path, or the name as it was typed.

    >>> _module_name("web/shop.py")
    'web.shop'
    """
    return (
        typed.removesuffix(".py").removeprefix("src/").replace("/", ".") if typed.endswith(".py") else typed
    )


def _attribute(module: Module, wanted: str) -> str:
    """Return the name of the app in its module: the typed one if it is there, else the first usual one.

    *Errors*: UsageError when it is not.
    """
    bound = bound_names(module)
    if wanted:
        first = wanted.partition(".")[0]
        if bound is not None and first not in bound:
            near = get_close_matches(first, bound, n=1) or [name for name in CALLABLES if name in bound]
            raise UsageError(
                f"`{module.name}:{wanted}`: `{module.path}` defines no `{first}`",
                hint=f"did you mean --app {module.name}:{near[0]}?" if near else _names_hint(bound),
            )
        return wanted
    usual = (*CALLABLES, *FACTORIES)
    found = next((name for name in usual if bound is None or name in bound), None)
    if found is None:
        raise UsageError(
            f"`{module.path}` defines none of {', '.join(CALLABLES)}; expected `module:attribute`",
            hint=_names_hint(bound or frozenset()),
        )
    return found


def _names_hint(bound: frozenset[str]) -> str:
    shown = ", ".join(sorted(name for name in bound if not name.startswith("_"))[:8])
    return f"it defines {shown}" if shown else "it defines nothing: name the module that makes the app"


def _refuse_undeclared(sources: Sources, name: str) -> None:
    """Refuse an app that imports what nothing declares: it would run with whatever a server brings along.

    *Errors*: UsageError with the imports.
    """
    foreign = foreign_imports(sources, name)
    if foreign:
        shown = ", ".join(f"`{one.name}` ({one.path}:{one.line})" for one in foreign[:4])
        more = f" and {len(foreign) - 4} more" if len(foreign) > 4 else ""
        raise UsageError(
            f"the app imports {shown}{more}, and no file of its folder declares that; expected one of "
            f"{', '.join(DECLARING)}",
            hint="write what it needs into requirements.txt, a line each, beside the app; or name a file "
            "with --requirements, or its virtual environment with --python",
        )


def _settings(read: Read, module: Module) -> dict[str, str]:
    """Return Django's settings when the project's ``manage.py`` names them and the app's module does not."""
    settings = settings_module(read)
    return {} if settings is None or settings_module(read, module.path) else {DJANGO_SETTINGS: settings}
