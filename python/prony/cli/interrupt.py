"""SIGTERM, SIGHUP and Ctrl-C take one way out, so that all of them stop servers and keep results."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Terminated", "terminate_as_interrupt"]


class Terminated(KeyboardInterrupt):
    """The process was asked to end by a signal other than Ctrl-C."""


@contextmanager
def terminate_as_interrupt() -> Iterator[None]:
    """Within the block, SIGTERM and SIGHUP raise `Terminated`, as Ctrl-C raises KeyboardInterrupt."""

    def terminate(number: int, frame: FrameType | None) -> None:
        raise Terminated(signal.Signals(number).name)

    before = {number: signal.signal(number, terminate) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
