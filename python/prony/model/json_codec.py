"""JSON as frozen dataclasses and back: a field's type says what is expected there, and nothing else passes.

A whole number is at least 0. A key that is not there reads as the field's default, or as null where that is
allowed; keys that no field names are left out. Pure.

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True)
... class Queue:
...     waited: int
...     longest: int | None
>>> decode(Queue, {"waited": 3, "later": True}, "queue")
Queue(waited=3, longest=None)
>>> encode(Queue(3, None))
{'waited': 3, 'longest': None}
>>> decode(Queue, {"waited": "x"}, "queue")
Traceback (most recent call last):
prony.model.json_codec.ShapeError: queue.waited: expected a whole number of at least 0, found "x"
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum, StrEnum
from functools import cache
from types import MappingProxyType, NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

Json = dict[str, Any]

T = TypeVar("T")

OPTIONAL: Mapping[str, object] = MappingProxyType({"optional": True})
"""Metadata of a field that is left out of the JSON where it has its default."""

REST: Mapping[str, object] = MappingProxyType({"rest": True})
"""Metadata of a mapping that takes every key which no other field names."""

INLINE: Mapping[str, object] = MappingProxyType({"inline": True})
"""Metadata of a field whose own fields stand in the same object as it."""

# Wider than any count or time, and no arithmetic on it overflows a float.
_MOST_WHOLE = 2**128
_MOST_NUMBER = 1e200
_LONGEST_SHOWN = 60


def at(*path: str) -> Mapping[str, object]:
    """Return metadata of a field that has another name in JSON, or lies in an object of its own there."""
    return {"path": path}


class ShapeError(ValueError):
    """A value of another shape: its place, what was expected there, and what was found."""

    def __init__(self, expected: str, found: object, *path: str) -> None:
        super().__init__(expected, found, *path)
        self.expected, self.found, self.path = expected, found, path

    def __str__(self) -> str:
        place = "".join(f".{name}" if name[:1] != "[" else name for name in self.path).removeprefix(".")
        return f"{place}: expected {self.expected}, found {_shown(self.found)}"


class _Nothing:
    """What is not there."""


_NOTHING = _Nothing()
_Decoder = Callable[[object], Any]


def _shown(value: object) -> str:
    match value:
        case _Nothing():
            return "nothing"
        case dict():
            return "an object"
        case list() | tuple():
            return "an array"
        case int() if abs(value) >= _MOST_WHOLE:
            return "a larger one"
        case _:
            text = json.dumps(value, default=repr)
            return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


# --- decoding ---------------------------------------------------------------------------------------------


def decode(kind: type[T], value: object, place: str) -> T:
    """Return ``value``, which was read from JSON, as a ``kind``; ``place`` names it in errors.

    *Errors*: ShapeError.
    """
    found: T = _placed(_decoder(cast("Hashable", kind)), value, place)
    return found


def _whole(value: object) -> int:
    if type(value) is int and 0 <= value < _MOST_WHOLE:
        return value
    raise ShapeError("a whole number of at least 0", value)


def _number(value: object) -> float:
    # Not a number fails every comparison. A whole one stays what it is, so that it is written as it was read.
    if type(value) in (int, float) and -_MOST_NUMBER < value < _MOST_NUMBER:  # type: ignore[operator]
        return value  # type: ignore[return-value]
    raise ShapeError("a number", value)


def _truth(value: object) -> bool:
    if type(value) is bool:
        return value
    raise ShapeError("true or false", value)


def _text(value: object) -> str:
    if type(value) is str:
        return value
    raise ShapeError("text", value)


def _null(value: object) -> None:
    if value is not None:
        raise ShapeError("null", value)


def _setting(value: object) -> int | str:
    if isinstance(value, (int, str)):
        return value
    raise ShapeError("a whole number or text", value)


def _base64(value: object) -> bytes:
    # As it is where a database holds it beside the JSON.
    if type(value) is bytes:
        return value
    try:
        return b64decode(_text(value), validate=True)
    except ValueError:
        raise ShapeError("base64", value) from None


def _anything(value: object) -> object:
    return value


_PLAIN: Mapping[object, _Decoder] = {
    int: _whole,
    float: _number,
    bool: _truth,
    str: _text,
    NoneType: _null,
    bytes: _base64,
    object: _anything,
}


@cache
def _decoder(kind: Any) -> _Decoder:
    """Return what decodes a type; made once for each."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind in _PLAIN:
        return _PLAIN[kind]
    if origin in (Union, UnionType):
        return _one_of(inner)
    if origin is tuple:
        return _several(_decoder(inner[0])) if inner[-1] is ... else _fixed([*map(_decoder, inner)])
    if origin in (Mapping, dict):
        return _mapping(*map(_decoder, inner))
    if is_dataclass(kind):
        return _object(kind)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return _word(kind)
    raise TypeError(f"no JSON has the shape of {kind}")


