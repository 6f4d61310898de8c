"""What the command line prints: data on standard output, talk on standard error.

The only place of `cli` that prints text. Names and values in it may come from anybody: all is escaped.

SIGTERM, SIGHUP and Ctrl-C end Prony in the same way: all of them stop servers and keep results.

Prony keeps ignoring the signals that it was started to ignore: `nohup` ignores SIGHUP, and a script's shell
ignores Ctrl-C for programs in the background (Python does not change that).

*Source*: POSIX.1-2017, "nohup", and "Shell Command Language", section 2.11, "Signals and Error Handling".
"""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from io import TextIOWrapper
from types import FrameType

from prony.core.errors import ExitCode
from prony.core.safe_text import escaped_lines


class Terminated(KeyboardInterrupt):
    """A signal other than Ctrl-C, which it names, asked the process to end."""


def status_of(interrupt: KeyboardInterrupt | None) -> ExitCode:
    """Return the exit status of an interrupt; None: Ctrl-C.

    >>> status_of(Terminated("SIGHUP")).value, status_of(KeyboardInterrupt()).value
    (129, 130)
    """
    if not isinstance(interrupt, Terminated):
        return ExitCode.INTERRUPTED
    return ExitCode.HUNG_UP if interrupt.args == ("SIGHUP",) else ExitCode.TERMINATED


def ending_as_signalled(command: Callable[..., int]) -> Callable[..., int]:
    """Return a command that SIGTERM and SIGHUP interrupt as Ctrl-C does, with the status of the signal."""

    @wraps(command)
    def heeding(*given: object, **named: object) -> int:
        with terminate_as_interrupt() as signals:
            try:
                status = command(*given, **named)
            except KeyboardInterrupt:
                status = ExitCode.INTERRUPTED
        return status_of(signals[0]) if signals and status == ExitCode.INTERRUPTED else status

    return heeding


@contextmanager
def terminate_as_interrupt() -> Iterator[list[Terminated]]:
    """Within the block, SIGTERM and SIGHUP raise `Terminated`, as Ctrl-C raises KeyboardInterrupt, unless
    they are ignored. Yields a list that gets each of them: whoever they reach may go on to its end.
    """
    seen: list[Terminated] = []

    def terminate(number: int, frame: FrameType | None) -> None:
        seen.append(Terminated(signal.Signals(number).name))
        raise seen[-1]

    heeded = [one for one in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) != signal.SIG_IGN]
    before = {number: signal.signal(number, terminate) for number in heeded}
    try:
        yield seen
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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
