"""Values as JSON: dataclasses as objects with a key for each field, and for each property that is `shown`.
What a value is made of is what its JSON has: there is no second list of keys.

Units stand in names; what is not there is null, or an object with the reason. Unlike `json_codec.encode` it
writes every key, and nothing reads it back.

>>> from dataclasses import dataclass, field
>>> from prony.model.json_codec import at
>>> @dataclass(frozen=True)
... class Trials:
...     ok: int
...     total: int = field(metadata=at("trials"))
...
...     @shown
...     def all_ok(self) -> bool:
...         return self.ok == self.total
>>> json_of({(1, 2): Trials(3, 4)})
{'1,2': {'ok': 3, 'trials': 4, 'all_ok': False}}
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import Field, dataclass, fields
from functools import cache, partial
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Generic, TypeVar, cast, get_type_hints

from prony.model.json_codec import Json, encode

INTERNAL: Mapping[str, object] = MappingProxyType({"internal": True})
"""Metadata of a field that a report's JSON does not have."""

T = TypeVar("T")
Words = Mapping[type, Mapping[str, Callable[[Any], object]]]
"""What JSON has of values of a type beside what they hold: functions, by key."""
NO_WORDS: Words = MappingProxyType({})


class shown(Generic[T]):  # noqa: N801 - a decorator, as `property`
    """A property that JSON has, under its own name."""

    def __init__(self, getter: Callable[[Any], T], name: str | None = None) -> None:
        self.getter, self.name = getter, getter.__name__ if name is None else name
        self.__doc__ = getter.__doc__

    def __get__(self, value: object, kind: type) -> T:
        return cast("T", self) if value is None else self.getter(value)


def shown_as(name: str) -> Callable[[Callable[[Any], T]], shown[T]]:
    """Return the mark of a property that has another name in JSON; "": its keys stand in the same object."""
    return lambda getter: shown(getter, name)


@dataclass(frozen=True, slots=True)
class Key:
    """A key of an object: where it stands (empty: its keys are the object's own), the ``name`` of the
    attribute that it shows, its type, and how the value is had.
    """

    path: tuple[str, ...]
    name: str
    type: object
    get: Callable[[Any], object]


def keys_of(kind: type, words: Words) -> tuple[Key, ...]:
    """Return what is shown of values of a dataclass: its fields, its properties that are shown, and words."""
    more = (_of_function(one, name) for name, one in words.get(kind, {}).items())
    return *_own(cast("Hashable", kind)), *more


@cache
def _own(kind: Any) -> tuple[Key, ...]:
    hints = get_type_hints(kind)
    of_fields = (_of_field(one, hints[one.name]) for one in fields(kind) if "internal" not in one.metadata)
    properties = (one for one in vars(kind).values() if isinstance(one, shown))
    return *of_fields, *(_of_function(one.getter, one.name) for one in properties)


def _of_field(one: "Field[Any]", hint: object) -> Key:
    is_open = "inline" in one.metadata or "rest" in one.metadata
    path = () if is_open else tuple(one.metadata.get("path", (one.name,)))
    return Key(path, one.name, hint, attrgetter(one.name))


@cache
def _of_function(function: Callable[[Any], object], name: str) -> Key:
    returns = get_type_hints(function)["return"]
    return Key((name,) if name else (), function.__name__, returns, function)


def json_of(value: object, words: Words = NO_WORDS) -> Any:
    """Return a value as a report's JSON has it."""
    return encode(value, partial(_object, words=words))


def _object(value: object, words: Words) -> Json:
    kind = type(value)
    found: Json = {"kind": kind.KIND} if hasattr(kind, "KIND") else {}
    for key in keys_of(kind, words):
        one, place = json_of(key.get(value), words), found
        for name in key.path[:-1]:
            place = place.setdefault(name, {})
        place.update({key.path[-1]: one} if key.path else one or {})
    return found