def _one_of(kinds: tuple[Any, ...]) -> _Decoder:
    """Return what decodes one of several: None or a type, or objects with a ``kind`` each."""
    if NoneType in kinds:
        rest = tuple(kind for kind in kinds if kind is not NoneType)
        return _or_null(_decoder(rest[0]) if len(rest) == 1 else _one_of(rest))
    if set(kinds) == {int, str}:
        return _setting
    by_kind = {kind.KIND: _decoder(kind) for kind in kinds}
    expected = f"one of {', '.join(by_kind)}"

    def decoded(value: object) -> Any:
        if type(value) in kinds:
            return value
        name = _items(value).get("kind", _NOTHING)
        if not isinstance(name, str) or name not in by_kind:
            raise ShapeError(expected, name, "kind")
        return by_kind[name](value)

    return decoded


def _or_null(inner: _Decoder) -> _Decoder:
    def decoded(value: object) -> Any:
        return None if value is None else inner(value)

    return decoded


def _items(value: object) -> dict[str, Any]:
    if type(value) is dict:
        return value
    raise ShapeError("an object", value)


def _array(value: object) -> "list[object] | tuple[object, ...]":
    if isinstance(value, (list, tuple)):
        return value
    raise ShapeError("an array", value)


def _several(inner: _Decoder) -> _Decoder:
    def decoded(value: object) -> tuple[Any, ...]:
        found = _array(value)
        return tuple(_placed(inner, one, f"[{index}]") for index, one in enumerate(found))

    return decoded


def _fixed(inner: list[_Decoder]) -> _Decoder:
    def decoded(value: object) -> tuple[Any, ...]:
        found = _array(value)
        if len(found) != len(inner):
            raise ShapeError(f"an array of {len(inner)}", value)
        both = zip(inner, found, strict=True)
        return tuple(_placed(each, one, f"[{index}]") for index, (each, one) in enumerate(both))

    return decoded


def _mapping(key: _Decoder, inner: _Decoder) -> _Decoder:
    def decoded(value: object) -> dict[str, Any]:
        items = _items(value).items()
        return {_placed(key, name, name): _placed(inner, one, name) for name, one in items}

    return decoded


def _placed(inner: _Decoder, value: object, *path: str) -> Any:
    """Return what is decoded; what is wrong with it lies at ``path``. What is not there reads as None."""
    try:
        return inner(None if value is _NOTHING else value)
    except ShapeError as error:
        found = ShapeError(error.expected, value) if value is _NOTHING else error
        raise ShapeError(found.expected, found.found, *path, *found.path) from None


def _word(kind: type[StrEnum]) -> _Decoder:
    known = {each.value: each for each in kind}
    expected = f"one of {', '.join(known)}"

    def decoded(value: object) -> StrEnum:
        if not isinstance(value, str) or value not in known:
            raise ShapeError(expected, value)
        return known[value]

    return decoded


