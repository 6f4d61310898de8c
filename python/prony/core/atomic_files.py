"""Files that appear whole or not at all, whatever lies beside them.

A draft has a name that nobody can foresee, and is made as a new file: a link or a pipe that somebody has put
beside the target is neither followed nor waited for, and nothing is removed but what was made here.

>>> from tempfile import TemporaryDirectory
>>> with TemporaryDirectory() as folder:
...     write_whole(Path(folder) / "a.txt", "one\\n")
...     sorted(path.name for path in Path(folder).iterdir())
['a.txt']
"""

import os
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def draft_of(path: Path) -> Path:
    """Return where a file or folder may grow until it takes its name: beside it, and never twice the same."""
    return path.with_name(f".{secrets.token_hex(8)}.unfinished")


def write_whole(path: Path, text: str) -> None:
    """Write a text as ``write_whole_bytes`` does; what is no Unicode is written as an escape."""
    write_whole_bytes(path, text.encode(errors="backslashreplace"))


def write_whole_bytes(path: Path, data: bytes) -> None:
    """Write a new file, or replace one, with its mode. *Errors*: as `write_whole_pieces`."""
    write_whole_pieces(path, [data])


def write_whole_pieces(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a new file, or replace one, with its mode.

    *Errors*: OSError, and those of ``pieces``; then the target is as it was, and there is no draft.
    """
    draft = draft_of(path)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            _keep_mode(path, descriptor)
            file.writelines(pieces)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _keep_mode(path: Path, descriptor: int) -> None:
    with suppress(FileNotFoundError):
        known = os.lstat(path).st_mode
        if stat.S_ISREG(known):
            os.fchmod(descriptor, stat.S_IMODE(known) & 0o777)
