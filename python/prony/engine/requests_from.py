"""From what the user named to a compiled file: a list of requests, or data for the templates of one.

>>> from io import BytesIO
>>> found = of_list("a.txt", BytesIO(b"/a\\n/b\\n"), Request(headers=(("x", "1"),)))
>>> found.compiled.rows, found.request.path, found.compiled.file.close()
(2, '/a', None)

>>> parts_of("/items/{{id}}", HolePlace.PATH)
('/items/', Hole(column='id', place=<HolePlace.PATH: 'path'>))
>>> filled_in("a b/c", HolePlace.PATH), filled_in('say "no"', HolePlace.JSON)
('a%20b%2Fc', 'say \\\\"no\\\\"')
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import BinaryIO
from urllib.parse import quote, quote_plus, urlsplit

from prony.core.errors import UsageError
from prony.core.safe_text import shortened
from prony.engine.request_rows import Compiled, Field, Record, RequestKind, Text, Writer, records
from prony.model.exchange import Request, as_sent, fault_of, is_header_value, is_path, status_ranges
from prony.model.workload import OTHERS, Mix, MixPath, RequestFile, RequestOrder, is_weight

_HOLE = re.compile(r"\{\{\s*([^{}|]+?)\s*(\|\s*raw\s*)?\}\}")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_NOT_OF_A_PATH = re.compile(r"[\x00-\x20\x7f#]")


class HolePlace(StrEnum):
    """Where a value stands, which says how it is written."""

    PATH = "path"
    RAW = "raw"
    """In a path, as it stands."""
    HEADER = "header"
    JSON = "JSON"
    FORM = "form"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Hole:
    """What a value of this column is put into."""

    column: str
    place: HolePlace


Parts = tuple[str | Hole, ...]


def parts_of(text: str, place: HolePlace) -> Parts:
    """Return a text as its literal parts and holes. ``|raw`` asks for a value as it stands."""
    raw_places = {HolePlace.PATH: HolePlace.RAW, HolePlace.HEADER: HolePlace.HEADER}
    raw = raw_places.get(place, HolePlace.TEXT)
    parts: list[str | Hole] = []
    end = 0
    for found in _HOLE.finditer(text):
        parts += [text[end : found.start()], Hole(found[1], raw if found[2] else place)]
        end = found.end()
    return tuple(part for part in (*parts, text[end:]) if part != "")


def place_of_body(content_type: str) -> HolePlace:
    """Return how values are written in a body of this type.

    >>> place_of_body("application/json; charset=utf-8"), place_of_body("text/plain")
    (<HolePlace.JSON: 'JSON'>, <HolePlace.TEXT: 'text'>)
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/json" or kind.endswith("+json"):
        return HolePlace.JSON
    return HolePlace.FORM if kind == "application/x-www-form-urlencoded" else HolePlace.TEXT


def holes_of(parts: Sequence[str | Hole]) -> tuple[Hole, ...]:
    """Return the holes of a text."""
    return tuple(part for part in parts if isinstance(part, Hole))


def filled_in(value: str, place: HolePlace) -> str:
    """Return a value as it is written there.

    *Errors*: ValueError for one that would end the line or the path that it stands in; its first argument
    is the reason, its second the number of the character.
    """
    match place:
        case HolePlace.PATH:
            return quote(value, safe="", errors="surrogateescape")
        case HolePlace.RAW:
            if found := _NOT_OF_A_PATH.search(value):
                raise ValueError(f"{found[0]!r} cannot stand in a path", found.start() + 1)
            return _NOT_ASCII.sub(lambda found: quote(found[0], errors="surrogateescape"), value)
        case HolePlace.HEADER:
            if not is_header_value(value):
                number = next((n for n, one in enumerate(value, 1) if one in "\r\n\0"), 1)
                raise ValueError(f"{value[number - 1]!r} cannot stand in a header", number)
            return value
        case HolePlace.JSON:
            return json.dumps(value, ensure_ascii=False)[1:-1]
        case HolePlace.FORM:
            return quote_plus(value, errors="surrogateescape")
        case HolePlace.TEXT:
            return value


