"""Compiles or generates an entry's product from its files: once, in the cache, as the user of the servers.

A product is identified by all its inputs: the files, the commands, the programs' versions, and the app if the
commands read it. Must not know how environments are chosen.
"""

import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from prony.catalog.install.child import Children, FinishedCommand
from prony.catalog.install.uv import cause, last_words, tool_environment
from prony.catalog.schema.entry import Build, BuildStep, ProcessEntry
from prony.catalog.schema.template import fill
from prony.runas import RunAs, own_folder

__all__ = ["Making", "NotMade", "locked", "make"]

# Part of every product's name: increase it when products are made in another way.
_RECIPE = "1"
_MARK = "complete.json"
_SKIPPED = {"__pycache__"}


@dataclass(frozen=True, slots=True)
class Making:
    """What to build: ``values`` fill the commands' placeholders, ``made_from`` identifies the inputs."""

    entry: ProcessEntry
    build: Build
    values: Mapping[str, str]
    made_from: str


@dataclass(frozen=True, slots=True)
class NotMade:
    """Why there is no product, and the last lines of the output."""

    reason: str
    log: str


def make(making: Making, user: RunAs, children: Children, on_build: Callable[[], None]) -> Path | NotMade:
    """Return the folder with the product: from the cache, or built now.

    *Errors*: OSError when the cache cannot be written.
    """
    try:
        return _made_or_kept(making, user, children, on_build)
    except ValueError as error:
        return NotMade(f"`{making.entry.name}` cannot be built: {error}", "")


def _made_or_kept(
    making: Making, user: RunAs, children: Children, on_build: Callable[[], None]
) -> Path | NotMade:
    folder = user.cache / "builds" / f"{making.entry.name}-{_digest(making)[:16]}"
    with locked(folder, children):
        if not (folder / _MARK).is_file():
            on_build()
            failure = _made(making, folder, user, children)
            if failure:
                shutil.rmtree(folder, ignore_errors=True)
                return failure
        return folder / "out"


@contextmanager
def locked(folder: Path, children: Children) -> Iterator[None]:
    """Lock ``folder`` within the block, so that no other Prony builds it; create its parent."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.parent.chmod(0o755)
    with folder.with_name(f".{folder.name}.lock").open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                children.check()
                time.sleep(0.1)
        yield


def _made(making: Making, folder: Path, user: RunAs, children: Children) -> NotMade | None:
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir()
    folder.chmod(0o755)
    source, out = _copied(making.entry, folder, user), own_folder(folder / "out", user)
    values = {**making.values, "source": str(source), "build": str(out)}
    environment = tool_environment(user)
    for step in making.build.steps:
        done = _run(step, values, environment, source, children)
        if not done.ok:
            reason = f"`{making.entry.name}` cannot be built: {cause(done)}"
            return NotMade(reason, last_words(done))
    if not (out / making.build.product).exists():
        return NotMade(
            f"`{making.entry.name}` cannot be built: the commands did not create `{making.build.product}`", ""
        )
    shutil.rmtree(source)
    mark = folder / _MARK
    mark.write_text(json.dumps({"made_from": making.made_from}))
    mark.chmod(0o644)
    return None


def _run(
    step: BuildStep,
    values: Mapping[str, str],
    environment: Mapping[str, str],
    folder: Path,
    children: Children,
) -> FinishedCommand:
    command = [fill(word, values) for word in step.run]
    file = Path(fill(step.stdin, values)) if step.stdin else None
    return children.run(command, environment, folder, file)


def _copied(entry: ProcessEntry, folder: Path, user: RunAs) -> Path:
    """Return a copy of the entry's files that belongs to the user; it is complete before the owner changes.

    *Errors*: OSError; ValueError for a link, which could point anywhere.
    """
    source = folder / "source"
    source.mkdir()
    for path in _files(entry.folder):
        target = source / path.relative_to(entry.folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target, follow_symlinks=False)
        target.chmod(0o755 if os.access(path, os.X_OK) else 0o644)
    for path in [*source.rglob("*"), source]:
        if path.is_dir():
            path.chmod(0o755)
        if user.drop:
            os.chown(path, user.uid, user.gid, follow_symlinks=False)
    return source


def _files(folder: Path) -> list[Path]:
    found = sorted(path for path in folder.rglob("*") if not _SKIPPED & set(path.relative_to(folder).parts))
    link = next((path for path in found if path.is_symlink()), None)
    if link is not None:
        raise ValueError(f"`{link}` is a link; expected ordinary files and folders next to the entry")
    return [path for path in found if path.is_file()]


def _digest(making: Making) -> str:
    digest = hashlib.sha256(f"{_RECIPE}\n{making.build.model_dump_json()}\n{making.made_from}\n".encode())
    folder = making.entry.folder
    for file in _files(folder):
        digest.update(f"{file.relative_to(folder).as_posix()}\n".encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()
