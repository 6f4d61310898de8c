"""Texts with holes, ``{{name}}``, and how a value is written where it stands. Pure.

>>> parts_of("/items/{{id}}", HolePlace.PATH)
('/items/', Hole(column='id', place=<HolePlace.PATH: 'path'>))
>>> filled_in("a b/c", HolePlace.PATH), filled_in('say "no"', HolePlace.JSON)
('a%20b%2Fc', 'say \\\\"no\\\\"')
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import quote, quote_plus

from prony.model.exchange import is_header_value

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
