"""Whether a server can be measured here: at once, after an installation, or not without a system's package.

Must not know how environments are built.
"""

from pathlib import Path

from prony.catalog.child import Children
from prony.catalog.entry import ProcessEntry, PythonInstall, SystemInstall
from prony.catalog.programs import find_programs, try_system
from prony.catalog.resolve import committed_lock
from prony.catalog.system import find_system, missing
from prony.runas import RunAs, resolve_user

__all__ = ["lacks", "status", "works"]


def status(entry: ProcessEntry, user: RunAs | None = None) -> str:
    """Return ``ready``, ``installable`` or ``needs: ...`` with the system's packages that are missing.

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
    made = build is None or any((user.cache / "builds").glob(f"{entry.name}-*/complete.json"))
    return "ready" if ready and made else "installable"


def lacks(entry: ProcessEntry, user: RunAs) -> tuple[str, ...]:
    """Return the packages of the system that ``entry`` lacks; else the programs that are not there.

    A package that is not installed is not missed where all programs are there and work.
    """
    lacking = missing(entry.needs, find_system())
    if lacking and works(entry, user):
        return ()
    programs = find_programs(entry.install.programs, user)
    return lacking or tuple(name for name in entry.install.programs if name not in programs)


def works(entry: ProcessEntry, user: RunAs) -> bool:
    """Return whether the system's own programs are there and say their version; false for all others."""
    install = entry.install
    return (
        isinstance(install, SystemInstall)
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
