"""Standard output as a command has it: what it does not take is an error with a reason, never a crash."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper

from prony.errors import HostError


class _Output(TextIOWrapper):
    """A stream that says when it is full; a reader that has gone stays a BrokenPipeError."""

    def write(self, text: str) -> int:
        """Write; errors: HostError."""
        with _with_reason():
            return super().write(text)

    def flush(self) -> None:
        """Hand over what was written; errors: HostError."""
        with _with_reason():
            super().flush()


@contextmanager
def _with_reason() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        to_nowhere()
        raise HostError(
            f"standard output cannot be written: {error.strerror}",
            hint="make room, or send the output elsewhere",
        ) from error


def guard() -> None:
    """Put it in the place of standard output. A letter that its encoding lacks is written as an escape.

    A standard stream that is closed becomes an empty one: else the next file that is opened would be it.
    """
    _reopen()
    if sys.stdout is not sys.__stdout__ or not isinstance(sys.stdout, TextIOWrapper):
        return
    encoding, lines = sys.stdout.encoding, sys.stdout.line_buffering
    sys.stdout = _Output(
        sys.stdout.detach(), encoding=encoding, errors="backslashreplace", line_buffering=lines
    )


def _reopen() -> None:
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    # Python has no object for a stream that was closed.
    for name, number in (("__stdout__", 1), ("__stderr__", 2)):
        if getattr(sys, name) is None:
            stream = open(number, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - as long as the process
            setattr(sys, name, stream)
            setattr(sys, name.strip("_"), stream)


def to_nowhere() -> None:
    """Lose all that is still to be written: Python writes it at exit, and would complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