def _object(kind: Any) -> _Decoder:
    """Return what decodes a dataclass. An instance of it passes as it is."""
    read = [(_path(one), inner, _default(one)) for one, inner in _inner(kind)]

    def decoded(value: object) -> Any:
        if type(value) is kind:
            return value
        items, found = _items(value), []
        for path, inner, default in read:
            one = items.get(path[0], _NOTHING) if len(path) == 1 else _at(items, path)
            if one is _NOTHING:
                found.append(_placed(inner, one, *path) if default is MISSING else default)
                continue
            # As `_placed` does, without a call: an archive holds some hundred thousand of these.
            try:
                found.append(inner(one))
            except ShapeError as error:
                raise ShapeError(error.expected, error.found, *path, *error.path) from None
        return kind(*found)

    return decoded


def _inner(kind: Any) -> "Iterator[tuple[Field[Any], _Decoder]]":
    """Yield the fields of a dataclass, each with what decodes it."""
    hints = get_type_hints(kind)
    for one in fields(kind):
        inner = _decoder(hints[one.name])
        yield one, _without(_names(kind), inner) if "rest" in one.metadata else inner


def _without(names: frozenset[str], inner: _Decoder) -> _Decoder:
    return lambda value: inner({name: one for name, one in _items(value).items() if name not in names})


def _names(kind: Any) -> frozenset[str]:
    """Return the keys that the fields of a dataclass take, those of its inline fields among them."""
    hints = get_type_hints(kind)
    inline = (_names(hints[one.name]) for one in fields(kind) if "inline" in one.metadata)
    return frozenset(path[0] for one in fields(kind) if (path := _path(one))).union(*inline)


def _at(items: Mapping[str, object], path: tuple[str, ...]) -> object:
    found: object = items
    for name in path:
        found = found.get(name, _NOTHING) if isinstance(found, dict) else _NOTHING
    return found


def _path(one: "Field[Any]") -> tuple[str, ...]:
    """Return where a field lies; what has no key of its own lies in the object itself."""
    if "inline" in one.metadata or "rest" in one.metadata:
        return ()
    return tuple(one.metadata.get("path", (one.name,)))


def _default(one: "Field[Any]") -> object:
    return one.default if one.default_factory is MISSING else one.default_factory()


# --- encoding ---------------------------------------------------------------------------------------------


def encode(value: object, of_object: "Callable[[Any], Json] | None" = None) -> Any:
    """Return a value as JSON has it: what ``decode`` reads back as the same. ``of_object``: what dataclasses
    become in place of that.
    """
    match value:
        case Enum():
            return value.value
        case bytes():
            return b64encode(value).decode("ascii")
        case tuple() | list():
            return [encode(one, of_object) for one in value]
        case Mapping():
            return {_key(name): encode(one, of_object) for name, one in value.items()}
        case _ if is_dataclass(value) and not isinstance(value, type):
            return (of_object or _encode_object)(value)
        case _:
            return value


def _key(name: object) -> str:
    """Return a mapping's key: a word, a number, or numbers such as ``1,2``."""
    if isinstance(name, tuple):
        return ",".join(map(str, name))
    return str(name.value if isinstance(name, Enum) else name)


@cache
def _written(kind: Any) -> tuple[tuple[str, tuple[str, ...], object], ...]:
    """Return of each field its name, its path, and the value that is left out."""
    return tuple(
        (one.name, _path(one), _default(one) if "optional" in one.metadata else _NOTHING)
        for one in fields(kind)
    )


def _encode_object(value: object) -> dict[str, Any]:
    kind = getattr(value, "KIND", None)
    found: dict[str, Any] = {} if kind is None else {"kind": kind}
    for name, path, left_out in _written(cast("Hashable", type(value))):
        one = getattr(value, name)
        if not path:
            found |= encode(one)
        elif one != left_out:
            place = found
            for each in path[:-1]:
                place = place.setdefault(each, {})
            place[path[-1]] = encode(one)
    return found
