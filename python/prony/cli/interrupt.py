"""SIGTERM, SIGHUP and Ctrl-C end Prony in the same way: all of them stop servers and keep results.

Prony keeps ignoring the signals that it was started to ignore: `nohup` ignores SIGHUP, and a script's shell
ignores Ctrl-C for programs in the background (Python does not change that).

*Source*: POSIX.1-2017, "nohup", and "Shell Command Language", section 2.11, "Signals and Error Handling".
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Terminated(KeyboardInterrupt):
    """A signal other than Ctrl-C asked the process to end."""


@contextmanager
def terminate_as_interrupt() -> Iterator[None]:
    """Within the block, SIGTERM and SIGHUP raise `Terminated`, as Ctrl-C raises KeyboardInterrupt, unless
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