_OF_LINES = ("method", "path", "url", "headers", "body", "weight", "expect_status", "name")
_HEADER = "header:"
# The engine reads these itself: they are the same for all rows of a kind.
_READ = ("connection", "content-length", "transfer-encoding", "te", "expect", "upgrade")


@dataclass(frozen=True, slots=True)
class Requests:
    """Compiled requests: what they were made of, and the first of them."""

    compiled: Compiled
    name: str
    request: Request

    def mix(self, order: RequestOrder | None, seed: int) -> Mix:
        """Return the requests as the mix of a load. Without an order: by their weights, or as they stand.

        *Errors*: UsageError for weights that there are not.
        """
        found = self.compiled
        if order is RequestOrder.WEIGHTED and not found.is_weighted:
            raise UsageError(
                f"`{self.name}` has no weights to go by",
                hint='give lines a "weight", or choose another --order',
            )
        usual = RequestOrder.WEIGHTED if found.is_weighted else RequestOrder.IN_ORDER
        file = RequestFile(self.name, found.sha256, found.rows, order or usual)
        paths = zip(found.labels, found.weights, strict=True)
        return Mix(tuple(MixPath(*one) for one in paths), seed, file)


def of_list(name: str, file: BinaryIO, base: Request) -> Requests:
    """Return the requests that the lines of a file are; ``base`` has what a line does not say.

    *Errors*: UsageError with file, line, and column.
    """
    lines = records(name, file, (*_OF_LINES, _HEADER))
    first = next(lines, None)
    if first is None:
        raise UsageError(f"`{name}` has no requests; expected at least one")
    is_weighted = "weight" in first.values
    origins = _Origins()
    with Writer(is_weighted) as writer:
        line = _line(first, base, origins)
        request = line.request
        number = writer.kind(line.kind())
        writer.row(number, line.label, line.fields(), line.weight)
        is_plain = first.values.keys() == {"path"} and base.body is None
        for record in lines:
            path = record.values.get("path")
            # A million plain paths: what `_line` makes of them, at a tenth of its time.
            if is_plain and len(record.values) == 1 and isinstance(path, str) and is_path(path):
                sent = as_sent(path)
                writer.row(number, sent, (sent.encode(),))
                continue
            if ("weight" in record.values) != is_weighted:
                raise record.fault("expected a `weight` in each line, or in none")
            line = _line(record, base, origins)
            writer.row(writer.kind(line.kind()), line.label, line.fields(), line.weight)
        return Requests(writer.finish(), name, replace(request, keep_alive=base.keep_alive))


@dataclass(frozen=True, slots=True)
class _Line:
    """A request of a list, with what else its line says."""

    request: Request
    label: str
    weight: float
    statuses: tuple[tuple[int, int], ...]
    own: frozenset[str]
    """Names of headers that the line has itself, in lower case."""

    def _is_field(self, name: str) -> bool:
        return name.lower() in self.own and name.lower() not in _READ

    def fields(self) -> tuple[bytes, ...]:
        """Return what the row has."""
        found = self.request
        headers = (value for name, value in found.headers if self._is_field(name))
        body = () if found.body is None else (found.body,)
        return (found.path.encode(), *(value.encode(errors="surrogateescape") for value in headers), *body)

    def kind(self) -> RequestKind:
        """Return the request without it."""
        found, count = self.request, 1
        headers: list[tuple[str, Text]] = []
        for name, value in found.headers:
            headers.append((name, (Field(count),) if self._is_field(name) else (value,)))
            count += self._is_field(name)
        body: Text | None = None if found.body is None else (Field(count),)
        count += body is not None
        return RequestKind(found.method, (Field(0),), tuple(headers), body, self.statuses, count)


