"""Placeholders: ``{name}`` in a catalogue's texts. Nothing else is special.

Must not know which names exist.

>>> fill("{host}:{port}", {"host": "127.0.0.1", "port": 8000})
'127.0.0.1:8000'
"""

import re
from collections.abc import Mapping

__all__ = ["check_text_value", "fill", "placeholders"]

_PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)\}")


def placeholders(text: str) -> frozenset[str]:
    """Return the names that ``text`` asks for.

    *Errors*: ValueError when a brace belongs to no placeholder.
    """
    rest = _PLACEHOLDER.sub("", text)
    if "{" in rest or "}" in rest:
        raise ValueError(f"`{text}` has a brace that belongs to no placeholder; expected `{{name}}`")
    return frozenset(_PLACEHOLDER.findall(text))


def fill(text: str, values: Mapping[str, int | str]) -> str:
    """Return ``text`` with its placeholders filled, in one pass: values are not searched for more.

    *Errors*: KeyError for a name without a value; the catalogue's check refuses such entries beforehand.
    """
    return _PLACEHOLDER.sub(lambda match: str(values[match.group(1)]), text)


def check_text_value(value: str) -> str | None:
    """Return why ``value`` may not be filled in, or null when it may.

    A value may end in a command line or a configuration file: what could start a new line, statement or
    placeholder is refused.
    """
    if any(character in value for character in ";{"):
        return "text without `;` and `{`"
    if not value.isprintable():
        return "text without line breaks and control characters"
    return None
