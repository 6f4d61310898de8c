"""Placeholders: ``{name}`` in a catalogue's texts. Nothing else is special.

Must not know which names exist.

>>> fill("{host}:{port}", {"host": "127.0.0.1", "port": 8000})
'127.0.0.1:8000'
"""

import re
from collections.abc import Mapping

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
