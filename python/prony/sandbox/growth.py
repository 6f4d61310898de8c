"""Whether a subject's files have become too large: looked at ten times a second, for two microseconds each.

No quota is at hand for an ordinary folder, and a file system in memory would change what is measured. Runs in
the supervisor. Standard library only. Must not know what the files are.

>>> Growth((), None).is_exceeded(list)
False
"""

import contextlib
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

_BLOCK_BYTES = 512
# How long to wait after a look at all files: others may fill the same file system.
_PAUSE_S = 1.0


class Growth:
    """Watches ``folders``, all of one file system; without any it watches nothing."""

    def __init__(self, folders: Sequence[str], most_bytes: int | None) -> None:
        self._folders = folders
        self._most_bytes = most_bytes or 0
        self._used = _used_bytes(folders[0]) if folders else 0
        self._next_s = 0.0

    def is_exceeded(self, pids: Callable[[], Iterable[int]]) -> bool:
        """Return whether the folders, with what ``pids`` hold open after its removal, are too large."""
        if not self._folders or time.monotonic() < self._next_s:
            return False
        # One question to the file system, as long as nobody has filled it.
        if _used_bytes(self._folders[0]) - self._used <= self._most_bytes:
            return False
        self._next_s = time.monotonic() + _PAUSE_S
        found = {key: size for folder in self._folders for key, size in _files_below(folder)}
        for pid in pids():
            found |= dict(_removed_files_of(pid, os.lstat(self._folders[0]).st_dev))
        return sum(found.values()) > self._most_bytes


def _used_bytes(folder: str) -> int:
    try:
        found = os.statvfs(folder)
    except OSError:
        return 0
    return (found.f_blocks - found.f_bfree) * found.f_frsize


def _files_below(folder: str) -> Iterator[tuple[tuple[int, int], int]]:
    """Yield each file, by its identity, with its bytes on the disk."""
    for path, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                yield _sized(os.lstat(f"{path}/{name}"))


def _removed_files_of(pid: int, device: int) -> Iterator[tuple[tuple[int, int], int]]:
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
            with contextlib.suppress(OSError):
                found = os.stat(f"/proc/{pid}/fd/{name}")  # noqa: PTH116
                if stat.S_ISREG(found.st_mode) and found.st_dev == device and not found.st_nlink:
                    yield _sized(found)


def _sized(found: os.stat_result) -> tuple[tuple[int, int], int]:
    return (found.st_dev, found.st_ino), found.st_blocks * _BLOCK_BYTES
