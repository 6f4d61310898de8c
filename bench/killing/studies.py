"""The studies that are killed: where they run, as whom, and how they are started."""

import contextlib
import os
import pwd
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from killing.remains import reap

_TEXT = """\
format = 1
name = "killed"
title = "Two servers, briefly"

[[subjects]]
server = ["wsgiref", "gunicorn-embedded"]
app = ["hello"]

[[workloads]]
LOAD

[calibration]
duration = "300ms"
warmup = "100ms"

[profiles.quick]
blocks = BLOCKS
warmup = "100ms"
duration = "WINDOW"
timeout = "1s"
"""
# Of a server at its limit, in a long window, Prony looks at the code too.
_USUAL, _BUSY = ('loop = "open"\nrate = 100', "300ms"), ('loop = "closed"\nconnections = 8', "2s")
# A study takes seconds; the first one builds its servers.
_LONGEST_S = 300


def _text(blocks: int, load: tuple[str, str]) -> str:
    return _TEXT.replace("BLOCKS", str(blocks)).replace("LOAD", load[0]).replace("WINDOW", load[1])


@dataclass(frozen=True, slots=True)
class Person:
    """Who runs Prony."""

    name: str
    uid: int
    gid: int

    @property
    def changes(self) -> bool:
        """Whether the caller must become this user."""
        return self.uid != os.geteuid()

    @property
    def groups(self) -> list[int] | None:
        """The user's groups; null: as the caller's."""
        return os.getgrouplist(self.name, self.gid) if self.changes else None


def person(name: str | None) -> Person:
    """Return who runs Prony: the caller, or the user of this name."""
    entry = pwd.getpwnam(name) if name else pwd.getpwuid(os.geteuid())
    return Person(entry.pw_name, entry.pw_uid, entry.pw_gid)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended, what it said on standard error, and its process."""

    status: int
    said: str
    pid: int


@dataclass(frozen=True, slots=True)
class Where:
    """The folders of a person's studies."""

    folder: Path
    cache: Path
    person: Person
    sandbox: str
    program: tuple[str, ...] = ("-m", "prony")
    more: tuple[str, ...] = ()

    @classmethod
    def made(
        cls, folder: Path, person: Person, blocks: int = 2, sandbox: str = "auto", cache: Path | None = None
    ) -> Self:
        """Return ``folder`` with all that studies need in it, owned by the person."""
        folder.chmod(0o755)
        (folder / "study.toml").write_text(_text(blocks, _USUAL))
        for path in (folder, own := folder / "cache", folder / "temporary"):
            path.mkdir(exist_ok=True)
            os.chown(path, person.uid, person.gid)
        # Root's subjects, of another user, may need it too.
        (folder / "temporary").chmod(0o1777)
        return cls(folder, cache or own, person, sandbox)

    def changed(self, program: str | None, more: tuple[str, ...] = ()) -> "Where":
        """Return the same with a file that Python runs in Prony's place, and more words for each study."""
        return replace(self, program=(program,) if program else self.program, more=more)

    def busy(self, blocks: int) -> Self:
        """Return the same with servers at their limit, and long windows."""
        (self.folder / "study.toml").write_text(_text(blocks, _BUSY))
        return self

    def archive(self, name: str) -> Path:
        """Return the archive of a study of this name."""
        return self.folder / f"{name}.prony"

    def study(self, name: str, within: str = "", **variables: str | None) -> "Study":
        """Start the study; ``within``: what a shell does before, in mounts of its own."""
        file, out = str(self.folder / "study.toml"), str(self.archive(name))
        words = ("run", file, "--out", out, "--no-calibration", "--sandbox", self.sandbox, *self.more)
        return self.command(*words, said=f"said-{name}", within=within, **variables)

    def command(self, *words: str, said: str = "said", within: str = "", **variables: str | None) -> "Study":
        """Start a command of Prony's, with these variables, or (null) without."""
        file_of_it = self.folder / said
        command = [sys.executable, *self.program, *words]
        changes = self.person.changes and not within
        if within:
            who = f"--reuid={self.person.uid} --regid={self.person.gid} --clear-groups"
            script = f'{within}\nexec setpriv {who} "$@"'
            command = ["unshare", "--mount", "sh", "-ec", script, "sh", *command]
        with file_of_it.open("w") as file:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=file,
                cwd=self.folder,
                env=self._environment(variables),
                # A group of its own, as a shell gives it.
                start_new_session=True,
                user=self.person.uid if changes else None,
                group=self.person.gid if changes else None,
                extra_groups=self.person.groups if changes else None,
            )
        return Study(process, file_of_it)

    def _environment(self, variables: Mapping[str, str | None]) -> dict[str, str]:
        own: dict[str, str | None] = {
            "HOME": str(self.folder),
            "PRONY_CACHE": str(self.cache),
            "TMPDIR": str(self.folder / "temporary"),
        }
        both = {**os.environ, **own, **variables}
        return {name: value for name, value in both.items() if value is not None}

    def left_in_folders(self) -> frozenset[str]:
        """Return what nobody needs any more: folders of runs, temporary files, drafts beside archives."""
        left = (*(self.cache / "run").glob("*"), *(self.folder / "temporary").iterdir())
        return frozenset(map(str, (*left, *self.folder.glob(".*"))))


@dataclass(frozen=True, slots=True)
class Study:
    """A command that runs, in a process group of its own."""

    process: "subprocess.Popen[bytes]"
    said: Path

    @property
    def pid(self) -> int:
        """Prony's process."""
        return self.process.pid

    def kill_group(self) -> None:
        """Kill its process group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def kill(self, pid: int | None = None) -> None:
        """Kill one of its processes, Prony itself by default."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid or self.pid, signal.SIGKILL)

    def is_over(self) -> bool:
        """Return whether Prony has ended."""
        return self.process.poll() is not None

    def end(self) -> Ended:
        """Wait for its end."""
        status = self.process.wait(_LONGEST_S)
        reap()
        return Ended(status, self.said.read_text(errors="replace"), self.pid)
