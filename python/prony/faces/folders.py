"""A new folder of files, whole or not at all."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prony.drafts import draft_of
from prony.errors import UsageError


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Give a folder to write into, which takes its name at the end; after an error nothing is left of it.

    *Errors*: UsageError when the folder exists already, or cannot be written.
    """
    unfinished: Path | None = None
    try:
        folder = folder.absolute()
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(
                f"`{folder}` exists already", hint="name a folder that does not exist yet, or an empty one"
            )
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = draft_of(folder)
        draft.mkdir()
        unfinished = draft
        yield draft
        draft.replace(folder)
    except OSError as error:
        raise UsageError(f"cannot write `{folder}`: {error.strerror}") from None
    finally:
        if unfinished is not None:
            shutil.rmtree(unfinished, ignore_errors=True)
