"""A study's tables as CSV files in a folder of their own: RFC 4180, UTF-8, a header line.

An apostrophe stands before text that a spreadsheet would read as a formula: text may come from servers and
logs. Numbers stay numbers. *Source*: RFC 4180; OWASP, "CSV Injection".

>>> written("=1+1"), written(-1.5), written(None)
("'=1+1", '-1.5', '')
"""

import csv
from collections.abc import Iterable
from pathlib import Path

from prony.archive import Archive
from prony.escapes import plain
from prony.faces.folders import new_folder
from prony.faces.sheet import Sheet
from prony.faces.sheets import sheets
from prony.reading.study import Reading

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


def write_csv(archive: Archive, reading: Reading, folder: Path) -> None:
    """Write all tables of a study into a new folder, whole or not at all.

    *Errors*: UsageError when the folder exists already, or cannot be written.
    """
    write_sheets(sheets(reading, archive.trials), folder)


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
