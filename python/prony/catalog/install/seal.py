"""Folders that nobody changes any more: what was built is read-only, and a digest shows every change.

Where root runs Prony, what was built belongs to root from then on.

>>> kept_beside(Path("/c/apps/hello-1")).name
'.hello-1.sealed'
"""

import contextlib
import fcntl
import hashlib
import json
import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from errno import E2BIG, ENAMETOOLONG
from glob import escape
from pathlib import Path
from tempfile import mkdtemp

from prony.core.atomic_files import write_whole
from prony.core.safe_text import shortened
from prony.core.trees import remove_tree, walk
from prony.core.users import make_passable
from prony.model.json_codec import Json

_MARK = "complete.json"


@dataclass(frozen=True, slots=True)
class Tree:
    """The state of a folder and of everything below it.

    ``digest``: the SHA-256 of path, mode, owner, group, size and times of each entry; ``entries``: their
    number.
    """

    digest: str
    entries: int


def read_tree(folder: Path) -> Tree:
    """Return the state of ``folder``: no file is opened, and no link followed.

    The time of an entry's last change (`ctime`) is the kernel's own: whoever changes an entry and undoes it
    has changed that. Takes less than a second for 200,000 entries.

    *Errors*: OSError. *Source*: inode(7).
    """
    from prony._engine import read_tree as read_lines

    entries, lines = read_lines(folder)
    return Tree(hashlib.sha256(lines).hexdigest(), entries)


def latest_change(folder: Path) -> Path:
    """Return the entry below ``folder``, or itself, that was changed last.

    *Errors*: OSError.
    """
    found = [os.fspath(folder)]
    for path, folders, files in walk(folder):
        found += [f"{path}/{name}" for name in (*folders, *files)]
    return Path(max(found, key=lambda path: os.lstat(path).st_ctime_ns))


def seal(folder: Path, made_by: int) -> Tree:
    """Make ``folder`` and all below it read-only for everybody, and root's where root runs; return its state.

    ``made_by``: the user that everything in it belongs to. From above to below: what lies in a folder that is
    closed already can no longer be exchanged while it is closed itself.

    *Errors*: OSError; ValueError for an entry of another user, such as a hard link to a file of root's, and
    for one that is neither file, folder nor link; for a tree that is larger or deeper than any is.
    """
    _close(os.fspath(folder), os.lstat(folder), made_by)
    try:
        for path, folders, others in walk(folder):
            for name in (*folders, *others):
                inner = f"{path}/{name}"
                _close(inner, os.lstat(inner), made_by)
    except OSError as error:
        if error.errno not in (E2BIG, ENAMETOOLONG):
            raise
        raise ValueError(f"`{folder}`: {error.strerror}") from error
    return read_tree(folder)


@contextlib.contextmanager
def filling(folder: Path) -> Iterator[None]:
    """Let the block fill a new ``folder``, which is removed if it has no mark at the end, whatever ended it.

    What is left of a build whose disk was full would keep it full.

    *Errors*: OSError when a former folder cannot be removed; errors of the block.
    """
    if folder.exists():
        remove_tree(folder)
    try:
        folder.mkdir()
        folder.chmod(0o755)
        yield
    finally:
        if read_mark(folder) is None:
            with contextlib.suppress(OSError):
                remove_tree(folder)


def write_mark(folder: Path, content: Json, tree: Tree) -> None:
    """Write beside a sealed tree in ``folder`` that it is complete, what is to be known of it, and its state.

    *Errors*: OSError.
    """
    mark = {**content, "tree": tree.digest, "entries": tree.entries}
    write_whole(folder / _MARK, json.dumps(mark, sort_keys=True))
    (folder / _MARK).chmod(0o644)


def read_mark(folder: Path) -> Json | None:
    """Return what `write_mark` wrote in ``folder``; None: what is there is not complete."""
    try:
        content = json.loads((folder / _MARK).read_text())
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def change_since(mark: Json, sealed: Path) -> str:
    """Return how a tree differs from its state in ``mark``, as a sentence; empty: it does not differ."""
    try:
        tree = read_tree(sealed)
        if tree.digest == mark.get("tree"):
            return ""
        return f"it was changed after it had been built, last `{latest_change(sealed)}`"
    except OSError as error:
        return f"it was changed after it had been built: `{error.filename}`: {error.strerror}"


def sealed_copy(target: Path, fill: Callable[[Path], object]) -> Path:
    """Return ``target``, a folder that ``fill`` has filled and that was sealed then.

    One that has been changed since, or that a killed Prony left half made, is filled again.

    *Errors*: OSError, errors of ``fill``.
    """
    with locked(target):
        if not _is_intact(target):
            _fill(target, fill)
    return target


def kept_beside(folder: Path) -> Path:
    """Return the file that holds the digest of a folder of `sealed_copy`."""
    return folder.with_name(f".{folder.name}.sealed")


def _close(path: str, status: os.stat_result, made_by: int) -> None:
    if status.st_uid != made_by:
        raise ValueError(f"`{shortened(path, 200)}` belongs to another user than the one that built it")
    if stat.S_IFMT(status.st_mode) not in (stat.S_IFDIR, stat.S_IFREG, stat.S_IFLNK):
        raise ValueError(f"`{shortened(path, 200)}` is neither a file, a folder nor a link")
    if os.geteuid() == 0:
        os.chown(path, 0, 0, follow_symlinks=False)
    if not stat.S_ISLNK(status.st_mode):
        runs = stat.S_ISDIR(status.st_mode) or status.st_mode & 0o111
        # After the owner: whoever built it can no longer change it back.
        os.chmod(path, 0o555 if runs else 0o444)  # noqa: PTH101


def _is_intact(folder: Path) -> bool:
    try:
        return folder.is_dir() and read_tree(folder).digest == kept_beside(folder).read_text()
    except OSError:
        return False


def _fill(target: Path, fill: Callable[[Path], object]) -> None:
    prefix = f".draft-{target.name}-"
    # The target is locked: another draft is of a process that was killed.
    for left in (target, *target.parent.glob(f"{escape(prefix)}*")):
        if left.exists():
            remove_tree(left)
    draft = Path(mkdtemp(prefix=prefix, dir=target.parent))
    try:
        fill(draft)
        seal(draft, os.geteuid())
        draft.rename(target)
    except BaseException:
        with contextlib.suppress(OSError):
            remove_tree(draft)
        raise
    # Last: without it the folder is filled again.
    kept_beside(target).write_text(read_tree(target).digest)


@contextlib.contextmanager
def locked(folder: Path, check: Callable[[], object] = bool) -> Iterator[None]:
    """Lock ``folder`` within the block, so that no other Prony fills it; create its parent.

    ``check`` is called ten times a second while another one has it: what it raises ends the wait.
    """
    make_passable(folder.parent)
    with folder.with_name(f".{folder.name}.lock").open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                check()
                time.sleep(0.1)
        yield
