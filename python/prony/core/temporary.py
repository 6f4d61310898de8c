"""Folders for a while: they go with their block, and what a killed process left goes with the next one.

Each is locked for as long as it is used. Standard library and trees only.

>>> with temporary_folder("target") as folder:
...     folder.is_dir()
True
>>> folder.exists()
False
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import gettempdir, mkdtemp
from typing import Literal, get_args

from prony.core.trees import remove_tree

Kind = Literal["fleet", "target", "engine", "stacks", "copy", "probe", "resolve"]
_KINDS: tuple[Kind, ...] = get_args(Kind)


@contextlib.contextmanager
def temporary_folder(kind: Kind, below: Path | None = None) -> Iterator[Path]:
    """Yield a new folder in ``below``, or where the system keeps such; remove what killed ones left there.

    *Errors*: OSError when it cannot be made.
    """
    place = below or Path(gettempdir())
    clear_temporary(place)
    folder, lock = _locked(kind, place)
    try:
        yield folder
    finally:
        with contextlib.suppress(OSError):
            remove_tree(folder)
        os.close(lock)


def clear_temporary(place: Path | None = None) -> int:
    """Remove the folders of processes of this user that are gone, and return how many there were."""
    cleared = 0
    for folder in [one for kind in _KINDS for one in (place or Path(gettempdir())).glob(f"prony-{kind}-*")]:
        with contextlib.suppress(OSError):
            lock = _opened(folder)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # A generator's belongs to the user that it runs as.
                if os.geteuid() in (0, os.fstat(lock).st_uid):
                    remove_tree(folder)
                    cleared += 1
            finally:
                os.close(lock)
    return cleared


def _locked(kind: Kind, place: Path) -> tuple[Path, int]:
    while True:
        folder = Path(mkdtemp(prefix=f"prony-{kind}-", dir=place))
        # Before it is locked, another process may take it for one that was left.
        with contextlib.suppress(FileNotFoundError):
            lock = _opened(folder)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.exists():
                return folder, lock
            os.close(lock)


def _opened(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
