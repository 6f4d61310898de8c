"""Tiny arithmetic for catalogue values such as ``2*{cpus}+1``.

Whole numbers, names in braces, ``+ - * //`` and brackets. Read as Python, and worked out here: catalogue
files may come from elsewhere.

Placeholders: ``{name}`` in a catalogue's texts. Nothing else is special.

>>> calculate("2*{cpus}+1", {"cpus": 2})
5

>>> fill("{host}:{port}", {"host": "127.0.0.1", "port": 8000})
'127.0.0.1:8000'
"""

import ast
import operator
import re
from collections.abc import Callable, Mapping

_WRITTEN = re.compile(r"(?:\s*(?:[0-9]{1,9}(?![0-9])|\{[a-z][a-z0-9_]*\}|//|[-+*()]))+\s*")
_OPERATORS: Mapping[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}

# No expression in a catalogue is longer, and recursion stays far below Python's limit.
_LONGEST = 200

_EXPECTED = "expected whole numbers, names in braces, `+ - * //` and brackets, such as `2*{cpus}+1`"


def calculate(text: str, names: Mapping[str, int]) -> int:
    """Return the value of the expression ``text``.

    *Errors*: ValueError naming the text, for anything outside the grammar, an unknown name or a division by
    zero.
    """
    for name in sorted(names_in(text) - names.keys()):
        known = ", ".join(f"`{{{one}}}`" for one in sorted(names))
        raise ValueError(f"`{text}` uses the unknown name `{{{name}}}`; expected one of {known}")
    try:
        # An underscore makes a keyword a name.
        return _value(ast.parse(_PLACEHOLDER.sub(r" \1_ ", text).strip(), mode="eval").body, names)
    except ZeroDivisionError:
        raise ValueError(f"`{text}` divides by zero") from None
    except (SyntaxError, TypeError, MemoryError):
        raise ValueError(f"`{text}` is not an expression; {_EXPECTED}") from None


def _value(node: ast.expr, names: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(int(value)):
            return value
        case ast.Name(name):
            return names[name[:-1]]
        case ast.BinOp(left, kind, right) if type(kind) in _OPERATORS:
            return _OPERATORS[type(kind)](_value(left, names), _value(right, names))
    raise TypeError("no arithmetic")


def names_in(text: str) -> frozenset[str]:
    """Return the names that the expression ``text`` uses.

    *Errors*: ValueError when ``text`` is outside the grammar.
    """
    if len(text) > _LONGEST:
        raise ValueError(f"an expression has {len(text)} characters; expected at most {_LONGEST}")
    if _WRITTEN.fullmatch(text) is None:
        raise ValueError(f"`{text}` is not an expression; {_EXPECTED}")
    return frozenset(_PLACEHOLDER.findall(text))


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
    """Return why ``value`` may not be filled in, or None when it may.

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
