"""A study's tables as CSV files in a folder of their own: RFC 4180, UTF-8, a header line.

An apostrophe stands before text that a spreadsheet would read as a formula: text may come from servers and
logs. Numbers stay numbers. *Source*: RFC 4180; OWASP, "CSV Injection".

>>> written("=1+1"), written(-1.5), written(None)
("'=1+1", '-1.5', '')

A new folder of files, whole or not at all.
"""

import csv
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from prony.drafts import draft_of
from prony.errors import UsageError
from prony.escapes import plain
from prony.faces.over_sheets import Sheet
from prony.faces.sheets import sheets
from prony.model.records import TrialRecord
from prony.reading.study import Reading


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


_FORMULA = ("=", "+", "-", "@")


def written(value: str | float | None) -> str:
    """Return a cell's text: nothing for a missing value, text without control characters."""
    match value:
        case None:
            return ""
        case str():
            text = plain(value)
            return f"'{text}" if text.lstrip().startswith(_FORMULA) else text
        case _:
            return repr(value)


def write_csv(trials: Callable[[], Iterable[TrialRecord]], reading: Reading, folder: Path) -> None:
    """Write all tables of a study into a new folder, whole or not at all. ``trials``: all, at each call.

    *Errors*: UsageError when the folder exists already, or cannot be written.
    """
    write_sheets(sheets(reading, trials), folder)


def write_sheets(found: Iterable[Sheet], folder: Path) -> None:
    """Write tables into a new folder, whole or not at all; errors as `write_csv`."""
    with new_folder(folder) as unfinished:
        for sheet in found:
            _write(sheet, unfinished / f"{sheet.name}.csv")


def _write(sheet: Sheet, file: Path) -> None:
    with file.open("w", encoding="utf-8", newline="") as out:
        lines = csv.writer(out)
        lines.writerow(sheet.columns)
        lines.writerows([written(value) for value in row] for row in sheet.rows)