class _Origins:
    """The server of the lines that are URLs: one, whichever it is, since only their paths are asked for."""

    def __init__(self) -> None:
        self._first: str | None = None

    def path(self, record: Record, text: str) -> str:
        """Return the path of a line that is a URL, or a path."""
        if text.startswith("/"):
            return text
        try:
            parts = urlsplit(text)
        except ValueError:
            parts = urlsplit("")
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise record.fault(
                f"`{shortened(text)}`: expected a path that starts with `/`, or a URL with http:// or https://"
            )
        origin = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        if self._first not in (None, origin):
            raise record.fault(
                f"`{shortened(text)}` is of another server than the lines before it, which are of "
                f"`{self._first}`; expected one",
                hint="a load goes to the server that its own URL names; only paths are read from the file",
            )
        self._first = origin
        return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _line(record: Record, base: Request, origins: _Origins) -> _Line:
    found = {name: value for name, value in record.values.items() if value not in (None, "")}
    for name in found:
        if name not in _OF_LINES and not name.startswith(_HEADER):
            known = ", ".join(f"`{one}`" for one in _OF_LINES)
            raise record.fault(f"unknown name `{shortened(name)}`; expected {known} or `{_HEADER}NAME`")
    if ("path" in found) == ("url" in found):
        raise record.fault("expected a `path`, or a `url`")
    place = "path" if "path" in found else "url"
    path = as_sent(origins.path(record, _text(record, place, found[place])))
    own = dict(_headers(record, found))
    body, kind_of_body = _body(record, found, base)
    if kind_of_body and not any(name.lower() == "content-type" for name, _ in (*own.items(), *base.headers)):
        own["Content-Type"] = kind_of_body
    names = frozenset(name.lower() for name in own)
    request = Request(
        method=_text(record, "method", found.get("method", base.method)).upper(),
        path=path,
        headers=(*(one for one in base.headers if one[0].lower() not in names), *own.items()),
        body=body,
    )
    if fault := fault_of(request):
        field, expected = fault
        shown = shortened(str(getattr(request, field)))
        raise record.fault(f"`{field}` is `{shown}`; expected {expected}{_column(request.path, field)}")
    label = _text(record, "name", found.get("name", path))
    if label == OTHERS or not is_header_value(label):
        raise record.fault(f"the name `{shortened(label)}`; expected one line, and not `{OTHERS}`")
    return _Line(request, label, _weight(record, found), _statuses(record, found), names)


def _column(path: str, field: str) -> str:
    if field != "path":
        return ""
    number = next((n for n, one in enumerate(path, 1) if one <= " " or one == "\x7f"), 1)
    return f" (character {number} is {path[number - 1 : number]!r})"


def _text(record: Record, name: str, value: object) -> str:
    if not isinstance(value, str):
        raise record.fault(f"`{name}` is `{shortened(json.dumps(value))}`; expected a text")
    return value


