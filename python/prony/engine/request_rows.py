"""The file that the engine reads requests from, without a name on the disk: docs/reference/engine-wire.md.

>>> with Writer() as writer:
...     number = writer.kind(RequestKind("GET", (Field(0),)))
...     writer.row(number, "/a", (b"/a",))
...     compiled = writer.finish()
>>> compiled.rows, compiled.labels, compiled.file.close()
(1, ('/a',), None)

Lines of a file as records: plain paths, JSON lines, or CSV with a header line.

>>> from io import BytesIO
>>> [(one.where, one.values) for one in records("a.csv", BytesIO(b"id,q\\n1,x\\n"), ())]
[('`a.csv`, line 2', {'id': '1', 'q': 'x'})]
"""

import csv
import hashlib
import json
import sys
from array import array
from base64 import b64encode
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from struct import pack
from tempfile import TemporaryFile
from types import TracebackType
from typing import BinaryIO

from prony.core.errors import UsageError
from prony.core.safe_text import shortened
from prony.core.units import GIB, MIB
from prony.model.workload import MAX_PATHS, OTHERS

_MAGIC = b"PRONYRQ1"
_PATH_BITS = 8
_MOST_KINDS = 1000
_MOST_ROWS = 10_000_000
_MOST_BYTES = GIB


@dataclass(frozen=True, slots=True)
class Field:
    """A hole that a field of the row fills."""

    number: int


Text = tuple[str | Field, ...]


@dataclass(frozen=True, slots=True)
class RequestKind:
    """A request with holes. ``body``: with the surrogates of bytes that are no UTF-8; null: none."""

    method: str
    path: Text
    headers: tuple[tuple[str, Text], ...] = ()
    body: Text | None = None
    statuses: tuple[tuple[int, int], ...] = ()
    fields: int = 1


@dataclass(frozen=True, slots=True)
class Compiled:
    """A file that is done: open, of this digest, with so many rows; ``labels`` are what its requests are
    counted as, each with its weight.
    """

    file: BinaryIO
    sha256: str
    rows: int
    labels: tuple[str, ...]
    weights: tuple[float, ...]
    is_weighted: bool


class Writer:
    """Writes rows as they come; what it keeps of each are 20 bytes."""

    def __init__(self, is_weighted: bool = False, is_drawn: bool = False) -> None:
        self._is_weighted, self._is_drawn = is_weighted, is_drawn
        self._file: BinaryIO = TemporaryFile(prefix="prony-requests-")  # noqa: SIM115 (handed on)
        self._digest = hashlib.sha256()
        self._written = 0
        self._kinds: dict[RequestKind, int] = {}
        self._labels: dict[str, int] = {}
        self._label_weights = [0.0] * MAX_PATHS
        self._has_others = False
        self._offsets, self._numbers, self._weights = array("Q"), array("I"), array("d")
        self._put(_MAGIC)

    def __enter__(self) -> "Writer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._file.close()

    def kind(self, kind: RequestKind) -> int:
        """Return the number of a kind of request.

        *Errors*: UsageError where there are too many.
        """
        number = self._kinds.setdefault(kind, len(self._kinds))
        if number >= _MOST_KINDS:
            raise UsageError(
                f"more than {_MOST_KINDS:,} kinds of requests: methods, names of headers, expected statuses"
            )
        return number

    def row(self, kind: int, label: str, fields: Sequence[bytes], weight: float = 1.0) -> None:
        """Add a row, which is counted as ``label``.

        *Errors*: UsageError where the file becomes too large.
        """
        number = self._label(label)
        self._label_weights[number] += weight
        self._offsets.append(self._written)
        self._numbers.append(kind << _PATH_BITS | number)
        if self._is_weighted:
            self._weights.append(weight)
        end, ends = 0, []
        for field in fields:
            end += len(field)
            ends.append(end)
        self._put(pack(f"<{len(ends)}I", *ends) + b"".join(fields))
        if self._written > _MOST_BYTES or len(self._offsets) > _MOST_ROWS:
            raise UsageError(
                f"more requests than fit: {len(self._offsets):,}, of {self._written:,} bytes; expected at "
                f"most {_MOST_ROWS:,}, and 1 GiB"
            )

    def _label(self, label: str) -> int:
        number = self._labels.get(label)
        if number is None:
            # The last place is that of all others, once there are more than places.
            if len(self._labels) == MAX_PATHS:
                self._has_others = True
                return MAX_PATHS - 1
            number = self._labels[label] = len(self._labels)
        return number

    def finish(self) -> Compiled:
        """Return the file, which is the caller's from here on.

        *Errors*: UsageError without a row.
        """
        if not self._offsets:
            raise UsageError("no requests; expected at least one")
        rows_end = self._written
        for column in (self._offsets, self._numbers, self._weights):
            if sys.byteorder == "big":
                column.byteswap()
            self._put(memoryview(column).cast("B") if len(column) else b"")
        head = json.dumps(
            {
                "kinds": [_encoded(kind) for kind in self._kinds],
                "is_weighted": self._is_weighted,
                "is_drawn": self._is_drawn,
            }
        ).encode()
        self._put(head + pack("<3Q", rows_end, len(self._offsets), len(head)))
        self._file.flush()
        labels = list(self._labels)
        if self._has_others:
            labels[-1] = OTHERS
        return Compiled(
            self._file,
            self._digest.hexdigest(),
            len(self._offsets),
            tuple(labels),
            tuple(self._label_weights[: len(labels)]),
            self._is_weighted,
        )

    def _put(self, data: "bytes | memoryview") -> None:
        self._file.write(data)
        self._digest.update(data)
        self._written += len(data)


def _encoded(kind: RequestKind) -> Mapping[str, object]:
    body = None if kind.body is None else [_part(one, is_body=True) for one in kind.body]
    return {
        "method": kind.method,
        "path": [_part(one) for one in kind.path],
        "headers": [[name, [_part(one) for one in value]] for name, value in kind.headers],
        "body": body,
        "statuses": [list(one) for one in kind.statuses],
        "fields": kind.fields,
    }


def _part(part: str | Field, is_body: bool = False) -> str | int:
    if isinstance(part, Field):
        return part.number
    return b64encode(part.encode(errors="surrogateescape")).decode() if is_body else part


# --- lines of a file as records ---------------------------------------------------------------------------


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
