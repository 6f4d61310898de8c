"""Whether a server can be measured here: now, after an installation, or only with system packages."""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from glob import escape
from pathlib import Path

from prony.catalog.install.child import Children
from prony.catalog.install.interpreter import is_there
from prony.catalog.install.resolve import committed_lock
from prony.catalog.install.system import find_programs, find_system, missing, try_system, wanted_python
from prony.catalog.schema.entry import ProcessEntry, PythonInstall, SystemInstall
from prony.core.errors import explained
from prony.core.trees import remove_tree, sizes
from prony.core.users import RunAs, resolve_user
from prony.model.subject import INSTALLABLE, READY, Availability

# How many programs to ask for their version at a time: each takes a tenth of a second.
_AT_ONCE = 4


def status(entry: ProcessEntry, user: RunAs | None = None) -> Availability:
    """Return whether ``entry`` can be measured on this machine, or what the system lacks.

    ``ready``: for a Python server its environment is in the cache of ``user``, with its own lock; its build,
    if any, is done.
    """
    user = user or resolve_user()
    lacking = lacks(entry, user)
    if lacking:
        return Availability.lacking(*lacking)
    match entry.install:
        case PythonInstall(build=build):
            ready = _built(entry, user)
        case SystemInstall(build=build):
            ready = True
    made = build is None or any((user.cache / "builds").glob(f"{_kept(entry, user)}/complete.json"))
    return READY if ready and made else INSTALLABLE


def lacks(entry: ProcessEntry, user: RunAs) -> tuple[str, ...]:
    """Return the system packages that ``entry`` lacks; else the missing programs.

    A package is not missing if all programs exist and work without it. A missing Python of its own comes
    last.
    """
    lacking = missing(entry.needs, find_system())
    if lacking and works(entry, user):
        return ()
    programs = find_programs(entry.install.programs, user)
    absent = lacking or tuple(name for name in entry.install.programs if name not in programs)
    return absent if has_python(entry, user) else (*absent, *wanted_python(entry))


def has_python(entry: ProcessEntry, user: RunAs) -> bool:
    """Return whether the Python version that ``entry`` needs is on this machine; true if it needs none."""
    version = entry.install.python if isinstance(entry.install, PythonInstall) else None
    return version is None or is_there(Children(user), user, version)


def installed_versions(entries: Iterable[ProcessEntry], user: RunAs) -> Mapping[str, str]:
    """Return the versions of those ``entries`` that the system installs and that work, by name."""
    found = [(entry.name, entry, entry.install) for entry in entries]
    asked = [
        (name, entry, install) for name, entry, install in found if install.version and entry.is_asked_for
    ]
    children = Children(user)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        tried = pool.map(lambda one: try_system(one[1], one[2], user, children).version, asked)
        return {name: version for (name, _, _), version in zip(asked, tried, strict=True) if version}


def works(entry: ProcessEntry, user: RunAs) -> bool:
    """Return whether the system's programs exist and print their version; false for other entries.

    Programs of an entry that the user did not name are not started.
    """
    install = entry.install
    return (
        entry.is_asked_for
        and isinstance(install, SystemInstall)
        and try_system(entry, install, user, Children(user)).version is not None
    )


def _kept(entry: ProcessEntry, user: RunAs) -> str:
    """Return the pattern of the names of what is kept of ``entry`` for ``user``."""
    # A digest has 16 digits: another entry's name may begin with this one's.
    return f"{entry.name}-{'[0-9a-f]' * 16}-{escape(user.name)}"


@explained(
    "cannot look for servers in the cache", "choose another place with PRONY_CACHE, or open the folder"
)
def _built(entry: ProcessEntry, user: RunAs) -> bool:
    lock = committed_lock(entry, ())
    if lock is None:
        return False
    folders = (user.cache / "environments").glob(_kept(entry, user))
    return any(_is_whole(folder, lock.text) for folder in folders)


def _is_whole(folder: Path, lock: str) -> bool:
    try:
        return (folder / "complete.json").is_file() and (folder / "lock.txt").read_text() == lock
    except OSError:
        return False


# --- lists and removes the content of Prony's cache -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CacheItem:
    """One folder of the cache. ``kind`` is its parent folder, such as ``environments``."""

    kind: str
    path: Path
    size_bytes: int


@explained("cannot look into the cache", "open its folders, or choose another place with PRONY_CACHE")
def cache_items(cache: Path) -> tuple[CacheItem, ...]:
    """Return the content of ``cache``, by kind and name. Files with several names count once.

    *Errors*: HostError when it cannot be read.
    """
    kinds = sorted(path for path in cache.iterdir() if path.is_dir()) if cache.is_dir() else []
    return tuple(
        CacheItem(kind.name, path, sum(sizes(path).values()))
        for kind in kinds
        for path in sorted(kind.iterdir())
        if path.is_dir()
    )


def remove(item: CacheItem) -> bool:
    """Remove one item; false when a part of it could not be removed."""
    with suppress(OSError):
        remove_tree(item.path)
    return not item.path.exists()
