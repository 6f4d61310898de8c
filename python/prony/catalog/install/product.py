"""Compiles or generates an entry's product from its files: once, in the cache, as the user that builds.

A product is identified by all its inputs: the files, the commands, the programs' versions, and the app if the
commands read it.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from prony.catalog.install.child import Children
from prony.catalog.install.seal import change_since, filling, locked, read_mark, seal, write_mark
from prony.catalog.install.uv import build_environment, cause, last_words
from prony.catalog.schema.apps import SKIPPED
from prony.catalog.schema.entry import Build, ProcessEntry
from prony.catalog.schema.expression import fill
from prony.core.trees import content, copy_file, remove_tree, walk
from prony.core.units import GIB, format_bytes
from prony.core.users import RunAs, own_folder
from prony.sandbox.building import BuildTask

# Part of every product's name: increase it when products are made in another way.
_RECIPE = "2"
_PRODUCT = "out"
# Of an app's folder; beyond it the copy takes longer than anybody waits.
_MOST_BYTES = GIB


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


def make(making: Making, user: RunAs, children: Children, on_build: Callable[[str], None]) -> Path | NotMade:
    """Return the folder with the product: from the cache, or built now.

    ``on_build`` gets the reason why it is built again, or "".

    *Errors*: OSError when the cache cannot be written.
    """
    try:
        return _made_or_kept(making, user, children, on_build)
    except ValueError as error:
        return NotMade(f"`{making.entry.name}` cannot be built: {error}", "")


def _made_or_kept(
    making: Making, user: RunAs, children: Children, on_build: Callable[[str], None]
) -> Path | NotMade:
    folder = user.cache / "builds" / f"{making.entry.name}-{_digest(making)[:16]}-{user.name}"
    with locked(folder, children.check):
        mark = read_mark(folder)
        changed = change_since(mark, folder / _PRODUCT) if mark else ""
        if mark is None or changed:
            on_build(changed)
            with filling(folder):
                failure = _made(making, folder, children)
            if failure:
                return failure
        return folder / _PRODUCT


def _made(making: Making, folder: Path, children: Children) -> NotMade | None:
    builder = children.builder
    source, out = _copied(making.entry, folder, builder), own_folder(folder / _PRODUCT, builder)
    values = {**making.values, "source": str(source), "build": str(out)}
    environment = build_environment(builder)
    for step in making.build.steps:
        command = [fill(word, values) for word in step.run]
        task = BuildTask(command, environment, source, (source, out))
        done = children.build(task, Path(fill(step.stdin, values)) if step.stdin else None)
        done.check_room(source)
        if not done.ok:
            reason = f"`{making.entry.name}` cannot be built: {cause(done)}"
            return NotMade(reason, last_words(done))
    if not (out / making.build.product).exists():
        return NotMade(
            f"`{making.entry.name}` cannot be built: the commands did not create `{making.build.product}`", ""
        )
    # What its steps made there may be of any depth.
    remove_tree(source)
    write_mark(folder, {"made_from": making.made_from}, seal(out, builder.uid))
    return None


def _copied(entry: ProcessEntry, folder: Path, user: RunAs) -> Path:
    """Return a copy of the entry's files that belongs to the user; it is complete before the owner changes.

    *Errors*: OSError; ValueError for a link, which could point anywhere.
    """
    source = folder / "source"
    source.mkdir()
    for path in _files(entry):
        target = source / path.relative_to(entry.folder)
        copy_file(entry.folder, path, target, stat.S_IROTH if entry.is_of_app else 0)
        target.chmod(0o755 if os.access(path, os.X_OK) else 0o644)
    for path in [*source.rglob("*"), source]:
        if path.is_dir():
            path.chmod(0o755)
        if user.drop:
            os.chown(path, user.uid, user.gid, follow_symlinks=False)
    return source


def _files(entry: ProcessEntry) -> list[Path]:
    """Return what is copied. Of an app only what anybody may read: what is built can be read by anybody.

    *Errors*: OSError; ValueError for a link, for more than is copied, and for a folder that is all closed.
    """
    folder = entry.folder
    found = sorted(_entries(folder))
    link = next((path for path in found if path.is_symlink()), None)
    if link is not None:
        raise ValueError(f"`{link}` is a link; expected ordinary files and folders")
    files = [path for path in found if path.is_file()]
    if entry.is_of_app:
        closed, files = files, [path for path in files if path.stat().st_mode & stat.S_IROTH]
        if closed and not files:
            raise ValueError(f"others may not read `{closed[0]}`; expected files that anybody may read")
    size = sum(path.stat().st_size for path in files)
    if size > _MOST_BYTES:
        raise ValueError(
            f"`{folder}` has {format_bytes(size)}; expected at most {format_bytes(_MOST_BYTES)} to copy"
        )
    return files


def _entries(folder: Path) -> Iterator[Path]:
    for path, folders, names in walk(folder):
        folders[:] = [name for name in folders if name not in SKIPPED]
        yield from (Path(path, name) for name in (*folders, *names))


def _digest(making: Making) -> str:
    digest = hashlib.sha256(f"{_RECIPE}\n{making.build.model_dump_json()}\n{making.made_from}\n".encode())
    folder = making.entry.folder
    for file in _files(making.entry):
        digest.update(f"{file.relative_to(folder).as_posix()}\n".encode())
        digest.update(hashlib.sha256(content(file)).digest())
    return digest.hexdigest()
