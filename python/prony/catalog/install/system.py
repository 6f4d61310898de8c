"""The system packages that servers need: which are missing, and the command that installs them.

It installs nothing. Programs are looked for where subjects will look for them, not on the caller's PATH.

>>> version_in("perl 5, version 36: Starman 0.4016")
'0.4016'
"""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from prony.catalog.install.child import Children
from prony.catalog.install.uv import cause, probe_environment
from prony.catalog.schema.entry import ProcessEntry, PythonInstall, SystemInstall, SystemNeeds
from prony.catalog.schema.expression import fill
from prony.core.errors import explained
from prony.core.users import SUBJECT_PATH, RunAs, may

_DPKG = Path("/var/lib/dpkg/info")
_BREW = tuple(Path(path) for path in ("/opt/homebrew", "/usr/local", "/home/linuxbrew/.linuxbrew"))


@dataclass(frozen=True, slots=True)
class System:
    """A package system. ``name``: the field of an entry's `needs` that has its packages' names;
    ``installing``: the start of its command, which root types, or another user ``by_root``.
    """

    name: Literal["debian", "fedora", "brew"]
    is_installed: Callable[[str], bool]
    installing: str
    by_root: bool = True

    def missing(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return those of ``names`` that are not installed."""
        return tuple(name for name in names if not self.is_installed(name))

    def command(self, names: Sequence[str]) -> str:
        """Return the command that installs packages."""
        sudo = "sudo " if self.by_root and os.geteuid() != 0 else ""
        return f"{sudo}{self.installing} {' '.join(names)}"


def debian(folder: Path = _DPKG) -> System:
    """Return that of Debian and its derivatives; ``folder`` has dpkg's lists of packages' files."""

    @explained("cannot read which packages are installed")
    def is_installed(name: str) -> bool:
        return (folder / f"{name}.list").exists() or any(folder.glob(f"{name}:*.list"))

    return System("debian", is_installed, "apt-get install --no-install-recommends")


def _rpm_knows(name: str) -> bool:
    with explained("cannot ask rpm which packages are installed"):
        done = subprocess.run(
            ["/usr/bin/rpm", "--query", "--whatprovides", "--", name], capture_output=True, check=False
        )
    return done.returncode == 0


def fedora(is_installed: Callable[[str], bool] = _rpm_knows) -> System:
    """Return that of Fedora and its relatives; ``is_installed`` asks rpm."""
    return System("fedora", is_installed, "dnf install")


def brew(prefix: Path) -> System:
    """Return Homebrew below ``prefix``, which links what is installed below ``opt``, and refuses root."""
    return System("brew", lambda name: (prefix / "opt" / name).exists(), "brew install", by_root=False)


def find_system() -> System | None:
    """Return this machine's package system; None: one for which entries have no package names."""
    if _DPKG.is_dir() and shutil.which("apt-get", path=_with_sbin()):
        return debian()
    if shutil.which("dnf", path=_with_sbin()) and Path("/usr/bin/rpm").exists():
        return fedora()
    prefix = next((prefix for prefix in _BREW if (prefix / "bin" / "brew").exists()), None)
    return brew(prefix) if prefix else None


def missing(needs: SystemNeeds, system: System | None) -> tuple[str, ...]:
    """Return the packages of ``needs`` that are not installed; none if their names are not known."""
    return system.missing(getattr(needs, system.name)) if system else ()


def wanted_python(entry: ProcessEntry) -> tuple[str, ...]:
    """Return the Python that ``entry`` needs, such as ``CPython 3.8``; empty if it needs none of its own."""
    version = _wanted_version(entry)
    return (f"CPython {version}",) if version else ()


def _wanted_version(entry: ProcessEntry) -> str | None:
    return entry.install.python if isinstance(entry.install, PythonInstall) else None


# --- advice -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ServerNeeds:
    """What one server needs. ``known`` false: the names of the packages on this system are not known."""

    server: str
    needs: tuple[str, ...]
    missing: tuple[str, ...]
    known: bool = True


@dataclass(frozen=True, slots=True)
class InstallAdvice:
    """What a list of servers needs on this machine; ``command`` null: no package is missing.

    ``pythons``: the versions of CPython among ``missing``, such as ``3.8``, which no package installs.
    """

    system: str | None
    servers: tuple[ServerNeeds, ...]
    missing: tuple[str, ...]
    command: str | None
    pythons: tuple[str, ...] = ()


def advise(
    entries: Iterable[ProcessEntry],
    system: System | None,
    works: Callable[[ProcessEntry], bool] = lambda _entry: False,
    has_python: Callable[[ProcessEntry], bool] = lambda _entry: True,
) -> InstallAdvice:
    """Return the system packages that ``entries`` need, which are missing, and the command that installs
    them.

    ``works`` returns whether an entry runs even if its packages are not installed, ``has_python`` whether the
    Python that it needs is on this machine.
    """
    known = tuple(entries)
    packages = tuple(_needs_of(entry, system, works) for entry in known)
    absent = tuple(entry for entry in known if not has_python(entry))
    pythons = {entry.name: wanted_python(entry) if entry in absent else () for entry in known}
    found = tuple(
        replace(
            item,
            needs=(*item.needs, *wanted_python(entry)),
            missing=(*item.missing, *pythons[entry.name]),
        )
        for entry, item in zip(known, packages, strict=True)
    )
    lacking = tuple(sorted({name for item in packages for name in item.missing}))
    names = tuple(sorted({name for names in pythons.values() for name in names}))
    versions = tuple(sorted({version for entry in absent if (version := _wanted_version(entry))}))
    command = system.command(lacking) if system and lacking else None
    return InstallAdvice(system.name if system else None, found, (*lacking, *names), command, versions)


def _needs_of(
    entry: ProcessEntry, system: System | None, works: Callable[[ProcessEntry], bool]
) -> ServerNeeds:
    by_system: Mapping[str, tuple[str, ...]] = dict(entry.needs)
    names = by_system[system.name] if system else ()
    if not names and any(by_system.values()):
        return ServerNeeds(entry.name, entry.needs.debian, (), known=False)
    lacking = missing(entry.needs, system)
    return ServerNeeds(entry.name, names, () if lacking and works(entry) else lacking)


def _with_sbin() -> str:
    return f"{os.environ.get('PATH', os.defpath)}:/usr/bin:/usr/sbin"


# --- the system's programs that an entry needs ------------------------------------------------------------


VERSION_UNKNOWN = "unknown"
"""The version of a program that works but does not print its version."""

_EXECUTE = 1
_NUMBER = re.compile(r"\d+(?:\.\d+)+")


@dataclass(frozen=True, slots=True)
class Tried:
    """The result of testing the system's installation of an entry.

    ``version`` null: it does not work, and ``reason`` says why; `VERSION_UNKNOWN`: it works.
    """

    programs: Mapping[str, Path]
    version: str | None
    interpreter: str = ""
    reason: str = ""


def find_programs(candidates: Mapping[str, Sequence[str]], user: RunAs) -> dict[str, Path]:
    """Return the path of each program; programs that ``user`` cannot execute are left out."""
    found = {name: _first(paths, user) for name, paths in candidates.items()}
    return {name: path for name, path in found.items() if path}


def try_system(
    entry: ProcessEntry, install: SystemInstall | PythonInstall, user: RunAs, children: Children
) -> Tried:
    """Find the programs of ``entry`` and ask for their version, as the user that will run them."""
    programs = find_programs(install.programs, user)
    absent = [name for name in install.programs if name not in programs]
    if absent:
        names = ", ".join(f"`{name}`" for name in absent)
        return Tried(programs, None, reason=f"the user `{user.name}` cannot find or run the program {names}")
    if install.version is None:
        return Tried(programs, VERSION_UNKNOWN)
    environment = probe_environment(user)
    texts = {name: str(path) for name, path in programs.items()}
    done = children.run([fill(word, texts) for word in install.version], environment, Path("/"))
    if not done.ok:
        return Tried(programs, None, reason=f"`{entry.name}` does not work: {cause(done)}")
    version = version_in(done.output) or version_in(done.log)
    interpreter = ""
    if isinstance(install, SystemInstall) and install.interpreter:
        answer = children.run([fill(word, texts) for word in install.interpreter], environment, Path("/"))
        if not answer.ok:
            return Tried(programs, None, reason=f"`{entry.name}` does not work: {cause(answer)}")
        interpreter = (answer.output.strip() or answer.log.strip()).partition("\n")[0]
    return Tried(programs, version or VERSION_UNKNOWN, interpreter)


def version_in(text: str) -> str | None:
    """Return the last number with a dot in the first line that has one: the version; else None.

    >>> version_in("go version go1.26.8 linux/amd64")
    '1.26.8'
    """
    for line in text.splitlines():
        numbers = _NUMBER.findall(line)
        if numbers:
            return str(numbers[-1])
    return None


def _first(paths: Sequence[str], user: RunAs) -> Path | None:
    for path in paths:
        if path.startswith("/"):
            matches = sorted(Path("/").glob(path.lstrip("/")), key=_by_number, reverse=True)
        else:
            found = shutil.which(path, path=SUBJECT_PATH)
            matches = [Path(found)] if found else []
        for match in matches:
            if _may_run(match, user):
                return match
    return None


def _by_number(path: Path) -> list[int]:
    """Order `/usr/lib/x/9.6/bin` before `/usr/lib/x/15/bin`."""
    return [int(number) for number in re.findall(r"\d+", str(path))]


def _may_run(path: Path, user: RunAs) -> bool:
    # The folders first: in a closed one, Python does not answer whether there is a file.
    resolved = path.resolve()
    is_reached = all(may(parent, user, _EXECUTE) for parent in resolved.parents)
    return is_reached and may(resolved, user, _EXECUTE) and resolved.is_file()
