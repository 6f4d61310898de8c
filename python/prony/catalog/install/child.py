"""Runs commands as the users that build and run servers; collects their output and makes sure that they end.

Must not know what they do.
"""

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from errno import EACCES, EINTR, ENOSPC
from pathlib import Path
from threading import Lock
from typing import BinaryIO

from prony.catalog.install.access import first_unreadable
from prony.runas import RunAs, builder_for


@dataclass(frozen=True, slots=True)
class FinishedCommand:
    """A finished command. ``output`` is its standard output, ``log`` its standard error."""

    status: int
    output: str
    log: str

    @property
    def ok(self) -> bool:
        """Whether it succeeded."""
        return self.status == 0

    def check_room(self, folder: Path) -> None:
        """Return, unless it failed because no space is left: then nothing else can be built in ``folder``.

        *Errors*: OSError.
        """
        if not self.ok and os.strerror(ENOSPC) in self.log:
            raise OSError(ENOSPC, os.strerror(ENOSPC), str(folder))


@dataclass(slots=True)
class Children:
    """Runs commands in threads, as ``user`` or as its ``builder``; `end` kills all that still run.

    Each command has a process group of its own, so that its children end with it.
    """

    user: RunAs
    _running: set[subprocess.Popen[str]] = field(default_factory=set)
    _lock: Lock = field(default_factory=Lock)
    _ended: bool = False

    @property
    def builder(self) -> RunAs:
        """The user that builds what ``user`` runs.

        *Errors*: HostError when there is none.
        """
        return builder_for(self.user)

    def run(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        stdin: Path | None = None,
        *,
        by: RunAs | None = None,
    ) -> FinishedCommand:
        """Run ``command`` in ``folder`` and return how it ended; status 127: it cannot be started.

        ``stdin``: the file that is its standard input; null: none. ``by``: the user; null: the one that runs
        servers.
        """
        user = by or self.user
        try:
            with _opened_as(user, stdin or Path(os.devnull)) as given:
                process = self._start(command, environment, folder, given, user)
        except OSError as error:
            return FinishedCommand(127, "", f"{command[0]}: {error.strerror}")
        try:
            output, log = process.communicate()
        finally:
            with self._lock:
                self._running.discard(process)
        return FinishedCommand(process.returncode, output, log)

    def end(self) -> None:
        """Kill all running commands, and start no more."""
        with self._lock:
            self._ended = True
            running = tuple(self._running)
        for process in running:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)

    def check(self) -> None:
        """Return, unless `end` was called.

        *Errors*: InterruptedError.
        """
        if self._ended:
            raise InterruptedError(EINTR, "was interrupted")

    def _start(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        stdin: BinaryIO,
        user: RunAs,
    ) -> subprocess.Popen[str]:
        with self._lock:
            self.check()
            process = subprocess.Popen(
                list(command),
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                cwd=folder,
                env=dict(environment),
                start_new_session=True,
                umask=0o022,
                user=user.uid if user.drop else None,
                group=user.gid if user.drop else None,
                extra_groups=list(user.groups()) if user.drop else None,
            )
            self._running.add(process)
        return process


@contextmanager
def _opened_as(user: RunAs, file: Path) -> Iterator[BinaryIO]:
    """Open a file if ``user`` may read it: with root's rights Prony could open anyone's file, also by a link.

    *Errors*: PermissionError, OSError.
    """
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as opened:
        # Checks the open file, not its name: someone could replace the file in between.
        if user.drop and first_unreadable(Path(f"/proc/self/fd/{descriptor}").readlink(), user):
            raise PermissionError(EACCES, os.strerror(EACCES))
        yield opened
