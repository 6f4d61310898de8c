"""Text with known numbers: each number names its value and its place in the report's JSON.

Only `Figure` turns a number into text. A plain string in a template has no digit; what may have digits
is a `Name`, or a `Quote` of a sentence that the JSON has word for word.

>>> from prony.core.units import format_count
>>> blocks = Figure(3, format_count, "/plan/blocks")
>>> str(text("{} after {} blocks", Name("a2"), blocks))
'a2 after 3 blocks'
>>> text("{}", blocks).figures
(Figure(value=3, form=<function format_count at ...>, pointer='/plan/blocks'),)
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Figure:
    """A number: its value, its form, and its JSON pointer in the report's JSON.

    A pointer to a list or an object stands for the number of its items. *Source*: RFC 6901.
    """

    value: float
    form: Callable[[float], str]
    pointer: str

    def __str__(self) -> str:
        return self.form(self.value)


@dataclass(frozen=True, slots=True)
class Name:
    """Text that may contain digits but is no figure: a name, a version, a command, a constant."""

    words: str

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence that the report's JSON has at ``pointer``, shown unchanged."""

    words: str
    pointer: str

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True, slots=True)
class Text:
    """Parts, one after the other."""

    parts: tuple[str | Figure | Name | Quote, ...] = ()

    def __str__(self) -> str:
        return "".join(map(str, self.parts))

    def __bool__(self) -> bool:
        return bool(str(self))

    @property
    def figures(self) -> tuple[Figure, ...]:
        """The numbers in it."""
        return tuple(part for part in self.parts if isinstance(part, Figure))

    def mapped(self, change: Callable[[str], str], quoted: Callable[[str], str]) -> "Text":
        """Return the text with ``quoted`` applied to quotes, and ``change`` to the rest except numbers."""
        return Text(
            tuple(_changed(part, quoted if isinstance(part, Quote) else change) for part in self.parts)
        )


def _changed(part: str | Figure | Name | Quote, change: Callable[[str], str]) -> str | Figure | Name | Quote:
    match part:
        case str():
            return change(part)
        case Figure():
            return part
        case _:
            return replace(part, words=change(part.words))


Words = str | Text
"""What a Document holds: plain words, or text with figures."""
Part = str | Figure | Name | Quote | Text
EMPTY = Text()


def text(template: str, *parts: Part) -> Text:
    """Return ``template`` with each ``{}`` replaced by the next part.

    *Errors*: ValueError when their numbers differ.
    """
    words = template.split("{}")
    if len(words) != len(parts) + 1:
        raise ValueError(f"`{template}` has {len(words) - 1} places; expected {len(parts)}")
    first, *others = words
    pairs = zip(parts, others, strict=True)
    return Text(tuple(_flat([first, *(each for part, after in pairs for each in (part, after))])))


def _flat(parts: Iterable[Part]) -> Iterable[str | Figure | Name | Quote]:
    for part in parts:
        if isinstance(part, Text):
            yield from part.parts
        elif part:
            yield part


def framed(before: str, words: Text, after: str = "") -> Text:
    """Return words with what stands before and after them; empty where there are none."""
    return text("{}{}{}", before, words, after) if words else EMPTY


def joined(parts: Iterable[Part], by: str = ", ") -> Text:
    """Return parts with ``by`` between them."""
    own = list(parts)
    return Text(tuple(_flat(each for k, part in enumerate(own) for each in ([by, part] if k else [part]))))


def listed(parts: Iterable[Part], most: int = 4) -> Text:
    """Return parts with commas, those beyond ``most`` as a number.

    >>> str(listed(["a", "b", "c"], most=2))
    'a, b and 1 more'
    """
    own = list(parts)
    told = joined(own[:most])
    # It counts the parts that are not shown: no value of the report.
    return text("{} and {} more", told, Name(str(len(own) - most))) if len(own) > most else told


def counted(count: Figure, noun: str) -> Text:
    """Return a number of things.

    >>> from prony.core.units import format_count
    >>> [str(counted(Figure(count, format_count, ""), "block")) for count in (1, 1200)]
    ['1 block', '1,200 blocks']
    """
    return text(f"{{}} {noun}{'' if count.value == 1 else 's'}", count)


def each_of(of: object, at: str, form: Callable[[float], str], *names: str) -> tuple[Figure, ...]:
    """Return fields of a value, none of them None, each with its place below ``at``."""
    return tuple(Figure(getattr(of, name), form, at + pointer(name)) for name in names)


def pointer(*steps: str | int) -> str:
    """Return the JSON pointer of these steps.

    >>> pointer("groups", 0, "answer", "comparisons", "wrk 2 × 80/s")
    '/groups/0/answer/comparisons/wrk 2 × 80~1s'
    """
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in steps)
