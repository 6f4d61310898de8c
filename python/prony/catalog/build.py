"""Builds one environment: chooses its lock, fills it, tries it, and marks it as whole.

The folder of an environment belongs to Prony's own user and holds the lock, the mark and, as the only part
that belongs to the user that servers run as, the virtual environment itself: what Prony trusts later, no
server can rewrite.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock as ThreadLock

from prony.catalog.child import Children
from prony.catalog.entry import ServerEntry
from prony.catalog.environment import Environment, EnvironmentRequest, Unavailable
from prony.catalog.interpreter import Interpreter, choose_interpreter
from prony.catalog.resolve import Lock, Unresolved, Wanted, committed_lock, resolve_lock
from prony.catalog.system import find_system, missing
from prony.catalog.uv import Uv, cause, last_lines, open_uv
from prony.errors import HostError
from prony.runas import RunAs, own_folder

__all__ = ["Builder", "environment_name"]

# Part of every environment's name: raised when environments are built in another way.
_RECIPE = "1"

_MARK = "complete.json"

_REPORT = """
import importlib, importlib.metadata, json, platform, sys
missing = []
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except ImportError as error:
        missing.append(f"{name}: {error}")
packages = {one.metadata["Name"]: one.version for one in importlib.metadata.distributions()}
interpreter = f"{platform.python_implementation()} {platform.python_version()}"
print()
print(json.dumps({"missing": missing, "packages": packages, "interpreter": interpreter}))
"""


class Builder:
    """Finds or builds environments for one user; safe to use from several threads."""

    def __init__(self, user: RunAs) -> None:
        self._user = user
        self._children = Children(user)
        self._lock = ThreadLock()
        self._tools: tuple[Uv, Interpreter] | None = None

    def end(self) -> None:
        """Kill what is still being built, and build nothing more."""
        self._children.end()

    def environment(
        self, request: EnvironmentRequest, on_build: Callable[[], None]
    ) -> Environment | Unavailable:
        """Return the environment for ``request``; ``on_build`` is called when it has to be built.

        *Errors*: HostError as `prony.catalog.environment.prepare`.
        """
        if request.python:
            return self._own(request, request.python)
        lacking = missing(request.server.needs, find_system())
        if lacking:
            name = request.server.name
            how = f"`prony doctor {name}` says how to install it"
            reason = f"`{name}` needs {', '.join(lacking)} of the system; {how}"
            return Unavailable(request.key, reason, "")
        try:
            uv, interpreter = self._ready_tools()
            lock = self._chosen_lock(request, uv, interpreter)
            if isinstance(lock, Unresolved):
                return Unavailable(request.key, lock.reason, lock.log)
            folder = self._user.cache / "environments" / environment_name(request.server, lock, interpreter)
            with self._locked(folder):
                return _marked(request.key, folder, lock) or self._built(request, folder, lock, on_build)
        except OSError as error:
            raise HostError(
                f"cannot build an environment in `{self._user.cache}`: {error}",
                hint="choose another place with the environment variable PRONY_CACHE",
            ) from error

    def _ready_tools(self) -> tuple[Uv, Interpreter]:
        with self._lock:
            if self._tools is None:
                self._user.cache.mkdir(parents=True, exist_ok=True)
                self._tools = (
                    open_uv(self._user, self._children),
                    choose_interpreter(self._children, self._user),
                )
            return self._tools

    def _chosen_lock(
        self, request: EnvironmentRequest, uv: Uv, interpreter: Interpreter
    ) -> Lock | Unresolved:
        requirements = request.app_requirements or ()
        lock = None if request.requirements_file else committed_lock(request.server, requirements)
        if lock:
            return lock
        file = request.requirements_file.absolute() if request.requirements_file else None
        return resolve_lock(uv, self._user, interpreter, Wanted(request.server, requirements, file))

    @contextmanager
    def _locked(self, folder: Path) -> Iterator[None]:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.parent.chmod(0o755)
        with folder.with_name(f".{folder.name}.lock").open("w") as file:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    self._children.check()
                    time.sleep(0.1)
            yield

    def _built(
        self, request: EnvironmentRequest, folder: Path, lock: Lock, on_build: Callable[[], None]
    ) -> Environment | Unavailable:
        on_build()
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir()
        folder.chmod(0o755)
        lock_file = folder / "lock.txt"
        lock_file.write_text(lock.text)
        lock_file.chmod(0o644)
        found = self._filled(request, own_folder(folder / "venv", self._user), lock_file, lock)
        if isinstance(found, Unavailable):
            shutil.rmtree(folder)
        else:
            _mark(folder, found)
        return found

    def _filled(
        self, request: EnvironmentRequest, venv: Path, lock_file: Path, lock: Lock
    ) -> Environment | Unavailable:
        uv, interpreter = self._ready_tools()
        python = venv / "bin" / "python"
        create = ["venv", "--allow-existing", "--no-project", "--python", str(interpreter.path), str(venv)]
        hashes = ["--require-hashes"] if lock.hashed else []
        # Trials forbid writing bytecode, so that the first is no slower than the others: it is written here.
        install = [
            "pip",
            "sync",
            "--python",
            str(python),
            "--compile-bytecode",
            "--allow-empty-requirements",
            *hashes,
        ]
        for command in (create, [*install, str(lock_file)]):
            done = uv.run(*command)
            if not done.ok:
                log = last_lines(done)
                return Unavailable(
                    request.key, f"`{request.server.name}` cannot be installed: {cause(done)}", log
                )
        return self._tried(request, python, lock.digest)

    def _own(self, request: EnvironmentRequest, given: Path) -> Environment | Unavailable:
        path = given.expanduser().absolute()
        named = [path / "bin" / "python", path / "bin" / "python3"] if path.is_dir() else [path]
        python = next((file for file in named if file.exists()), named[0])
        if not python.exists():
            return Unavailable(
                request.key, f"`{python}` is not there; expected a virtual environment or an interpreter", ""
            )
        found = self._tried(request, python, "")
        if isinstance(found, Environment):
            return found
        wanted = " ".join(f"'{requirement}'" for requirement in request.server.install.requirements)
        reason = f"{found.reason}; install it there: {python} -m pip install {wanted}"
        return Unavailable(found.key, reason, found.log)

    def _tried(self, request: EnvironmentRequest, python: Path, digest: str) -> Environment | Unavailable:
        """Import the server as the user that it will run as, and read what the environment holds."""
        key, server = request.key, request.server
        environment = {"PATH": os.defpath, "PYTHONDONTWRITEBYTECODE": "1"}
        command = [str(python), "-c", _REPORT, *server.install.imports]
        done = self._children.run(command, environment, Path("/"))
        if not done.ok:
            reason = f"the user `{self._user.name}` cannot run `{python}`: {cause(done)}"
            return Unavailable(key, reason, last_lines(done))
        report = json.loads(done.output.splitlines()[-1])
        missing = [*report["missing"], *_missing_program(server, python.parent)]
        if missing:
            return Unavailable(
                key,
                f"`{server.name}` is not usable in `{python.parent.parent}`: {missing[0]}",
                "\n".join(missing),
            )
        packages = _normalised(report["packages"])
        return Environment(key, python, python.parent, packages, report["interpreter"], digest)


def environment_name(server: ServerEntry, lock: Lock, interpreter: Interpreter) -> str:
    """Return the name of an environment's folder: the same for the same packages on the same interpreter."""
    parts = [_RECIPE, lock.digest, str(interpreter.path), interpreter.name]
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    return f"{server.name}-{digest[:16]}"


def _missing_program(server: ServerEntry, folder: Path) -> list[str]:
    program = server.command[0]
    if not isinstance(program, str) or not program.startswith("{bin}/"):
        return []
    path = folder / program.removeprefix("{bin}/")
    return [] if path.is_file() else [f"there is no program `{path}`"]


def _mark(folder: Path, environment: Environment) -> None:
    content = {"packages": dict(environment.packages), "interpreter": environment.interpreter}
    draft = folder / f"{_MARK}.draft"
    draft.write_text(json.dumps(content, sort_keys=True))
    draft.chmod(0o644)
    draft.rename(folder / _MARK)


def _marked(key: str, folder: Path, lock: Lock) -> Environment | None:
    try:
        content = json.loads((folder / _MARK).read_text())
    except (OSError, ValueError):
        return None
    programs = folder / "venv" / "bin"
    if not (programs / "python").exists():
        return None
    packages = _normalised(content["packages"])
    return Environment(key, programs / "python", programs, packages, content["interpreter"], lock.digest)


def _normalised(packages: Mapping[str, str]) -> dict[str, str]:
    # Source: PEP 503, Normalized Names.
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in sorted(packages.items())}
