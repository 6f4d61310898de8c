"""The Python interpreter of environments: one that those who build and who run servers can reach and run.

Prony tests this: it starts the candidate as these users, never as another one. An interpreter that they
cannot reach is copied to the cache.
"""

import hashlib
import json
import os
import pwd
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from prony.catalog.install.child import Children
from prony.catalog.install.pip_settings import home_folder
from prony.catalog.install.seal import sealed_copy
from prony.core.errors import HostError
from prony.core.users import RunAs, first_unreadable

# The oldest version for which the catalogue's locks are resolved.
OLDEST = (3, 11)

LEAST_OF_UV = (3, 8)
"""The oldest version for which uv makes environments and resolves."""

# Part of every copy's name: increase it when copies are made in another way.
_LAYOUT = "3"

_SHARED = (Path("/"), Path("/usr"), Path("/usr/local"))

_PROGRAM = re.compile(r"python3\.(\d+)")

# Also for Python 2, where one of these modules has another name.
_REPORT = """
import json, platform, sys
import ssl, wsgiref.simple_server
base = getattr(sys, "_base_executable", "") or sys.executable
print(json.dumps([base, platform.python_implementation(), platform.python_version()]))
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An interpreter that runs: ``name`` is such as ``CPython 3.11.2``."""

    path: Path
    name: str
    version: tuple[int, int]

    @property
    def minor(self) -> str:
        """Its minor version, such as ``3.11``."""
        return f"{self.version[0]}.{self.version[1]}"

    @property
    def is_old(self) -> bool:
        """Whether uv does not install for it."""
        return self.version < LEAST_OF_UV


def is_interpreter(path: Path) -> bool:
    """Return whether a path is a Python to build environments for: a program that is of no environment."""
    return path.is_file() and not (path.parent.parent / "pyvenv.cfg").is_file()


def choose_interpreter(children: Children, user: RunAs) -> Interpreter:
    """Return the interpreter for environments.

    The one that runs Prony if ``user`` can run it; else the newest one on this machine that ``user`` can run;
    else a copy, in the cache, of the one that runs Prony.

    *Errors*: HostError when none of these runs.
    """
    own = Path(os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable))
    for path in (own, *candidates(_program_folders())):
        found = try_interpreter(children, path)
        if found and found.version >= OLDEST:
            return found
    found = try_interpreter(children, _copy(Path(sys.base_prefix), own, user))
    if found is None:
        raise HostError(
            f"the user `{user.name}` cannot run any Python 3.11 or newer: neither `{own}`, nor a copy of it",
            hint="install Python for all users (Debian: apt-get install python3), or choose another user "
            "with `--run-as`",
        )
    return found


def find_interpreter(children: Children, user: RunAs, version: str) -> Interpreter | None:
    """Return a CPython of the minor ``version``, such as ``3.8``; None: this machine has none.

    The first one that ``user`` can run; else a copy, in the cache, of the first one that it cannot reach. An
    old one is copied in any case, unless it is the system's: its own packages would be in every environment.
    Nothing is installed.

    *Errors*: HostError when the copy cannot be written.
    """
    paths = located(version, user)
    for path in paths:
        found = try_interpreter(children, path)
        if _is(found, version) and not _is_copied(path, version):
            return found
    for path in paths:
        if first_unreadable(path, user) or _is_copied(path, version):
            found = try_interpreter(children, _copy(path.parent.parent, path, user))
            if _is(found, version):
                return found
    return None


def _is_copied(path: Path, version: str) -> bool:
    """Return whether an interpreter is an old one that has a prefix to itself."""
    is_old = tuple(map(int, version.split("."))) < LEAST_OF_UV
    return is_old and path.parent.parent not in _SHARED


def is_there(children: Children, user: RunAs, version: str) -> bool:
    """Return whether `find_interpreter` would find one; one that must be copied is not tested."""
    return any(
        first_unreadable(path, user) is not None or _is(try_interpreter(children, path), version)
        for path in located(version, user)
    )


def located(version: str, user: RunAs) -> tuple[Path, ...]:
    """Return where this machine has a Python of the minor ``version``, whether ``user`` can run it or not.

    ``python3.8`` on the PATH, in `/usr/local/bin` and in `/usr/bin`; then what pyenv and uv have installed
    for the caller and for ``user``, newest first. Programs without a library, such as wrapper scripts, are
    left out.
    """
    named = [folder / f"python{version}" for folder in _program_folders()]
    found = (Path(os.path.realpath(path)) for path in (*named, *_managed(version, user)))
    return tuple(dict.fromkeys(path for path in found if _has_library(path, version)))


def candidates(folders: Iterable[Path]) -> tuple[Path, ...]:
    """Return the interpreters ``python3.N`` in ``folders``, newest first, none older than 3.11."""
    found: dict[Path, int] = {}
    for folder in folders:
        for path in _programs(folder):
            match = _PROGRAM.fullmatch(path.name)
            if match and (3, int(match.group(1))) >= OLDEST:
                found.setdefault(path, int(match.group(1)))
    return tuple(sorted(found, key=lambda path: -found[path]))


