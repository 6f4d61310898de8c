"""Tiny arithmetic for catalogue values such as ``2*{cpus}+1``.

Whole numbers, names in braces, ``+ - * //`` and brackets.
A grammar of its own instead of ``eval``: catalogue files may come from elsewhere. Must not know what the
names mean.

>>> calculate("2*{cpus}+1", {"cpus": 2})
5
"""

import re
from collections.abc import Mapping

_TOKEN = re.compile(r"\s*(?:(?P<number>\d{1,9})|\{(?P<name>[a-z][a-z0-9_]*)\}|(?P<operator>//|[-+*()]))")

# No expression in a catalogue is longer, and recursion stays far below Python's limit.
_LONGEST = 200

_EXPECTED = "expected whole numbers, names in braces, `+ - * //` and brackets, such as `2*{cpus}+1`"


def calculate(text: str, names: Mapping[str, int]) -> int:
    """Return the value of the expression ``text``.

    *Errors*: ValueError naming the text, for anything outside the grammar, an unknown name or a division by
    zero.
    """
    parser = _Parser(text, names)
    value = parser.sum()
    if parser.left():
        raise ValueError(f"`{text}` is not an expression; {_EXPECTED}")
    return value


def names_in(text: str) -> frozenset[str]:
    """Return the names that the expression ``text`` uses.

    *Errors*: ValueError when ``text`` is outside the grammar.
    """
    return frozenset(value for kind, value in _tokens(text) if kind == "name")


def _tokens(text: str) -> list[tuple[str, str]]:
    if len(text) > _LONGEST:
        raise ValueError(f"an expression has {len(text)} characters; expected at most {_LONGEST}")
    tokens: list[tuple[str, str]] = []
    position = 0
    stripped = text.rstrip()
    while position < len(stripped):
        match = _TOKEN.match(stripped, position)
        if match is None or match.lastgroup is None:
            raise ValueError(f"`{text}` is not an expression; {_EXPECTED}")
        tokens.append((match.lastgroup, match.group(match.lastgroup)))
        position = match.end()
    return tokens


class _Parser:
    """Recursive descent: sum := product (('+' | '-') product)*; product := atom (('*' | '//') atom)*."""

    def __init__(self, text: str, names: Mapping[str, int]) -> None:
        self._text = text
        self._names = names
        self._tokens = _tokens(text)
        self._next = 0

    def left(self) -> bool:
        return self._next < len(self._tokens)

    def sum(self) -> int:
        value = self._product()
        while operator := self._operator("+", "-"):
            right = self._product()
            value = value + right if operator == "+" else value - right
        return value

    def _product(self) -> int:
        value = self._atom()
        while operator := self._operator("*", "//"):
            right = self._atom()
            if operator == "//" and right == 0:
                raise ValueError(f"`{self._text}` divides by zero")
            value = value * right if operator == "*" else value // right
        return value

    def _atom(self) -> int:
        kind, value = self._take()
        match kind:
            case "number":
                return int(value)
            case "name" if value in self._names:
                return self._names[value]
            case "name":
                known = ", ".join(f"`{{{name}}}`" for name in sorted(self._names))
                raise ValueError(
                    f"`{self._text}` uses the unknown name `{{{value}}}`; expected one of {known}"
                )
            case "operator" if value == "(":
                inner = self.sum()
                if self._operator(")"):
                    return inner
        raise ValueError(f"`{self._text}` is not an expression; {_EXPECTED}")

    def _operator(self, *wanted: str) -> str:
        if self.left() and self._tokens[self._next] in [("operator", operator) for operator in wanted]:
            return self._take()[1]
        return ""

    def _take(self) -> tuple[str, str]:
        if not self.left():
            return ("end", "")
        self._next += 1
        return self._tokens[self._next - 1]
