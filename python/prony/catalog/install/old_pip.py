"""Environments for interpreters that uv does not install for: their own pip fills a folder beside them.

A Python before 3.8 has no environments that uv could make, and Python 2 none at all. So its packages lie in a
folder, and a program of two lines starts the interpreter with that folder on its path. The lock is uv's, and
its hashes are required.
"""

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from prony.catalog.install.child import Children, FinishedCommand
from prony.catalog.install.interpreter import Interpreter
from prony.catalog.install.pip_settings import configuration_files, home_folder, pip_settings
from prony.catalog.install.uv import build_environment
from prony.sandbox.building import BuildTask

# What builds the others must be there before them: no isolated build could download it with its hash.
# (Twisted asks for the last one when it is built.)
_TOOLS = ("setuptools", "wheel", "incremental")
_NAMES_AN_ERROR = re.compile(r"\berror: |cannot find -l|No such file or directory")
_BLOCK = re.compile(r"^(?=[A-Za-z0-9])", re.MULTILINE)

_FINISH = """
import os, sys
folder, interpreter, text = sys.argv[1:]
program = os.path.join(folder, "python")
with open(program, "w") as file:
    file.write(text)
os.chmod(program, 0o755)
old, new = ("#!" + interpreter).encode(), ("#!" + program).encode()
for name in os.listdir(folder):
    path = os.path.join(folder, name)
    with open(path, "rb") as file:
        content = file.read()
    if content.startswith(old):
        with open(path, "wb") as file:
            file.write(new + content[len(old):])
"""


def filled_by_pip(
    children: Children,
    interpreter: Interpreter,
    lock_file: Path,
    target: Path,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> FinishedCommand:
    """Install what ``lock_file`` says below ``target``, and return how the last command ended. ``variables``:
    what the packages' builds read from their environment.

    Afterwards ``target/bin/python`` is the interpreter with these packages, also in the programs beside it.

    *Errors*: HostError when the cache cannot be written.
    """
    pip = _pip(interpreter)
    if pip is None:
        return FinishedCommand(127, "", f"`{interpreter.path}` has no pip of its own (ensurepip)")
    packages = target / "lib" / f"python{interpreter.minor}" / "site-packages"
    environment = _environment(children)
    environment = {**environment, **_libraries(interpreter, environment.get("LDFLAGS", "")), **variables}
    environment |= {"PYTHONPATH": str(packages)}
    install = [str(interpreter.path), "-s", str(pip), "install", "--no-deps", "--require-hashes"]
    install += ["--ignore-installed", "--no-cache-dir", "--no-warn-script-location", "--prefix", str(target)]
    tools = lock_file.with_name("tools.txt")
    tools.write_text(_tools(lock_file.read_text()))
    tools.chmod(0o644)
    for command in (
        [*install, "-r", str(tools)],
        [*install, "--no-build-isolation", "-r", str(lock_file)],
        [str(interpreter.path), "-c", _FINISH, str(target / "bin"), *_starter(interpreter.path, packages)],
    ):
        done = children.build(BuildTask(command, environment, target, (target,)))
        if not done.ok:
            return replace(done, log=f"{_cause(done)}\n{done.log}")
    return done


def _cause(done: FinishedCommand) -> str:
    """Return the first line of an output that names an error: what pip says after it is what it did then."""
    lines = (line.strip() for line in done.log.splitlines())
    return next((f"error: {line}" for line in lines if _NAMES_AN_ERROR.search(line)), "")


def _libraries(interpreter: Interpreter, flags: str) -> Mapping[str, str]:
    """Return how a compiler finds the library of an interpreter that is not where it was built. ``flags``:
    what the linker gets otherwise.

    *Source*: GCC manual, Environment Variables; ld(1), -rpath: a build that names such a path, as that of the
    interpreter does, ignores LD_RUN_PATH.
    """
    folder = str(interpreter.path.parent.parent / "lib")
    linked = f"{flags} -Wl,-rpath,{folder}".strip()
    return {"LIBRARY_PATH": folder, "LD_RUN_PATH": folder, "LDFLAGS": linked}


def _pip(interpreter: Interpreter) -> Path | None:
    """Return the pip that comes with an interpreter, a wheel that runs as it is."""
    library = interpreter.path.parent.parent / "lib" / f"python{interpreter.minor}"
    found = sorted((library / "ensurepip" / "_bundled").glob("pip-*.whl"))
    return found[-1] / "pip" if found else None


def _tools(lock: str) -> str:
    """Return those parts of a lock that build others.

    >>> _tools("a==1 \\\\\\n    --hash=x\\nwheel==2 \\\\\\n    --hash=y\\n")
    'wheel==2 \\\\\\n    --hash=y\\n'
    """
    return "".join(part for part in _BLOCK.split(lock) if part.partition("==")[0] in _TOOLS)


def _starter(interpreter: Path, packages: Path) -> tuple[str, str]:
    """Return the interpreter, and a program that is it with these packages; what a caller sets comes first,
    as it does in an environment.
    """
    # What embeds it, as Apache does, looks for its library where it was built.
    library = shlex.quote(str(interpreter.parent.parent / "lib"))
    own = f"LD_LIBRARY_PATH={library}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
    path = f"PYTHONPATH=${{PYTHONPATH:+$PYTHONPATH:}}{shlex.quote(str(packages))} PYTHONNOUSERSITE=1"
    return str(interpreter), f'#!/bin/sh\n{own} {path} exec {shlex.quote(str(interpreter))} "$@"\n'


def _environment(children: Children) -> Mapping[str, str]:
    settings = pip_settings(os.environ, configuration_files(os.environ, home_folder()))
    # What leads to an index is the build's relay, not the user's proxy.
    settings.pop("PIP_PROXY", None)
    return {**build_environment(children.builder), **settings, "PIP_CONFIG_FILE": os.devnull}
