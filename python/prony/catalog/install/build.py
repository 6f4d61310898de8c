"""Builds one environment: chooses its lock, installs the packages, tests it, and marks it as complete.

The folder of an environment holds the lock, the mark and the virtual environment. While it is built, the
virtual environment belongs to whoever fills it, and then it is sealed: no server can change what Prony,
or another server, trusts later. Before each use Prony compares it with its state when it was sealed.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from threading import Lock as ThreadLock

from prony.catalog.install.child import Children, FinishedCommand
from prony.catalog.install.environment import Declared, Environment, EnvironmentRequest, Unavailable
from prony.catalog.install.interpreter import (
    Interpreter,
    choose_interpreter,
    find_interpreter,
    is_interpreter,
    try_interpreter,
)
from prony.catalog.install.product import Making, NotMade, make
from prony.catalog.install.resolve import Lock, Unresolved, Wanted, committed_lock, is_locked, resolve_lock
from prony.catalog.install.seal import (
    Tree,
    change_since,
    filling,
    locked,
    read_mark,
    seal,
    sealed_copy,
    write_mark,
)
from prony.catalog.install.system import VERSION_UNKNOWN, find_programs, find_system, missing, try_system
from prony.catalog.install.uv import Uv, cause, filled_by_pip, last_words, open_uv
from prony.catalog.schema.entry import ProcessEntry, PythonInstall, SystemInstall
from prony.core.errors import HostError, refused_by
from prony.core.lines import json_object
from prony.core.trees import remove_tree
from prony.core.users import RunAs, builder_for, expanded, make_passable, own_folder
from prony.core.version import prony_version
from prony.model.json_codec import Json
from prony.sandbox.building import BuildTask


def own_parts(user: RunAs) -> Path:
    """Return a folder from which any CPython that Prony supports imports `prony._engine`, as ``user``.

    *Errors*: OSError when the cache cannot be written.
    """
    files = _files()
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    target = user.cache / "parts" / f"prony-{digest[:16]}"
    return sealed_copy(target, lambda draft: _copy(files, draft / "prony"))


def _files() -> tuple[Path, ...]:
    package, engine = find_spec("prony"), find_spec("prony._engine")
    assert package and package.origin and engine and engine.origin, "they are what runs"
    return Path(package.origin), Path(engine.origin)


def _copy(files: tuple[Path, ...], target: Path) -> None:
    target.mkdir()
    for file in files:
        shutil.copyfile(file, target / file.name)


# Part of every environment's name: increase it when environments are built in another way.
_RECIPE = "3"

_VENV = "venv"

# Of a report: each trial keeps it. No environment has so many packages, and no name is as long.
_MOST_TEXTS = 20_000

# Also for Python 2.
_REPORT = """
from __future__ import print_function
import importlib, json, platform, sys
missing = []
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except ImportError as error:
        missing.append("%s: %s" % (name, error))
try:
    from importlib.metadata import distributions
    packages = {one.metadata["Name"]: one.version for one in distributions() if one.version}
except ImportError:
    import pkg_resources
    packages = {one.project_name: one.version for one in pkg_resources.working_set}
interpreter = "%s %s" % (platform.python_implementation(), platform.python_version())
import sysconfig
if sysconfig.get_config_var("Py_GIL_DISABLED"):
    interpreter += ", free-threaded, %s the GIL" % ("with" if sys._is_gil_enabled() else "without")
print()
print(json.dumps({"missing": missing, "packages": packages, "interpreter": interpreter}))
"""


@dataclass(frozen=True, slots=True)
class _Recipe:
    """The uv, interpreter and lock of a virtual environment, and the variables of its packages' builds."""

    uv: Uv
    interpreter: Interpreter
    lock: Lock
    variables: Mapping[str, str] = field(default_factory=dict)


