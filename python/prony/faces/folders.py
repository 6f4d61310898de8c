"""A new folder of files, whole or not at all."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prony.errors import UsageError

__all__ = ["new_folder"]


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Give a folder to write into, which takes its name at the end; after an error nothing is left of it.

    *Errors*: UsageError when the folder exists already, or cannot be written.
    """
    folder = folder.absolute()
    unfinished = folder.with_name(f".{folder.name}.unfinished")
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(
                f"`{folder}` exists already", hint="name a folder that does not exist yet, or an empty one"
            )
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        yield unfinished
        unfinished.replace(folder)
    except OSError as error:
        raise UsageError(f"cannot write `{folder}`: {error.strerror}") from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
