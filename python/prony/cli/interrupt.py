"""SIGTERM, SIGHUP and Ctrl-C take one way out, so that all of them stop servers and keep results.

What Prony was started to ignore it goes on to ignore: `nohup` ignores SIGHUP, and a script's shell ignores
Ctrl-C for what it starts in the background (Python leaves that as it is).

*Source*: POSIX.1-2017, "nohup", and "Shell Command Language", section 2.11, "Signals and Error Handling".
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Terminated", "terminate_as_interrupt"]


class Terminated(KeyboardInterrupt):
    """The process was asked to end by a signal other than Ctrl-C."""


@contextmanager
def terminate_as_interrupt() -> Iterator[None]:
    """Within the block, SIGTERM and SIGHUP raise `Terminated`, as Ctrl-C raises KeyboardInterrupt; not where
    they are ignored.
    """

    def terminate(number: int, frame: FrameType | None) -> None:
        raise Terminated(signal.Signals(number).name)

    heeded = [one for one in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) != signal.SIG_IGN]
    before = {number: signal.signal(number, terminate) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