def try_interpreter(children: Children, path: Path) -> Interpreter | None:
    """Return the interpreter at ``path`` as it describes itself, or None when a user cannot run it."""
    environment = {"PATH": os.defpath, "PYTHONDONTWRITEBYTECODE": "1"}
    asked = [str(path), *_isolated(path), "-c", _REPORT]
    done = children.run(asked, environment, Path("/"))
    builder = children.builder
    if not done.ok or (builder.drop and not children.run(asked, environment, Path("/"), by=builder).ok):
        return None
    try:
        base, implementation, version = json.loads(done.output)
        major, minor = (int(part) for part in version.split(".")[:2])
    except ValueError:
        return None
    return Interpreter(Path(base), f"{implementation} {version}", (major, minor))


def _isolated(path: Path) -> tuple[str, ...]:
    """Return the options by which an interpreter heeds nothing of its surroundings."""
    return ("-E", "-s") if path.name.startswith("python2") else ("-I",)


def _is(found: Interpreter | None, version: str) -> bool:
    return found is not None and found.name.startswith(f"CPython {version}.")


def _managed(version: str, user: RunAs) -> Iterator[Path]:
    """Yield what pyenv and uv have installed. *Source*: pyenv README; uv, Storage, Python versions."""
    for home in dict.fromkeys((home_folder(), *_home_of(user))):
        data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
        pyenv = Path(os.environ.get("PYENV_ROOT") or home / ".pyenv")
        uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or data / "uv" / "python")
        folders = [*_found(pyenv, f"versions/{version}.*"), *_found(uv, f"cpython-{version}.*")]
        # A `+` marks other kinds of builds, such as free-threaded ones.
        plain = [folder for folder in folders if "+" not in folder.name]
        yield from (folder / "bin" / f"python{version}" for folder in sorted(plain, key=_patch, reverse=True))


def _found(folder: Path, pattern: str) -> list[Path]:
    """Return what matches below a folder; one that cannot be read holds nothing of use."""
    try:
        return list(folder.glob(pattern))
    except OSError:
        return []


def _patch(folder: Path) -> tuple[int, ...]:
    """Return the version in a folder's name, as numbers: of `3.8.18`, of `cpython-3.8.20-linux`."""
    number = re.search(r"\d+(\.\d+)+", folder.name)
    return tuple(int(part) for part in number.group().split(".")) if number else ()


def _home_of(user: RunAs) -> Iterator[Path]:
    try:
        yield Path(pwd.getpwnam(user.name).pw_dir)
    except KeyError:
        return


def _has_library(program: Path, version: str) -> bool:
    prefix = program.parent.parent
    return os.path.isfile(program) and any(  # noqa: PTH113 - a closed folder is an answer, not an error
        os.path.isfile(prefix / library / f"python{version}" / "os.py")  # noqa: PTH113
        for library in ("lib", "lib64")
    )


def _program_folders() -> Iterator[Path]:
    for name in [*os.environ.get("PATH", "").split(os.pathsep), "/usr/local/bin", "/usr/bin"]:
        if name.startswith("/"):
            yield Path(name)


def _programs(folder: Path) -> Iterable[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return ()


def _copy(prefix: Path, program: Path, user: RunAs) -> Path:
    """Return the interpreter in a copy of ``prefix`` in the cache."""
    status = program.stat()
    parts = (_LAYOUT, prefix, program.name, status.st_size, status.st_mtime_ns)
    key = hashlib.sha256(" ".join(map(str, parts)).encode()).hexdigest()[:16]
    target = user.cache / "interpreters" / key
    try:
        sealed_copy(target, lambda draft: _fill(draft, prefix, program))
    except (OSError, shutil.Error) as error:
        raise HostError(
            f"cannot copy the interpreter `{program}` to `{target}`: {error.strerror or error}",
            hint="install Python for all users, or choose another place with the environment variable "
            "PRONY_CACHE",
        ) from error
    return target / "bin" / program.name


def _fill(folder: Path, prefix: Path, program: Path) -> None:
    # Keep bytecode: trials write none, and without it the library is compiled again at every start. No hard
    # links: a copy is read-only, the original is not.
    unneeded = shutil.ignore_patterns("site-packages", "test", "*.a", "pkgconfig")
    shutil.copytree(prefix / "lib", folder / "lib", symlinks=True, ignore=unneeded)
    # Compiling packages for an environment needs the headers.
    if (prefix / "include").is_dir():
        shutil.copytree(prefix / "include", folder / "include", symlinks=True)
    (folder / "bin").mkdir()
    copy = folder / "bin" / program.name
    copy.write_bytes(_relocated(program.read_bytes(), prefix))
    copy.chmod(0o755)


def _relocated(program: bytes, prefix: Path) -> bytes:
    """Return the program with a library path relative to itself, if it contains ``prefix`` as an absolute
    one.

    The path in the file ends with a null byte, so that a shorter one can replace it. *Source*: System V ABI,
    Dynamic Linking, DT_RUNPATH and $ORIGIN.
    """
    absolute = os.fsencode(prefix / "lib") + b"\0"
    beside = b"$ORIGIN/../lib"
    return (
        program.replace(absolute, beside.ljust(len(absolute), b"\0"))
        if len(beside) < len(absolute)
        else program
    )