class Builder:
    """Finds or builds environments for one user; safe to use from several threads."""

    def __init__(self, user: RunAs) -> None:
        self._user = user
        self._children = Children(user)
        self._lock = ThreadLock()
        self._uv: Uv | None = None
        self._interpreters: dict[tuple[str | None, Path | None], Interpreter | None] = {}

    def end(self) -> None:
        """Kill what is still being built, and build nothing more."""
        self._children.end()

    def environment(
        self, request: EnvironmentRequest, on_build: Callable[[str], None]
    ) -> Environment | Unavailable:
        """Return the environment for ``request``; ``on_build`` is called when it has to be built, with the
        reason why again, or "".

        *Errors*: HostError as `prony.catalog.install.environment.prepare`.
        """
        try:
            match request.server.install:
                case PythonInstall() as install:
                    found = self._python(request, install, on_build)
                case SystemInstall() as install:
                    found = self._system(request, install)
            if isinstance(found, Unavailable) or not install.build:
                return found
            making = Making(
                request.server, install.build, self._values(request, found), _made_from(request, found)
            )
            product = make(making, self._user, self._children, on_build)
        except OSError as error:
            raise HostError(
                f"cannot build an environment in `{self._user.cache}`: {refused_by(error)}",
                hint="choose another place with the environment variable PRONY_CACHE",
            ) from error
        if isinstance(product, NotMade):
            return Unavailable(request.key, product.reason, product.log)
        return replace(found, build=product)

    def _python(
        self, request: EnvironmentRequest, install: PythonInstall, on_build: Callable[[str], None]
    ) -> Environment | Unavailable:
        programs = find_programs(install.programs, self._user)
        absent = tuple(name for name in install.programs if name not in programs)
        given = request.python and expanded(request.python).absolute()
        own = None if given is None or is_interpreter(given) else given
        # A user's own environment is used as it is; the system's programs are needed too.
        lacking = (() if own else missing(request.server.needs, find_system())) or absent
        if lacking:
            return _needs(request, lacking)
        found = self._own(request, install, own) if own else self._locked(request, install, given, on_build)
        if install.prony and isinstance(found, Environment):
            found = replace(found, prony=own_parts(self._user), version=prony_version())
        if isinstance(found, Unavailable) or install.version is None:
            return replace(found, programs=programs) if isinstance(found, Environment) else found
        tried = try_system(request.server, install, self._user, self._children)
        if tried.version is None:
            return Unavailable(request.key, tried.reason, "")
        return replace(found, programs=programs, version=tried.version)

    def _locked(
        self,
        request: EnvironmentRequest,
        install: PythonInstall,
        given: Path | None,
        on_build: Callable[[str], None],
    ) -> Environment | Unavailable:
        interpreter = self._interpreter(install, given)
        if interpreter is None and given is not None:
            why = f"the users who build and run servers cannot run `{given}` as Python"
            return Unavailable(request.key, why, "")
        if interpreter is None:
            return _needs_python(request, install)
        if other := _of_another_python(request, install, interpreter.path, interpreter.name):
            return other
        uv = self._ready_uv()
        lock = self._chosen_lock(request, install, uv, interpreter)
        if isinstance(lock, Unresolved):
            return Unavailable(request.key, lock.reason, lock.log)
        name = environment_name(request.server, install, lock, interpreter, self._user)
        folder = self._user.cache / "environments" / name
        with locked(folder, self._children.check):
            mark = read_mark(folder)
            changed = change_since(mark, folder / _VENV) if mark else ""
            if mark is None or changed:
                on_build(changed)
                with filling(folder):
                    return self._built(
                        request, install, folder, _Recipe(uv, interpreter, lock, install.variables)
                    )
            return _environment(request.key, install, mark, _python_of(folder), lock.digest)

    def _system(self, request: EnvironmentRequest, install: SystemInstall) -> Environment | Unavailable:
        tried = try_system(request.server, install, self._user, self._children)
        if tried.version is None:
            lacking = missing(request.server.needs, find_system())
            return _needs(request, lacking) if lacking else Unavailable(request.key, tried.reason, "")
        version = None if tried.version == VERSION_UNKNOWN else tried.version
        return Environment(request.key, version, tried.interpreter, programs=tried.programs)

    def _values(self, request: EnvironmentRequest, found: Environment) -> Mapping[str, str]:
        app = {"app_dir": str(request.app_folder)} if request.app_folder else {}
        return {**found.places, **app}

    def _ready_uv(self) -> Uv:
        with self._lock:
            if self._uv is None:
                self._uv = open_uv(self._children)
            return self._uv

    def _interpreter(self, install: PythonInstall, given: Path | None) -> Interpreter | None:
        """Return the ``given`` interpreter, else that for ``install``; None when the users cannot run it, or
        when it needs one that is not on this machine.
        """
        version = None if given else install.python
        with self._lock:
            if (version, given) not in self._interpreters:
                make_passable(self._user.cache)
                self._interpreters[version, given] = (
                    try_interpreter(self._children, given)
                    if given
                    else find_interpreter(self._children, self._user, version)
                    if version
                    else choose_interpreter(self._children, self._user)
                )
            return self._interpreters[version, given]

    def _chosen_lock(
        self, request: EnvironmentRequest, install: PythonInstall, uv: Uv, interpreter: Interpreter
    ) -> Lock | Unresolved:
        requirements = request.app_requirements or ()
        lock = committed_lock(request.server, requirements)
        if lock and request.declared is None:
            return lock
        declared = request.declared or Declared()
        if lock and declared == Declared():
            # The server's own packages as Prony pins them, without those of its built-in apps.
            declared = Declared(constraints=lock.versions)
        return resolve_lock(
            uv, self._user, interpreter, Wanted(request.server, install, requirements, declared)
        )

    def _built(
        self,
        request: EnvironmentRequest,
        install: PythonInstall,
        folder: Path,
        recipe: _Recipe,
    ) -> Environment | Unavailable:
        lock_file = folder / "lock.txt"
        lock_file.write_text(recipe.lock.text)
        lock_file.chmod(0o644)
        venv = folder / _VENV
        made_by = _filled(request, venv, lock_file, recipe)
        tree = made_by if isinstance(made_by, Unavailable) else _sealed(request, venv, made_by)
        if isinstance(tree, Unavailable):
            return tree
        # Sealed before anything of it runs as the user that will run it.
        found = self._tried(request, install, _python_of(folder), recipe.lock.digest)
        if isinstance(found, Environment):
            content = {"packages": dict(found.packages), "interpreter": found.interpreter}
            write_mark(folder, content, tree)
        return found

    def _own(
        self, request: EnvironmentRequest, install: PythonInstall, given: Path
    ) -> Environment | Unavailable:
        named = [given / "bin" / "python", given / "bin" / "python3"] if given.is_dir() else [given]
        python = next((file for file in named if file.exists()), named[0])
        if not python.exists():
            return Unavailable(
                request.key,
                f"`{python}` does not exist; expected a virtual environment or an interpreter",
                "",
            )
        found = self._tried(request, install, python, "")
        if isinstance(found, Environment):
            return _of_another_python(request, install, found.python, found.interpreter) or found
        wanted = " ".join(f"'{requirement}'" for requirement in install.requirements)
        reason = f"{found.reason}; install it there: {python} -m pip install {wanted}"
        return Unavailable(found.key, reason, found.log)

    def _tried(
        self, request: EnvironmentRequest, install: PythonInstall, python: Path, digest: str
    ) -> Environment | Unavailable:
        """Import the server as the user that will run it, and list the environment's packages."""
        key, server = request.key, request.server
        environment = {"PATH": os.defpath, "PYTHONDONTWRITEBYTECODE": "1"}
        task = BuildTask([str(python), "-c", _REPORT, *install.imports], environment, Path("/"))
        # The user's own environment is taken as it is.
        done = (
            self._children.tried(task) if digest else self._children.run(task.command, environment, Path("/"))
        )
        if not done.ok:
            reason = f"the user `{self._user.name}` cannot run `{python}`: {cause(done)}"
            return Unavailable(key, reason, last_words(done))
        report = _report_in(done.output)
        if report is None:
            reason = f"`{python}` does not say what it has: what is installed there ends it, or speaks for it"
            return Unavailable(key, reason, last_words(done))
        missing = [*report["missing"], *_missing_program(server, python.parent)]
        if missing:
            return Unavailable(
                key,
                f"`{server.name}` is not usable in `{python.parent.parent}`: {missing[0]}",
                "\n".join(missing),
            )
        return _environment(key, install, report, python, digest)


