"""Whether another user can reach a file: by owner, group and permission bits.

Ignores access control lists and security modules: programs that must run are tried instead.
"""

import os
import stat
from pathlib import Path

from prony.core.errors import HostError
from prony.core.users import RunAs

_READ, _WRITE, _SEARCH = 4, 2, 1


def first_unreadable(path: Path, user: RunAs) -> Path | None:
    """Return the first folder on the way to ``path``, or ``path`` itself, that ``user`` cannot enter; else
    None.
    """
    if not user.drop:
        return None if os.access(path, os.R_OK) else path
    resolved = path.resolve()
    for parent in reversed(resolved.parents):
        if not may(parent, user, _SEARCH):
            return parent
    wanted = _READ | _SEARCH if resolved.is_dir() else _READ
    return None if may(resolved, user, wanted) else resolved


def may(path: Path, user: RunAs, wanted: int) -> bool:
    """Return whether ``user`` has all permission bits ``wanted`` on ``path``: 4 read, 2 write, 1 execute."""
    try:
        status = path.stat()
    except OSError:
        return False
    mode = stat.S_IMODE(status.st_mode)
    if user.uid == 0:
        return True
    if status.st_uid == user.uid:
        granted = mode >> 6
    elif status.st_gid in {user.gid, *user.groups()}:
        granted = mode >> 3
    else:
        granted = mode
    return granted & wanted == wanted


def refuse_open_cache(user: RunAs) -> None:
    """Refuse a cache that ``user`` could exchange for another one, where Prony is root and owns it.

    *Errors*: HostError.
    """
    cache = user.cache.resolve()
    ours = (one for one in (cache, *cache.parents) if one.exists() and user.drop)
    theirs = next((one for one in ours if _may_exchange(one, user)), None)
    if theirs:
        raise HostError(
            f"servers run as the user `{user.name}`, who can change `{theirs}`, and with it Prony's cache "
            f"`{cache}`",
            hint="choose another place with the environment variable PRONY_CACHE, such as /var/cache/prony",
        )


def _may_exchange(folder: Path, user: RunAs) -> bool:
    status = folder.stat()
    # In a folder like /tmp only its owner exchanges what belongs to others.
    sticky = bool(status.st_mode & stat.S_ISVTX)
    return status.st_uid == user.uid or (not sticky and may(folder, user, _WRITE))
