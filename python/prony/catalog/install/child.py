"""Runs commands as the users that build and run servers, collects their output and sees that they end.

A build reaches the hosts of the package indices that the user has configured, for pip or uv, and the app's
folder, or a copy of it where its user cannot enter that.

>>> project_state(["six==1.17.0"], Path("/srv"))[:8]
'e3b0c442'
>>> sorted(hosts_in("https://me:word@mirror.example:8443/simple other"))
[('mirror.example', 8443)]
"""

import hashlib
import os
import re
import stat
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from errno import EACCES, EINTR, ENOSPC
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import BinaryIO
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies_environment

from prony.catalog.install.pip_settings import configuration_files, home_folder, uv_settings
from prony.catalog.schema.apps import SKIPPED
from prony.core.errors import HostError
from prony.core.trees import copy_file, walk
from prony.core.units import GIB
from prony.core.users import RunAs, builder_for, first_unreadable, keeper_for, own_folder
from prony.sandbox.building import BuildPlace, BuildTask, home_of, homes, run_build, why_no_builds
from prony.sandbox.journal import open_run
from prony.sandbox.pipe import Supervisor, SupervisorGoneError
from prony.sandbox.relay import Relay

# Each tool's own index, and where that has its files.
_USUAL = {
    "python": ("pypi.org", "files.pythonhosted.org"),
    "go": ("proxy.golang.org", "sum.golang.org"),
    "npm": ("registry.npmjs.org",),
    "rust": ("index.crates.io", "static.crates.io"),
}
_OF_SETTINGS = frozenset(
    (
        *("uv_default_index", "uv_index", "uv_index_url", "uv_extra_index_url", "uv_find_links"),
        *("goproxy", "gosumdb", "npm_config_registry"),
    )
)
_ADDRESS = re.compile(r"(https?)://(?:[^/@\s]*@)?([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::(\d+))?")
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Ways:
    """The ``hosts`` that a build may reach, and the user's own ``proxies`` on the way to them."""

    hosts: frozenset[tuple[str, int]] = frozenset()
    proxies: Mapping[str, str] = field(default_factory=dict)


def ways_out(environment: Mapping[str, str], more: Sequence[str] = ()) -> Ways:
    """Return what a build may reach by the settings in ``environment`` and in the configuration files.

    ``more``: the names of further hosts.
    """
    files = configuration_files(environment, home_folder())
    settings = {**environment, **uv_settings(environment, files)}
    values = [value for name, value in settings.items() if name.lower() in _OF_SETTINGS]
    values += [_text(file) for file in _uv_files(environment)]
    usual = {(host, 443) for hosts in _USUAL.values() for host in hosts}
    named = {address for value in values for address in hosts_in(value)}
    asked = {(host.lower(), port) for host in more for port in _PORTS.values()}
    return Ways(frozenset(usual | named | asked), _proxies(settings))


def hosts_in(text: str) -> frozenset[tuple[str, int]]:
    """Return the hosts and ports of the addresses in ``text``."""
    return frozenset(
        (host.strip("[]").lower(), int(port or _PORTS[scheme]))
        for scheme, host, port in _ADDRESS.findall(text)
    )


def _uv_files(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Return uv's configuration files. *Source*: uv, Configuration files."""
    chosen, base = environment.get("UV_CONFIG_FILE"), environment.get("XDG_CONFIG_HOME")
    own = Path(chosen) if chosen else (Path(base) if base else home_folder() / ".config") / "uv" / "uv.toml"
    return (own, Path("/etc/uv/uv.toml"))


def _text(file: Path) -> str:
    """Return the addresses in a file of uv's settings, whatever their keys are."""
    try:
        return str(tomllib.loads(file.read_text()))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return ""


def _proxies(settings: Mapping[str, str]) -> Mapping[str, str]:
    found = dict(getproxies_environment())
    if settings.get("ALL_PROXY"):
        found.setdefault("all", settings["ALL_PROXY"])
    return found


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

        ``stdin``: the file that is its standard input; None: none. ``by``: the user; None: the one that runs
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
        except ValueError as error:
            return FinishedCommand(126, "", f"error: {error}")
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


# --- an app's folder as packages are built from it --------------------------------------------------------


# Beyond it the copy takes longer than anybody waits.
_MOST_BYTES = GIB
_MOST_FILES = 200_000


def project_state(lines: Iterable[str], folder: Path) -> str:
    """Return a digest of the folders that the lines of a lock name: of each file's path, size and time.

    *Errors*: OSError; ValueError for what is no path, and for more files than are looked at.
    """
    digest = hashlib.sha256()
    named = dict.fromkeys(filter(None, (_path_in(line, folder) for line in lines)))
    # A stranger's build can write any number of lines, each with the whole machine.
    outermost = [path for path in named if named.keys().isdisjoint(path.parents)]
    for number, file in enumerate(chain(outermost, chain.from_iterable(map(_files, outermost)))):
        if number > _MOST_FILES:
            raise ValueError(f"it names more than {_MOST_FILES:,} files")
        if number >= len(outermost):
            found = file.lstat()
            digest.update(f"{file}\0{found.st_size}\0{found.st_mtime_ns}\n".encode(errors="replace"))
    return digest.hexdigest()


def readable_project(folder: Path, user: RunAs, copy: Path) -> Path:
    """Return ``folder``, or ``copy`` with its files if ``user`` cannot enter it: those that anybody may read.

    *Errors*: OSError; ValueError when it is too large.
    """
    if first_unreadable(folder, user) is None:
        return folder
    left = _MOST_BYTES
    for file in _files(folder):
        if stat.S_ISREG(file.lstat().st_mode):
            left -= copy_file(folder, file, copy / file.relative_to(folder))
        if left < 0:
            raise ValueError(
                f"`{folder}` is too large to copy, and `{user.name}`, who builds, cannot enter it"
            )
    return copy


def _path_in(line: str, folder: Path) -> Path | None:
    """Return what a line of a lock names on this machine; None: a package, or something elsewhere.

    >>> _path_in("-e ./mine", Path("/srv")), _path_in("mine @ file:///opt/mine", Path("/srv"))
    (PosixPath('/srv/mine'), PosixPath('/opt/mine'))
    >>> _path_in("mine @ file:mine.zip --hash=sha256:0", Path("/srv")), _path_in("six==1.17.0", Path("/srv"))
    (PosixPath('/srv/mine.zip'), None)
    """
    name = line.removeprefix("-e ").partition(" @ ")[2] or line.removeprefix("-e ")
    word = name.partition(" ")[0].partition("#")[0].replace("${PROJECT_ROOT}", str(folder))
    if word.startswith("file:"):
        word = unquote(urlsplit(word).path)
    return None if "==" in word or "://" in word else Path(os.path.normpath(folder / word))


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    for inner, folders, names in walk(path):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        yield from (Path(inner, name) for name in sorted(names))
