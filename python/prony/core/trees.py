"""Trees of files that somebody else has made: walked, measured and removed, whatever their depth.

No function calls itself for a folder in a folder. Where a path would be longer than the kernel takes, folders
are entered and left one by one. Links are never followed. Standard library only.

>>> next(walk("/proc/self/no such folder"))
('/proc/self/no such folder', [], [])
"""

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_BLOCK_BYTES = 512
# No app and no environment has so many; to look at them takes seconds.
MOST_ENTRIES = 1_000_000
MOST_LEVELS = 200
_MOST_COPIED_BYTES = 1 << 30

FileKey = tuple[int, int]
"""Which file it is: its device, and its number there."""


def walk(folder: str | Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield each folder's path with the names of the folders and of all else in it, from above to below.

    As ``os.walk``, but links to folders are among the rest. Folders taken out of the list are not entered.

    *Errors*: OSError for a tree with more than `MOST_ENTRIES`, or that is deeper than `MOST_LEVELS`.
    """
    waiting = [(os.fspath(folder), 0)]
    left = MOST_ENTRIES
    while waiting:
        path, level = waiting.pop()
        folders, others = _listed(path)
        left -= len(folders) + len(others)
        if left < 0:
            raise OSError(errno.E2BIG, f"it has more than {MOST_ENTRIES:,} files", os.fspath(folder))
        yield path, folders, others
        if level == MOST_LEVELS and folders:
            raise OSError(errno.ENAMETOOLONG, f"it is deeper than {MOST_LEVELS} folders", os.fspath(folder))
        waiting += [(os.path.join(path, name), level + 1) for name in reversed(folders)]  # noqa: PTH118


def _listed(folder: str | int) -> tuple[list[str], list[str]]:
    folders: list[str] = []
    others: list[str] = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            (folders if entry.is_dir(follow_symlinks=False) else others).append(entry.name)
    return folders, others


def content(file: Path, most_bytes: int | None = None) -> bytes:
    """Return the bytes of an ordinary file: as many as it says to have. So none of /proc makes anybody wait.

    *Errors*: OSError, also for what is no ordinary file, or has more than ``most_bytes``.
    """
    with open(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as opened:  # noqa: PTH123
        status = os.fstat(opened.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is no file", str(file))
        if most_bytes is not None and status.st_size > most_bytes:
            raise OSError(errno.EFBIG, "it is too large", str(file))
        return opened.read(status.st_size)


def copy_file(folder: Path, file: Path, target: Path, mode: int = stat.S_IROTH) -> int:
    """Copy an ordinary file of ``folder`` that has the bits of ``mode``, with the folders above it; return
    its bytes. Nothing is done for another one.

    What was a folder when it was listed may be a link since: none is followed, on the way neither.

    *Errors*: OSError; ValueError for more than 1 GiB.
    """
    with _opened_in(folder, file.relative_to(folder)) as source:
        status = os.fstat(source.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_mode & mode != mode:
            return 0
        if status.st_size > _MOST_COPIED_BYTES:
            raise ValueError(f"`{file}` is too large to copy")
        target.parent.mkdir(parents=True, exist_ok=True)
        left = status.st_size
        with target.open("xb") as copy:
            while left and (sent := os.sendfile(copy.fileno(), source.fileno(), None, left)):
                left -= sent
        return status.st_size


def _opened_in(folder: Path, file: Path) -> BinaryIO:
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in file.parts[:-1]:
            above, place = place, os.open(name, _FOLDER, dir_fd=place)
            os.close(above)
        once = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        return cast(BinaryIO, os.fdopen(os.open(file.name, once, dir_fd=place), "rb", buffering=0))
    finally:
        os.close(place)


def beginning(file: str | Path, most_bytes: int) -> bytes:
    """Return the first bytes of a text of /proc: a process decides how long its command line and its list of
    mappings are, and that of an endless one costs it nothing (prctl(2), PR_SET_MM_MAP).

    *Errors*: OSError.
    """
    with open(file, "rb") as opened:  # noqa: PTH123
        return opened.read(most_bytes)


def sizes(folder: str | Path, enough: float = float("inf")) -> dict[FileKey, int]:
    """Return the bytes on the disk of each file and folder below ``folder``, of any depth; of some, where
    there are more than ``enough``.
    """
    found: dict[FileKey, int] = {}
    with contextlib.suppress(OSError):
        for _ in _each(os.fspath(folder), lambda place: _measured(place, found)):
            if len(found) > enough:
                break
    return found


def _measured(place: int, found: dict[FileKey, int]) -> list[str]:
    folders, others = _listed(place)
    for name in (*folders, *others):
        with contextlib.suppress(OSError):
            key, size = sized(os.lstat(name, dir_fd=place))
            found[key] = size
    return folders


def sized(status: os.stat_result) -> tuple[FileKey, int]:
    """Return a file's key, and its bytes on the disk."""
    return (status.st_dev, status.st_ino), status.st_blocks * _BLOCK_BYTES


def remove_tree(folder: Path) -> None:
    """Remove a folder and all below it, also what its owner has closed.

    *Errors*: OSError: the first that came, after all that can be removed is gone.
    """
    if folder.is_symlink():
        raise NotADirectoryError(errno.ENOTDIR, "it is a link", str(folder))
    failed: list[OSError] = []
    _opened(str(folder))
    for above, name in _each(str(folder), lambda place: _emptied(place, failed)):
        with _noted(failed):
            os.rmdir(name, dir_fd=above)
    with _noted(failed):
        folder.rmdir()
    if failed:
        raise failed[0]


def _emptied(place: int, failed: list[OSError]) -> list[str]:
    """Remove all but folders, and return the folders' names."""
    folders, others = _listed(place)
    for name in others:
        with _noted(failed):
            os.unlink(name, dir_fd=place)
    for name in folders:
        with _noted(failed):
            _opened(name, place)
    return folders


def _opened(name: str, above: int | None = None) -> None:
    # Only root may enter, and remove from, a folder that is closed. Nobody else can gain by an exchange.
    if os.geteuid() != 0:
        os.chmod(name, 0o700, dir_fd=above)


@contextlib.contextmanager
def _noted(failed: list[OSError]) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        return
    except OSError as error:
        failed.append(error)


def _each(folder: str, look: Callable[[int], list[str]]) -> Iterator[tuple[int, str]]:
    """Call ``look`` in each folder, which returns which of those in it to enter; yield each that was left, as
    the descriptor of the one above and its name.
    """
    place = _Place(folder)
    with contextlib.closing(place):
        waiting = [look(place.descriptor)]
        while True:
            if waiting[-1]:
                if place.enter(waiting[-1].pop()):
                    waiting.append(look(place.descriptor))
                continue
            waiting.pop()
            if not waiting:
                return
            name = place.leave()
            yield place.descriptor, name


class _Place:
    """A folder of a tree. Only ``descriptor`` is open; of the folders above it the names are kept."""

    def __init__(self, folder: str) -> None:
        self.descriptor = os.open(folder, _FOLDER)
        self._above: list[tuple[str, FileKey]] = []

    def enter(self, name: str) -> bool:
        """Go into a folder; false: it cannot be entered."""
        try:
            inner = os.open(name, _FOLDER, dir_fd=self.descriptor)
        except OSError:
            return False
        self._above.append((name, sized(os.fstat(self.descriptor))[0]))
        self._go(inner)
        return True

    def leave(self) -> str:
        """Go back, and return the name of the folder that was left. *Errors*: OSError when it was moved."""
        name, above = self._above.pop()
        self._go(os.open("..", _FOLDER, dir_fd=self.descriptor))
        if sized(os.fstat(self.descriptor))[0] != above:
            raise OSError(errno.ESTALE, "it was moved meanwhile", name)
        return name

    def close(self) -> None:
        """Close it."""
        os.close(self.descriptor)

    def _go(self, descriptor: int) -> None:
        os.close(self.descriptor)
        self.descriptor = descriptor