def environment_name(
    server: ProcessEntry, install: PythonInstall, lock: Lock, interpreter: Interpreter, user: RunAs
) -> str:
    """Return the name of an environment's folder: the same for the same packages, built in the same way, on
    the same interpreter, run by the same user.
    """
    parts = [_RECIPE, lock.digest, str(interpreter.path), interpreter.name, builder_for(user).name]
    parts += [f"{name}={value}" for name, value in sorted(install.variables.items())]
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    return f"{server.name}-{digest[:16]}-{user.name}"


def _python_of(folder: Path) -> Path:
    return folder / _VENV / "bin" / "python"


def _filled(request: EnvironmentRequest, venv: Path, lock_file: Path, recipe: _Recipe) -> RunAs | Unavailable:
    """Install what the lock says; return who did it, or why that failed.

    Where each package has a wheel none of their code runs, and the keeper does it.
    """
    children = recipe.uv.children
    if not recipe.interpreter.is_old and is_locked(recipe.lock.text):
        if _fetched(own_folder(venv, children.keeper), lock_file, recipe):
            return children.keeper
        remove_tree(venv)
    done = _built(own_folder(venv, children.builder), lock_file, recipe)
    return children.builder if done.ok else _not_installed(request, done)


def _fetched(venv: Path, lock_file: Path, recipe: _Recipe) -> bool:
    """Install wheels alone, and return whether that did."""
    uv, only_wheels = recipe.uv, ("--only-binary", ":all:", "--require-hashes", "--no-compile-bytecode")
    created = uv.fetch(*_create(venv, recipe))
    if not created.ok or not uv.fetch(*_sync(venv), *only_wheels, str(lock_file)).ok:
        return False
    # Trials forbid writing bytecode, so that the first one is not slower than the others. Packages may have
    # files that Python runs when it starts: not without `site`.
    compile_all = [
        str(recipe.interpreter.path),
        "-I",
        "-S",
        "-m",
        "compileall",
        "-q",
        "-j",
        "0",
        str(venv / "lib"),
    ]
    children, task = uv.children, BuildTask(compile_all, {"PATH": os.defpath}, venv, (venv,))
    # What a stranger's lock names could cost the compiler any memory and time; the sandbox costs a start.
    if recipe.lock.own:
        children.run(task.command, task.environment, task.folder, by=children.keeper)
    else:
        children.tried(task, by=children.keeper)
    return True


