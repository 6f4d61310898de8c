r"""Text from outside, made safe to print: nothing in it moves a cursor, hides letters or reverses them.

Names come from archives and catalogues, logs and bodies from servers, arguments from whoever wrote a script.
Pure.

>>> escaped("a\x1b[2K\rb"), plain("a\x1b[31mb")
('a\\x1b[2K\\rb', 'ab')

*Source*: control characters: ECMA-48, sections 5.2 and 5.3; bidirectional controls: UAX #9.
"""

import re

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_SEQUENCES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?")


def escaped(text: str) -> str:
    r"""Return ``text`` with all that cannot be seen written as escapes: for what somebody has to judge.

    >>> escaped("a\r\nb\u202e")
    'a\\r\\nb\\u202e'
    """
    return "".join(map(_escaped_letter, text))


def _escaped_letter(letter: str) -> str:
    return letter if letter.isprintable() else letter.encode("unicode_escape", "backslashreplace").decode()


def escaped_lines(text: str) -> str:
    r"""Return ``text`` likewise, with its line ends and tabs: for whole messages.

    >>> escaped_lines("a\n\tb\x1b")
    'a\n\tb\\x1b'
    """
    return "".join(letter if letter in "\n\t" else _escaped_letter(letter) for letter in text)


def shortened(text: str, most: int = 60) -> str:
    """Return the beginning of a text that may be long, on one line.

    >>> shortened("a" * 9, 5), shortened("a\\nb")
    ('aaaaa…', 'a\\\\nb')
    >>> len(shortened(chr(10) * 9, 5))
    6
    """
    shown = escaped(text[: most + 1])
    return shown if len(shown) <= most else f"{shown[:most]}…"


def plain(text: str) -> str:
    r"""Return ``text`` without control sequences and control characters: for reports.

    Line ends stay, tabs become spaces.

    >>> plain("\x1b[31mred\x1b[0m \x9b1A\ttext")
    'red 1A    text'
    """
    return _CONTROLS.sub("", _SEQUENCES.sub("", text)).replace("\t", "    ")
