"""What the command line prints: data on standard output, talk on standard error.

The only place of `cli` that prints text. Names and values in it may come from anybody: all is escaped.
"""

from contextlib import suppress

import typer

from prony.escapes import escaped_lines

__all__ = ["say", "show"]


def show(text: str, end: str = "\n") -> None:
    """Print data."""
    typer.echo(escaped_lines(text) + end, nl=False)


def say(text: str) -> None:
    """Print what is no data: progress, hints, errors."""
    # There is no other place to say that standard error is full; the exit code says how it ended.
    with suppress(OSError):
        typer.echo(escaped_lines(text), err=True)
