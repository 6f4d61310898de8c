"""Lines of a file as records: plain paths, JSON lines, or CSV with a header line.

>>> from io import BytesIO
>>> [(one.where, one.values) for one in records("a.csv", BytesIO(b"id,q\\n1,x\\n"), ())]
[('`a.csv`, line 2', {'id': '1', 'q': 'x'})]
"""

import csv
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import BinaryIO

from prony.core.errors import UsageError
from prony.core.safe_text import shortened
from prony.core.units import MIB

_LONGEST_LINE_BYTES = 16 * MIB


@dataclass(frozen=True, slots=True)
class Record:
    """What a line says, and where it stands, for messages."""

    where: str
    values: Mapping[str, object]

    def fault(self, why: str, hint: str | None = None) -> UsageError:
        """Return the error that names the line."""
        return UsageError(f"{self.where}: {why}", hint=hint)


Line = tuple[int, str]


def records(name: str, file: BinaryIO, plain: Collection[str]) -> Iterator[Record]:
    """Yield what the lines of a file say. A first line that begins with ``{`` makes them JSON, and one that
    names columns makes them CSV: any names, or, where ``plain`` is not empty, one of those; else each line is
    a path. Blank lines, and comments among plain lines, are skipped.

    *Errors*: UsageError with the file, the line, and the column.
    """
    lines = _lines(name, file)
    first = next((line for line in lines if line[1].strip() and not line[1].startswith("#")), None)
    if first is None:
        raise UsageError(f"`{name}` has no lines; expected at least one")
    rest = chain((first,), lines)
    if first[1].lstrip().startswith("{"):
        return _json_lines(name, rest)
    if plain and not {one.strip() for one in next(csv.reader((first[1],)))} & set(plain):
        return _plain(name, rest)
    return _csv(name, rest)


def _lines(name: str, file: BinaryIO) -> Iterator[Line]:
    number = 0
    while raw := file.readline(_LONGEST_LINE_BYTES + 1):
        number += 1
        if len(raw) > _LONGEST_LINE_BYTES:
            raise UsageError(f"`{name}`, line {number}: longer than 16 MiB")
        try:
            text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise UsageError(f"`{name}`, line {number}, column {error.start + 1}: expected UTF-8") from None
        yield number, text


def _plain(name: str, lines: Iterable[Line]) -> Iterator[Record]:
    for number, line in lines:
        path = line.strip()
        if path and not path.startswith("#"):
            yield Record(f"`{name}`, line {number}", {"path": path})


def _json_lines(name: str, lines: Iterable[Line]) -> Iterator[Record]:
    for number, line in lines:
        if not line.strip():
            continue
        where = f"`{name}`, line {number}"
        try:
            found = json.loads(line, parse_constant=_refused)
        except json.JSONDecodeError as error:
            raise UsageError(f"{where}, column {error.colno}: {error.msg}; expected JSON") from None
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{where}: {error}; expected JSON") from None
        if not isinstance(found, dict):
            raise UsageError(f'{where}: expected an object, such as {{"path": "/"}}')
        yield Record(where, found)


def _refused(text: str) -> object:
    raise ValueError(f"`{text}` is no number of JSON")


def _csv(name: str, lines: Iterable[Line]) -> Iterator[Record]:
    # The numbers of lines beside the reader: a value in quotes may have several.
    numbers: list[int] = []

    def texts() -> Iterator[str]:
        for number, line in lines:
            numbers[:] = [numbers[0] if numbers else number, number]
            yield line

    reader = csv.reader(texts(), strict=True)
    try:
        columns = [one.strip() for one in next(reader)]
        _check_columns(name, numbers[-1], columns)
        numbers.clear()
        for row in reader:
            first = numbers[0] if numbers else 0
            where = f"`{name}`, line {first}"
            numbers.clear()
            if not row:
                continue
            if len(row) != len(columns):
                at = min(len(row), len(columns)) + 1
                raise UsageError(
                    f"{where}, column {at}: {len(row)} values; expected {len(columns)}, as in the header line"
                )
            yield Record(where, dict(zip(columns, row, strict=True)))
    except csv.Error as error:
        raise UsageError(f"`{name}`, line {numbers[0] if numbers else 1}: {error}; expected CSV") from None


def _check_columns(name: str, number: int, columns: list[str]) -> None:
    for place, column in enumerate(columns, 1):
        if not column or column in columns[: place - 1]:
            shown = shortened(column)
            raise UsageError(
                f"`{name}`, line {number}, column {place}: `{shown}`; expected a name, each once, in the "
                "header line"
            )