def _headers(record: Record, found: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    given = found.get("headers", {})
    if not isinstance(given, dict):
        raise record.fault(
            '`headers`: expected an object in a line of JSON, such as {"X-User": "7"}; in '
            f"CSV a column `{_HEADER}X-User`"
        )
    for name, value in given.items():
        yield name, _text(record, f"headers.{name}", value)
    for name, value in found.items():
        if name.startswith(_HEADER):
            yield name.removeprefix(_HEADER).strip(), _text(record, name, value)


def _body(record: Record, found: Mapping[str, object], base: Request) -> tuple[bytes | None, str | None]:
    """Return the body of a line, and its type where the line says it by being no text."""
    match found.get("body"):
        case None:
            return base.body, None
        case str() as text:
            return text.encode(errors="surrogateescape"), None
        case (dict() | list()) as value:
            return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(), "application/json"
        case other:
            raise record.fault(f"`body` is `{shortened(json.dumps(other))}`; expected a text, or an object")


def _weight(record: Record, found: Mapping[str, object]) -> float:
    value = found.get("weight", 1 if "weight" not in record.values else "")
    try:
        weight = float(value) if isinstance(value, (int, float, str)) else 0.0
    except ValueError:
        weight = 0.0
    if not is_weight(weight):
        raise record.fault(
            f"`weight` is `{shortened(str(value))}`; expected a number from 0.0001 to 100000000"
        )
    return weight


def _statuses(record: Record, found: Mapping[str, object]) -> tuple[tuple[int, int], ...]:
    value = found.get("expect_status")
    if value is None:
        return ()
    ranges = status_ranges(str(value))
    if ranges is None:
        raise record.fault(
            f"`expect_status` is `{shortened(str(value))}`; expected statuses such as 200, or `200,3xx`"
        )
    return ranges


# --- data for templates -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Template:
    """A request whose texts have holes."""

    request: Request
    path: tuple[str | Hole, ...]
    headers: tuple[tuple[str, tuple[str | Hole, ...]], ...]
    body: tuple[str | Hole, ...] | None

    @classmethod
    def of(cls, request: Request) -> "_Template":
        types = (value for name, value in request.headers if name.lower() == "content-type")
        body = None if request.body is None else request.body.decode(errors="surrogateescape")
        of_body = place_of_body(next(types, ""))
        return cls(
            request,
            parts_of(request.path, HolePlace.PATH),
            tuple((name, parts_of(value, HolePlace.HEADER)) for name, value in request.headers),
            None if body is None else parts_of(body, of_body),
        )

    def holes(self) -> Iterator[Hole]:
        for parts in (self.path, *(value for _, value in self.headers), self.body or ()):
            yield from holes_of(parts)

    def kind(self, fields: Mapping[Hole, int]) -> RequestKind:
        def text(parts: Sequence[str | Hole]) -> Text:
            return tuple(Field(fields[part]) if isinstance(part, Hole) else part for part in parts)

        return RequestKind(
            self.request.method,
            text(self.path),
            tuple((name, text(value)) for name, value in self.headers),
            None if self.body is None else text(self.body),
            fields=len(fields),
        )

    def filled(self, value: Callable[[Hole], str]) -> Request:
        def text(parts: Sequence[str | Hole]) -> str:
            return "".join(value(part) if isinstance(part, Hole) else part for part in parts)

        return replace(
            self.request,
            path=text(self.path),
            headers=tuple((name, text(parts)) for name, parts in self.headers),
            body=None if self.body is None else text(self.body).encode(errors="surrogateescape"),
        )


def of_data(name: str, file: BinaryIO, base: Request, paths: Sequence[MixPath]) -> Requests:
    """Return the request ``base`` with each of these paths, and in its holes the values of a file's lines.

    *Errors*: UsageError with file, line, and column; for a hole that no column fills, and without holes.
    """
    templates = [_Template.of(replace(base, path=one.path)) for one in paths]
    fields = {hole: number for number, hole in enumerate(dict.fromkeys(_all_holes(templates)))}
    if not fields:
        raise UsageError(
            f"`--data {name}` fills no template; expected `{{{{name}}}}` in a path, header, or body",
            hint="--path '/items/{{id}}' takes the column `id`",
        )
    with Writer(is_drawn=len(paths) > 1) as writer:
        for one in templates:
            writer.kind(one.kind(fields))
        request = None
        for record in records(name, file, ()):
            values = {hole: _value(record, hole) for hole in fields}
            request = request or _filled(record, templates[0], values)
            row = tuple(value.encode(errors="surrogateescape") for value in values.values())
            writer.row(0, paths[0].path, row)
        if request is None:
            raise UsageError(f"`{name}` has no rows; expected at least one below the header line")
        compiled = writer.finish()
    labels, weights = tuple(one.path for one in paths), tuple(one.weight for one in paths)
    return Requests(replace(compiled, labels=labels, weights=weights), name, request)


def _all_holes(templates: Sequence[_Template]) -> Iterator[Hole]:
    for one in templates:
        yield from one.holes()


def _filled(record: Record, first: _Template, values: Mapping[Hole, str]) -> Request:
    request = first.filled(values.__getitem__)
    if fault := fault_of(request):
        raise record.fault(f"`{fault[0]}`: expected {fault[1]}")
    return request


def _value(record: Record, hole: Hole) -> str:
    if hole.column not in record.values:
        known = ", ".join(f"`{shortened(name)}`" for name in record.values)
        raise record.fault(f"no column `{hole.column}`, which a template names; there are {known}")
    match record.values[hole.column]:
        case str() as text:
            value = text
        case None:
            value = ""
        case (bool() | int() | float()) as number:
            value = json.dumps(number)
        case other:
            raise record.fault(
                f"`{hole.column}` is `{shortened(json.dumps(other))}`; expected a text or a number"
            )
    try:
        return filled_in(value, hole.place)
    except ValueError as error:
        why, number = error.args
        raise record.fault(f"column `{hole.column}`, character {number}: {why}") from None
