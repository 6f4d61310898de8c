"""Tiny arithmetic for catalogue values such as ``2*{cpus}+1``.

Whole numbers, names in braces, ``+ - * //`` and brackets.
A grammar of its own instead of ``eval``: catalogue files may come from elsewhere. Must not know what the
names mean.

Placeholders: ``{name}`` in a catalogue's texts. Nothing else is special.

>>> calculate("2*{cpus}+1", {"cpus": 2})
5

>>> fill("{host}:{port}", {"host": "127.0.0.1", "port": 8000})
'127.0.0.1:8000'
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


# --- placeholders -----------------------------------------------------------------------------------------


_PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)\}")


def placeholders(text: str) -> frozenset[str]:
    """Return the names of the placeholders in ``text``.

    *Errors*: ValueError when a brace belongs to no placeholder.
    """
    rest = _PLACEHOLDER.sub("", text)
    if "{" in rest or "}" in rest:
        raise ValueError(f"`{text}` has a brace that is not part of a placeholder; expected `{{name}}`")
    return frozenset(_PLACEHOLDER.findall(text))


def fill(text: str, values: Mapping[str, int | str]) -> str:
    """Return ``text`` with its placeholders filled, in one pass: values are not searched for placeholders.

    *Errors*: KeyError for a name without a value; the catalogue's rules refuse such entries earlier.
    """
    return _PLACEHOLDER.sub(lambda match: str(values[match.group(1)]), text)


def check_text_value(value: str) -> str | None:
    """Return why ``value`` may not be filled in, or null when it may.

    A value may become part of a command line or a configuration file: characters that could start a new line,
    statement or placeholder are refused.
    """
    if any(character in value for character in ";{"):
        return "text without `;` and `{`"
    if not value.isprintable():
        return "text without line breaks and control characters"
    return None


def render(text: str, values: Mapping[str, object]) -> str:
    """Return a file's template, filled with ``values``.

    Jinja's sandbox lets a template access only these; a name without a value is an error.

    *Errors*: ValueError with the problem of the template and its line.
    """
    from jinja2 import StrictUndefined, TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    try:
        return environment.from_string(text).render(values)
    except TemplateError as error:
        line = getattr(error, "lineno", None)
        raise ValueError(f"{f'line {line}: ' if line else ''}{error}") from None
    except (ArithmeticError, LookupError, TypeError) as error:
        # What a template's own expressions may do.
        raise ValueError(f"{type(error).__name__}: {error}") from None


def names_in_template(text: str) -> frozenset[str]:
    """Return the names that a file's template uses.

    *Errors*: ValueError as `render`.
    """
    from jinja2 import TemplateError, meta
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    try:
        return frozenset(meta.find_undeclared_variables(ImmutableSandboxedEnvironment().parse(text)))
    except TemplateError as error:
        raise ValueError(str(error)) from None
