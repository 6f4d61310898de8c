"""How long reading an archive may take: no content of a file can make its reader hang.

CPU time of this thread, within the archive's own calls: a busy machine, a stopped process, and the analysis
between two trials do not count. An archive of real trials takes a twentieth of it.
"""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prony.errors import ArchiveError
from prony.units import MIB

_AT_LEAST_S = 8.0
_FOR_EACH_MIB_S = 2.0
_AT_MOST_S = 600.0
# Steps of SQLite's virtual machine between two looks: about a millisecond.
_STEPS = 10_000


class Deadline:
    """The time that is left for the file at ``path``: 8 s and 2 s for each MiB, at most 10 minutes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        size_bytes = path.stat().st_size
        self._allowed_s = min(_AT_LEAST_S + _FOR_EACH_MIB_S * size_bytes / MIB, _AT_MOST_S)
        self._left_s = self._allowed_s
        self._since_s: float | None = None

    def watch(self, database: sqlite3.Connection) -> None:
        """Let SQLite give up a statement of this connection when the time is over."""
        database.set_progress_handler(lambda: int(self._is_over()), _STEPS)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Let the time run within the block.

        *Errors*: ArchiveError when it is over, also at the block's end.
        """
        self._since_s = time.thread_time()
        try:
            yield
        except sqlite3.OperationalError as error:
            if self._is_over():
                raise self._refusal() from error
            raise
        finally:
            self._left_s -= time.thread_time() - self._since_s
            self._since_s = None
        if self._left_s < 0:
            raise self._refusal()

    def _is_over(self) -> bool:
        return self._since_s is not None and time.thread_time() - self._since_s > self._left_s

    def _refusal(self) -> ArchiveError:
        return ArchiveError(
            f"`{self._path}` takes too long to read: expected at most {self._allowed_s:.0f} s of CPU "
            "time for a file of its size"
        )
