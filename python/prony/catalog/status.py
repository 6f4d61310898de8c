"""Whether a server can be measured here: at once, after an installation, or not without a system's package.

Must not know how environments are built.
"""

from pathlib import Path

from prony.catalog.entry import ServerEntry
from prony.catalog.resolve import committed_lock
from prony.catalog.system import find_system, missing
from prony.runas import RunAs, resolve_user

__all__ = ["status"]


def status(entry: ServerEntry, user: RunAs | None = None) -> str:
    """Return ``ready``, ``installable`` or ``needs: ...`` with the system's packages that are missing.

    ``ready``: an environment with the server's own lock is in the cache of ``user``.
    """
    lacking = missing(entry.needs, find_system())
    if lacking:
        return f"needs: {', '.join(lacking)}"
    return "ready" if _built(entry, user or resolve_user()) else "installable"


def _built(entry: ServerEntry, user: RunAs) -> bool:
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
