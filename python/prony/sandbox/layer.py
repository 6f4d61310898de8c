"""A layer over an app's folder: what a subject writes there goes into it, and with it away.

An overlay where the kernel allows one, else a copy in the folder's place. What anybody may read seems to
belong to the subject's user, as where the app is deployed; what only its owner may read stays closed. Runs
in the namespace's first process. Standard library only. Must not know what the folder holds.

>>> Layer("/srv/shop", "/var/cache/x.layer", None, None).folder
'/srv/shop'
"""

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from prony.sandbox import linux

# What no server writes, and of which there may be very much.
_LEFT_OUT = frozenset({".git", ".hg", ".venv", "venv", "node_modules", "__pycache__"})
# About a second's work for each trial; whatever is beyond stays as it is, or the folder read-only.
_MOST_ENTRIES = 20_000
_MOST_COPIED_BYTES = 1 << 28


class Layer(NamedTuple):
    """A layer over ``folder``, kept in ``place``, which the subject cannot enter. ``uid`` and ``gid``: its
    user; null: the caller.
    """

    folder: str
    place: str
    uid: int | None
    gid: int | None


def cover(layer: Layer) -> None:
    """Cover the folder in the caller's own mount namespace.

    *Errors*: OSError when neither an overlay nor a copy can be made, nor the folder be made read-only.
    """
    is_closed = not Path(layer.folder).stat().st_mode & stat.S_IWUSR
    try:
        _overlay(layer)
    except OSError:
        if _bytes_to_copy(layer.folder) > _MOST_COPIED_BYTES:
            linux.make_read_only([layer.folder])
            return
        _copy(layer)
    _give(layer, opened=is_closed)


def _overlay(layer: Layer) -> None:
    upper, work = Path(layer.place, "upper"), Path(layer.place, "work")
    for made in (upper, work):
        made.mkdir()
    # The covered folder has the mode of the layer's own.
    upper.chmod(Path(layer.folder).stat().st_mode & 0o7777 | 0o700)
    linux.mount_overlay(layer.folder, str(upper), str(work))


def _copy(layer: Layer) -> None:
    copy = Path(layer.place, "copy")
    left_out = shutil.ignore_patterns(*_LEFT_OUT - {"node_modules", "venv", ".venv"})
    shutil.copytree(layer.folder, copy, symlinks=True, ignore=left_out)
    linux.bind(str(copy), layer.folder)


def _bytes_to_copy(folder: str) -> int:
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(path, name)).st_size  # noqa: PTH118
        if total > _MOST_COPIED_BYTES:
            break
    return total


def _give(layer: Layer, *, opened: bool) -> None:
    """Let what anybody may read belong to the subject's user. In an overlay that copies no file's content.

    ``opened``: the folder was sealed, and its files become the owner's to write, as they were.
    """
    if (layer.uid is None or layer.gid is None) and not opened:
        return
    for number, path in enumerate(_entries(layer.folder)):
        if number >= _MOST_ENTRIES:
            return
        with contextlib.suppress(OSError):
            _give_one(layer, path, opened=opened)


def _give_one(layer: Layer, path: str, *, opened: bool) -> None:
    found = os.lstat(path)
    if not _is_open(found.st_mode):
        return
    if layer.uid is not None and layer.gid is not None and found.st_uid != layer.uid:
        os.lchown(path, layer.uid, layer.gid)
    if opened and not stat.S_ISLNK(found.st_mode):
        os.chmod(path, stat.S_IMODE(found.st_mode) | stat.S_IWUSR)  # noqa: PTH101


def _is_open(mode: int) -> bool:
    """Return whether anybody may read it: a layer must show a subject nothing that it could not read without.

    >>> [_is_open(mode) for mode in (0o100644, 0o100600, 0o040755, 0o040744, 0o120777)]
    [True, False, True, False, True]
    """
    wanted = 0o5 if stat.S_ISDIR(mode) else 0o4
    return mode & wanted == wanted


def _entries(folder: str) -> Iterator[str]:
    yield folder
    for path, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _LEFT_OUT]
        yield from (os.path.join(path, name) for name in (*folders, *names))  # noqa: PTH118
