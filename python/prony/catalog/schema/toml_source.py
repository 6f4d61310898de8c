"""Reads a TOML file with exact errors: file, line, field, what was found and what was expected."""

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from errno import EFBIG
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from prony.core.errors import UsageError
from prony.core.trees import content
from prony.core.units import KIB

Place = tuple[str | int, ...]
Entry = TypeVar("Entry", bound=BaseModel)

# The largest entry of the catalogue is a tenth of this; a larger file is not an entry and is not read.
_LARGEST_FILE_BYTES = 256 * KIB

_LONGEST_SHOWN = 60

_EXPECTED = {
    "extra_forbidden": "no such field",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "string_type": "text",
    "bool_type": "`true` or `false`",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "string_too_short": "a text that is not empty",
    "model_attributes_type": "a table",
    "finite_number": "a finite number",
}

_TOO_FEW = "at least one"

_PATTERNS = {
    "^[^\\x00": "one line of text without control characters",
    "^https?": "a web address",
    "^(2\\.7|3": "a minor version of CPython: `2.7`, or from 3.4 on, such as `3.8`",
    "^[a-z0-9]+(-": "a name of small letters, digits and single hyphens, at most 64 characters",
    "^[a-z][a-z0-9_]*$": "a key of small letters, digits and `_`, at most 64 characters",
    "^[A-Za-z0-9][A-Za-z0-9.+@_-]": "a package's name",
    "^[A-Za-z0-9][A-Za-z0-9._-]": "a plain file name, without folders",
    "^([A-Za-z_][A-Za-z0-9_]*(": "`module:attribute`, or the name of a .psgi, .php or .ru file",
    "^[A-Za-z_][A-Za-z0-9_]*$": "the name of an environment variable",
    "^[ -~]*$": "one line of plain ASCII text",
    "^/": "a path that starts with `/`",
    "^[A-Z]+$": "an HTTP method in capitals",
    "^[A-Za-z0-9-]+$": "a header's name",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of a file: the place, what was found (null: nothing), what was expected."""

    place: Place
    found: object
    expected: str


@dataclass(frozen=True, slots=True)
class TomlSource:
    """A TOML file: its text, for finding lines, and its content."""

    path: Path
    text: str
    data: dict[str, Any]

    def line_of(self, place: Place) -> int:
        """Return the line on which ``place`` begins, or the closest existing parent of it."""
        existing = _existing(self.data, place)
        return 1 if not existing else _first_line(self.text, existing)


class SourceError(UsageError):
    """A file of the catalogue is invalid; ``lines`` has one line for each problem."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__("\n".join(lines), hint="docs/reference/catalogue-format.md describes these files")
        self.lines = tuple(lines)


def read_toml(path: Path) -> TomlSource:
    """Return the TOML file at ``path``.

    *Errors*: SourceError when it cannot be read, is too large, or is not TOML.
    """
    try:
        raw = content(path, _LARGEST_FILE_BYTES)
    except OSError as error:
        larger = f"is larger than {_LARGEST_FILE_BYTES} bytes; expected a catalogue entry"
        why = larger if error.errno == EFBIG else f"cannot be read: {error.strerror}"
        raise SourceError([f"{path}: {why}"]) from error
    try:
        text = raw.decode()
        return TomlSource(path, text, tomllib.loads(text))
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise SourceError([f"{path}:{line}: is not UTF-8 text"]) from error
    except tomllib.TOMLDecodeError as error:
        raise SourceError([_syntax_error(path, text, str(error))]) from error
    except RecursionError as error:
        raise SourceError([f"{path}: is nested too deeply; expected a catalogue entry"]) from error


def validate(source: TomlSource, kind: type[Entry]) -> Entry:
    """Return the file's content as ``kind``.

    *Errors*: SourceError with all problems of the file.
    """
    try:
        return kind.model_validate(source.data)
    except ValidationError as error:
        found = [_problem(source.data, dict(item)) for item in error.errors(include_url=False)]
        raise problems_error(source, _merged(found)) from error


def problems_error(source: TomlSource, problems: Iterable[Problem]) -> SourceError:
    """Return the error with all ``problems`` of a file, in the order of its lines, each once."""
    numbered = {(source.line_of(problem.place), _sentence(problem)) for problem in problems}
    return SourceError([f"{source.path}:{line} {sentence}" for line, sentence in sorted(numbered)])


def _sentence(problem: Problem) -> str:
    field = ".".join(str(part) for part in problem.place) or "(the file)"
    if problem.found is None:
        return f"{field}: is missing"
    shown = str(problem.found).lower() if isinstance(problem.found, bool) else str(problem.found)
    shown = "".join(character if character.isprintable() else "·" for character in shown)
    if isinstance(problem.found, str) and problem.expected.startswith(("a whole number", "`true`")):
        shown = f'"{shown}"'
    if len(shown) > _LONGEST_SHOWN:
        shown = f"{shown[:_LONGEST_SHOWN]}…"
    return f"{field}: found `{shown}`; expected {problem.expected}"


def _merged(problems: Sequence[Problem]) -> list[Problem]:
    """Merge problems of the same place; leave out that a list is too short if its items have problems."""
    by_place: dict[Place, list[Problem]] = {}
    for problem in problems:
        by_place.setdefault(problem.place, []).append(problem)
    return [
        Problem(place, same[0].found, " or ".join(dict.fromkeys(problem.expected for problem in same)))
        for place, same in by_place.items()
        if not (
            same[0].expected == _TOO_FEW and any(other[: len(place)] == place != other for other in by_place)
        )
    ]


def _problem(data: Any, item: dict[str, Any]) -> Problem:
    kind = str(item["type"])
    if kind == "missing":
        return Problem(_named_place(data, item["loc"]), None, "")
    place = _without_tag(data, _named_place(data, item["loc"]))
    match kind:
        case "extra_forbidden":
            return Problem(place, place[-1], _EXPECTED[kind])
        case "union_tag_invalid":
            return Problem((*place, _discriminator(item)), item["ctx"]["tag"], _expected(kind, item))
        case "union_tag_not_found":
            return Problem((*place, _discriminator(item)), None, "")
    return Problem(place, _short(item["input"]), _expected(kind, item))


def _discriminator(item: dict[str, Any]) -> str:
    """Return the key of a table that says which kind of table it is."""
    return str(item["ctx"]["discriminator"]).strip("'")


def _expected(kind: str, item: dict[str, Any]) -> str:
    context: dict[str, Any] = item.get("ctx", {})
    match kind:
        case "string_pattern_mismatch":
            return _described(str(context["pattern"]))
        case "literal_error" | "enum" | "union_tag_invalid":
            expected = str(context.get("expected") or context.get("expected_tags"))
            return "one of " + expected.replace("'", "`").replace(" or ", ", ")
        case "value_error":
            message = str(context["error"])
            return message.partition("expected ")[2] or message
        case "too_short":
            return _TOO_FEW
        case "greater_than" | "greater_than_equal" | "less_than" | "less_than_equal" | "string_too_long":
            return _limit(context)
    return _EXPECTED.get(kind) or str(item["msg"]).lower()


def _limit(context: dict[str, Any]) -> str:
    if "gt" in context:
        return f"more than {context['gt']}"
    if "lt" in context:
        return f"less than {context['lt']}"
    limit = context.get("le", context.get("max_length"))
    return f"at least {context['ge']}" if "ge" in context else f"at most {limit}"


def _described(pattern: str) -> str:
    described = (text for start, text in _PATTERNS.items() if pattern.startswith(start))
    return next(described, f"text of the form `{pattern}`")


def _short(value: object) -> object:
    match value:
        case dict():
            return "a table"
        case list():
            return "a list"
    return value


def _named_place(data: Any, location: Iterable[str | int]) -> Place:
    """Return pydantic's location without `[key]` marks and tags of unions, except one that comes last.

    Its last part may be missing.
    """
    parts = [part for part in location if part != "[key]"]
    place: list[str | int] = []
    node = data
    for position, part in enumerate(parts):
        inside = _inside(node, part)
        if inside:
            node = node[part]
            place.append(part)
        elif position == len(parts) - 1 and isinstance(node, dict) and isinstance(part, str):
            place.append(part)
    return tuple(place)


def _without_tag(data: Any, place: Place) -> Place:
    # A tag that comes last looks like a missing field: the members of a union are named in lower case after
    # their types.
    node = data
    for part in place[:-1]:
        node = node[part]
    tags = ("int", "str", "bool", "text", "conditional", "choice")
    return place[:-1] if place and place[-1] in tags and not _inside(node, place[-1]) else place


def _inside(node: Any, part: str | int) -> bool:
    match node:
        case dict():
            return part in node
        case list():
            return isinstance(part, int) and part < len(node)
    return False


def _existing(data: Any, place: Place) -> Place:
    node = data
    for depth, part in enumerate(place):
        if not _inside(node, part):
            return place[:depth]
        node = node[part]
    return place


def _first_line(text: str, place: Place) -> int:
    """Return the line where ``place`` begins: from the shortest prefix of the file that contains it."""
    lines = text.splitlines()
    start = 0
    for end in range(1, len(lines) + 1):
        try:
            data = tomllib.loads("\n".join(lines[:end]))
        except tomllib.TOMLDecodeError:
            continue  # inside a value of several lines
        if len(_existing(data, place)) == len(place):
            break
        start = end
    else:
        return 1
    while start < end - 1 and (not lines[start].strip() or lines[start].lstrip().startswith("#")):
        start += 1
    return start + 1


def _syntax_error(path: Path, text: str, message: str) -> str:
    what, _, where = message.partition(" (at ")
    number = "".join(character for character in where.partition(",")[0] if character.isdigit())
    line = number or str(len(text.splitlines()))
    return f"{path}:{line}: is not TOML: {what[:1].lower()}{what[1:]}"