def _built(venv: Path, lock_file: Path, recipe: _Recipe) -> FinishedCommand:
    """Install all, and build what is no wheel."""
    if recipe.interpreter.is_old:
        return filled_by_pip(recipe.uv.children, recipe.interpreter, lock_file, venv, recipe.variables)
    uv = replace(recipe.uv, environment={**recipe.uv.environment, **recipe.variables})
    hashes = ["--require-hashes"] if recipe.lock.hashed else []
    done = uv.build(*_create(venv, recipe), project=None, writable=(venv,))
    if not done.ok:
        return done
    fill = [*_sync(venv), "--compile-bytecode", *hashes, str(lock_file)]
    return uv.build(*fill, project=recipe.lock.project, writable=(venv,))


def _create(venv: Path, recipe: _Recipe) -> tuple[str, ...]:
    return ("venv", "--allow-existing", "--no-project", "--python", str(recipe.interpreter.path), str(venv))


def _sync(venv: Path) -> tuple[str, ...]:
    return ("pip", "sync", "--python", str(venv / "bin" / "python"), "--allow-empty-requirements")


def _not_installed(request: EnvironmentRequest, done: FinishedCommand) -> Unavailable:
    reason = f"`{request.server.name}` cannot be installed: {cause(done)}"
    return Unavailable(request.key, reason, last_words(done))


