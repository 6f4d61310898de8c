"""A case of the wild set: its folder, its commands filled in, its helpers and what it prepares."""

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PRONY = HERE.parent.parent / "prony"
PLACES = {
    "database": os.environ.get("WILD_DATABASE", "postgresql://wild@127.0.0.1:5499/wild"),
    "admin": os.environ.get("WILD_ADMIN", "postgresql://postgres@127.0.0.1:5499/postgres"),
    "redis": os.environ.get("WILD_REDIS", "redis://127.0.0.1:6399"),
    "helpers": str(HERE / "helpers"),
    "venv": os.environ.get("VIRTUAL_ENV", sys.prefix),
}


PARTS = {
    "open": "open half",
    "sealed": "sealed half",
    "second": "second set",
    "third": "third set",
    "fourth": "fourth set",
    "fifth": "fifth set",
    "sixth": "sixth set",
}
"""What `half` of a case may be, and how it is named in what is published."""


@dataclass(frozen=True)
class Case:
    """One case: what its `case.toml` holds, with its fault or with its cure."""

    name: str
    toml: dict[str, Any]
    cured: bool = False

    @property
    def cure(self) -> dict[str, Any]:
        """What the cure turns; empty for the case as it is."""
        return self.toml["cure"] if self.cured else {}

    def of_start(self, key: str) -> Any:
        """Return a command, or a list of them, as it is typed; None where there is none."""
        return self.cure.get(key, self.toml["start"].get(key))

    @property
    def env(self) -> dict[str, str]:
        """Variables of the start and of the cure, not filled in."""
        return {**self.toml["start"].get("env", {}), **self.cure.get("env", {})}


def case_of(name: str, cured: bool = False) -> Case:
    """Read the case of this name."""
    return Case(name, tomllib.loads((HERE / "cases" / name / "case.toml").read_text()), cured)


def names_of(half: str) -> list[str]:
    """Return the names of the cases of a half, in order."""
    folders = sorted(path.parent.name for path in HERE.glob("cases/*/case.toml"))
    return [name for name in folders if case_of(name).toml["half"] == half]


@contextlib.contextmanager
def scene(case: Case, port: int = 0) -> Iterator[tuple[Path, dict[str, str], dict[str, str]]]:
    """Copy the case, prepare it, start its helpers; yield its folder, what fills commands, and variables."""
    scratch = Path(tempfile.mkdtemp(prefix="wild-", dir=os.environ.get("WILD_SCRATCH")))
    scratch.chmod(0o755)
    folder, log = scratch / "app", scratch / "log"
    shutil.copytree(HERE / "cases" / case.name, folder)
    fill = {**PLACES, "scratch": str(scratch), "folder": str(folder), "port": str(port)}
    env = {**os.environ, "PORT": str(port), "HOST": "127.0.0.1", "NODE_ENV": "production"}
    env |= {key: value.format(**fill) for key, value in case.env.items()}
    running: list[subprocess.Popen[bytes]] = []
    try:
        for command in case.toml["start"].get("prepare", []) + case.cure.get("prepare", []):
            words = shlex.split(command.format(**fill))
            subprocess.run(words, cwd=folder, env=env, check=True, stdout=subprocess.DEVNULL)
        running.extend(
            start(f"{HERE}/helpers/{command}".format(**fill), folder, env, log)
            for command in case.of_start("helpers") or []
        )
        time.sleep(0.5)
        yield folder, fill, env
    finally:
        for process in reversed(running):
            stop(process)
        shutil.rmtree(scratch, ignore_errors=True)


def start(command: str, folder: Path, env: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own."""
    with log.open("ab") as out:
        words = shlex.split(command)
        return subprocess.Popen(words, cwd=folder, env=env, stdout=out, stderr=out, start_new_session=True)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a session: asked first, then forced."""
    for sent in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, sent)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1)


def json_of(words: list[str]) -> dict[str, Any]:
    """Run one of Prony's commands and return its JSON; end with its words where there is none."""
    done = subprocess.run([PRONY, *words], check=False, capture_output=True, text=True)
    if not done.stdout.startswith("{"):
        sys.exit(done.stdout + done.stderr)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
