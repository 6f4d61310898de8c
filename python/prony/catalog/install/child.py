"""Runs commands as the users that build and run servers; collects their output and makes sure that they end.

Must not know what they do.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from errno import EACCES, EINTR, ENOSPC
from pathlib import Path
from threading import Lock
from typing import BinaryIO

from prony.catalog.install.access import first_unreadable
from prony.catalog.install.indices import Ways, ways_out
from prony.catalog.install.project import readable_project
from prony.errors import HostError
from prony.runas import RunAs, builder_for, keeper_for, own_folder
from prony.sandbox.building import BuildPlace, BuildTask, home_of, homes, run_build, why_no_builds
from prony.sandbox.journal import open_run
from prony.sandbox.pipe import Supervisor, SupervisorGoneError
from prony.sandbox.relay import Relay


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
    """Runs commands in threads, as ``user``, its ``builder`` or its ``keeper``; `end` kills what still runs.

    Each command has a supervisor, which ends it with its children when Prony ends, also where that is killed.
    What a stranger wrote is run by `build` and `tried` alone.
    """

    user: RunAs
    _running: set[Supervisor] = field(default_factory=set)
    _lock: Lock = field(default_factory=Lock)
    _ended: bool = False

    @property
    def builder(self) -> RunAs:
        """The user that builds what ``user`` runs.

        *Errors*: HostError when there is none.
        """
        return builder_for(self.user)

    @property
    def keeper(self) -> RunAs:
        """The user that fetches what need not be built."""
        return keeper_for(self.user)

    def build(self, task: BuildTask, stdin: Path | None = None) -> FinishedCommand:
        """Run a command of a build, as the user that builds: in the sandbox, with a home that goes with it.

        It reaches the configured package indices. Where nothing can be confined it is refused, unless the
        user trusts it.

        *Errors*: HostError, OSError.
        """
        lacking = None if self.user.build.trusted else why_no_builds()
        if lacking:
            return FinishedCommand(126, "", _refusal(lacking))
        if self.user.build.trusted:
            return self._trusted(task, stdin)
        return self._supervised(task, self.builder, ways_out(os.environ, self.user.build.hosts), stdin)

    def tried(self, task: BuildTask, *, by: RunAs | None = None) -> FinishedCommand:
        """Run a command that only tries or compiles what was built: confined and without a network, where
        that is possible.

        *Errors*: HostError, OSError.
        """
        user = by or self.user
        if self.user.build.trusted or why_no_builds():
            return self.run(task.command, task.environment, task.folder, by=user)
        return self._supervised(task, user, Ways(), None)

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

        *Errors*: HostError, OSError.
        """
        return self._supervised(BuildTask(command, environment, folder), by or self.user, None, stdin)

    def end(self) -> None:
        """Kill all running commands, and start no more."""
        with self._lock:
            self._ended = True
            running = tuple(self._running)
        for supervisor in running:
            supervisor.kill()

    def check(self) -> None:
        """Return, unless `end` was called.

        *Errors*: InterruptedError.
        """
        if self._ended:
            raise InterruptedError(EINTR, "was interrupted")

    def _supervised(
        self, task: BuildTask, user: RunAs, ways: Ways | None, stdin: Path | None
    ) -> FinishedCommand:
        """Run a command to its end, once more where its supervisor was killed; ``ways``: out of the sandbox
        in which it runs; None: it runs in none.
        """
        try:
            return self._once(task, user, ways, stdin)
        except SupervisorGoneError:
            return self._once(task, user, ways, stdin)

    def _once(self, task: BuildTask, user: RunAs, ways: Ways | None, stdin: Path | None) -> FinishedCommand:
        started: list[Supervisor] = []

        def note(supervisor: Supervisor) -> None:
            started.append(supervisor)
            with self._lock:
                self._running.add(supervisor)
                ended = self._ended
            if ended:
                supervisor.kill()

        self.check()
        try:
            given = _opened_as(user, stdin or Path(os.devnull))
        except OSError as error:
            return FinishedCommand(127, "", f"{task.command[0]}: {error.strerror}")
        try:
            reached = Relay(ways.hosts, ways.proxies) if ways else nullcontext()
            with given, open_run(self.user) as run, reached as relay:
                if relay is not None:
                    task = _with_readable_project(task, user, own_folder(home_of(run), user, 0o700))
                end = run_build(task, user, BuildPlace(run, relay, given), note)
        except HostError:
            self.check()
            raise
        finally:
            with self._lock:
                self._running.difference_update(started)
        self.check()
        refused = _unreached(relay.refused) if relay and end.status else ""
        return FinishedCommand(end.status, end.output, "\n".join(filter(None, (end.log, refused))))

    def _trusted(self, task: BuildTask, stdin: Path | None) -> FinishedCommand:
        with open_run(self.user) as run:
            home = own_folder(home_of(run), self.builder, 0o700)
            environment = {**task.environment, **homes(home)}
            return self.run(task.command, environment, task.folder, stdin, by=self.builder)


def _opened_as(user: RunAs, file: Path) -> BinaryIO:
    """Return a file, open, if ``user`` may read it: with root's rights Prony could open anyone's, also by a
    link.

    *Errors*: PermissionError, OSError.
    """
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    opened = os.fdopen(descriptor, "rb")
    # Checks the open file, not its name: someone could replace the file in between.
    if user.drop and first_unreadable(Path(f"/proc/self/fd/{descriptor}").readlink(), user):
        opened.close()
        raise PermissionError(EACCES, os.strerror(EACCES))
    return opened


def _with_readable_project(task: BuildTask, user: RunAs, home: Path) -> BuildTask:
    """Return the task in a folder that ``user`` can enter: if need be a copy of the app's, in its home."""
    if task.covered is None:
        return task
    project = readable_project(task.covered, user, own_folder(home / "project", user))
    if project == task.covered:
        return task
    for path in project.rglob("*"):
        os.chown(path, user.uid, user.gid, follow_symlinks=False)
    return replace(task, folder=project, covered=None)


def _refusal(lacking: str) -> str:
    return (
        f"error: packages are built only where they can be confined, and here they cannot: {lacking}; "
        "`--trust-build` builds them with all that this user may do"
    )


def _unreached(hosts: Sequence[str]) -> str:
    if not hosts:
        return ""
    names = ", ".join(f"`{host}`" for host in hosts[:5])
    return (
        f"error: the build asked for {names}: no configured package index; "
        f"`--build-limits host={hosts[0].partition(':')[0]}` lets it"
    )
