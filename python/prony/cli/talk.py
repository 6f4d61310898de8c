"""What the command line prints: data on standard output, talk on standard error.

The only place of `cli` that prints text. Names and values in it may come from anybody: all is escaped.
"""

import sys
from contextlib import suppress
from io import TextIOWrapper

from prony.escapes import escaped_lines


def show(text: str, end: str = "\n") -> None:
    """Print data, in the encoding of standard output (`prony.cli.main`)."""
    print(escaped_lines(text), end=end, flush=True)  # noqa: T201 - what it is for


def show_page(text: str) -> None:
    """Print a page, which says itself that it is UTF-8."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    show(text)


def say(text: str) -> None:
    """Print what is no data: progress, hints, errors."""
    # There is no other place to say that standard error is full; the exit code says how it ended.
    with suppress(OSError):
        print(escaped_lines(text), file=sys.stderr, flush=True)  # noqa: T201 - what it is for