def _sealed(request: EnvironmentRequest, venv: Path, made_by: RunAs) -> Tree | Unavailable:
    try:
        return seal(venv, made_by.uid)
    except ValueError as error:
        return Unavailable(request.key, f"`{request.server.name}` cannot be kept: {error}", "")


def _report_in(output: str) -> Json | None:
    """Return an environment's report; None where it is none: what is installed there runs before and after.

    >>> _report_in("") is _report_in("[]") is _report_in('{"missing": [], "packages": 5}') is None
    True
    """
    try:
        found = json_object((output.splitlines() or [""])[-1])
        texts = [found["interpreter"], *found["missing"], *found["packages"], *found["packages"].values()]
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    is_short = len(texts) <= _MOST_TEXTS
    return found if is_short and all(isinstance(text, str) and len(text) < 1000 for text in texts) else None


def _missing_program(server: ProcessEntry, folder: Path) -> list[str]:
    named = (part for part in server.command if isinstance(part, str) and part.startswith("{bin}/"))
    paths = (folder / part.removeprefix("{bin}/") for part in named)
    return [f"there is no program `{path}`" for path in paths if not path.is_file()]


def _environment(
    key: str, install: PythonInstall, report: Json, python: Path, lock_digest: str
) -> Environment:
    packages = _normalised(report["packages"])
    interpreter = str(report["interpreter"])
    version = _version(install, packages) if install.requirements else interpreter
    return Environment(key, version, interpreter, python, python.parent, packages, lock_digest)


def _version(install: PythonInstall, packages: Mapping[str, str]) -> str | None:
    """Return the version of the server's package, the first that it requires."""
    name = re.split(r"[^A-Za-z0-9._-]", install.requirements[0], maxsplit=1)[0]
    return packages.get(_normal(name))


def _needs(request: EnvironmentRequest, lacking: Sequence[str]) -> Unavailable:
    name, system = request.server.name, find_system()
    how = f"`prony doctor {name}` shows how to install it"
    if request.server.is_of_app and system is not None:
        how = f"install it: {system.command(lacking)}"
    return Unavailable(request.key, f"`{name}` needs {', '.join(lacking)} from the system; {how}", "")


def _needs_python(request: EnvironmentRequest, install: PythonInstall) -> Unavailable:
    name = request.server.name
    where = f"`prony doctor {name}` shows where Prony looks for it"
    return Unavailable(
        request.key, f"`{name}` needs CPython {install.python}, which is not on this machine; {where}", ""
    )


def _of_another_python(
    request: EnvironmentRequest, install: PythonInstall, path: Path | None, name: str
) -> Unavailable | None:
    """Return why the server cannot run on the interpreter at ``path``, if it needs another version."""
    if install.python is None or name.startswith(f"CPython {install.python}."):
        return None
    why = f"`{request.server.name}` needs CPython {install.python}, and `{path}` is {name}"
    return Unavailable(request.key, why, "")


def _made_from(request: EnvironmentRequest, found: Environment) -> str:
    """Return what a product depends on, besides the entry's files and commands."""
    parts = [f"{name}={path}" for name, path in sorted(found.places.items())]
    return "\n".join([*parts, found.version or "", found.interpreter, found.lock_digest, request.app_digest])


def _normalised(packages: Mapping[str, str]) -> dict[str, str]:
    # Source: PEP 503, Normalized Names.
    return {_normal(name): version for name, version in sorted(packages.items())}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
