"""Whether a server can be measured here: at once, after an installation, or not without a system's package.

Must not know how environments are built.
"""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from prony.catalog.install.child import Children
from prony.catalog.install.interpreter import is_there
from prony.catalog.install.programs import find_programs, try_system
from prony.catalog.install.resolve import committed_lock
from prony.catalog.install.system import find_system, missing, wanted_python
from prony.catalog.schema.entry import ProcessEntry, PythonInstall, SystemInstall
from prony.runas import RunAs, resolve_user

__all__ = ["has_python", "installed_versions", "lacks", "status", "works"]


# Programs that are asked for their version: each is a process of a tenth of a second.
_AT_ONCE = 4


def status(entry: ProcessEntry, user: RunAs | None = None) -> str:
    """Return ``ready``, ``installable`` or ``needs: ...`` with what of the system is missing.

    ``ready``: what it needs is there: for a Python server an environment with its own lock, in the cache of
    ``user``; what it builds has been built.
    """
    user = user or resolve_user()
    lacking = lacks(entry, user)
    if lacking:
        return f"needs: {', '.join(lacking)}"
    match entry.install:
        case PythonInstall(build=build):
            ready = _built(entry, user)
        case SystemInstall(build=build):
            ready = True
    # Its digest has 16 digits: another entry's name may begin with this one's.
    made = build is None or any((user.cache / "builds").glob(f"{entry.name}-{'[0-9a-f]' * 16}/complete.json"))
    return "ready" if ready and made else "installable"


def lacks(entry: ProcessEntry, user: RunAs) -> tuple[str, ...]:
    """Return the packages of the system that ``entry`` lacks; else the programs that are not there.

    A package that is not installed is not missed where all programs are there and work. A Python of its own
    that is not there comes last.
    """
    lacking = missing(entry.needs, find_system())
    if lacking and works(entry, user):
        return ()
    programs = find_programs(entry.install.programs, user)
    absent = lacking or tuple(name for name in entry.install.programs if name not in programs)
    return absent if has_python(entry, user) else (*absent, *wanted_python(entry))


def has_python(entry: ProcessEntry, user: RunAs) -> bool:
    """Return whether the Python of its own that ``entry`` asks for is on this machine; true without one."""
    version = entry.install.python if isinstance(entry.install, PythonInstall) else None
    return version is None or is_there(Children(user), user, version)


def installed_versions(entries: Iterable[ProcessEntry], user: RunAs) -> Mapping[str, str]:
    """Return the versions of those ``entries`` that are the system's own programs and work, by name."""
    found = [(entry.name, entry, entry.install) for entry in entries]
    asked = [
        (name, entry, install) for name, entry, install in found if install.version and entry.is_asked_for
    ]
    children = Children(user)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        tried = pool.map(lambda one: try_system(one[1], one[2], user, children).version, asked)
        return {name: version for (name, _, _), version in zip(asked, tried, strict=True) if version}


def works(entry: ProcessEntry, user: RunAs) -> bool:
    """Return whether the system's own programs are there and say their version; false for all others.

    Those of an entry that the user did not name are not started.
    """
    install = entry.install
    return (
        entry.is_asked_for
        and isinstance(install, SystemInstall)
        and try_system(entry, install, user, Children(user)).version is not None
    )


def _built(entry: ProcessEntry, user: RunAs) -> bool:
    lock = committed_lock(entry, ())
    if lock is None:
        return False
    folders = (user.cache / "environments").glob(f"{entry.name}-*")
    return any(_is_whole(folder, lock.text) for folder in folders)


def _is_whole(folder: Path, lock: str) -> bool:
    try:
        return (folder / "complete.json").is_file() and (folder / "lock.txt").read_text() == lock
    except OSError:
        return False
