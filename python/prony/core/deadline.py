"""Ends what takes more CPU time than it may, wherever it is: for what reads bytes of others.

>>> from prony.core.errors import UsageError
>>> with cpu_deadline(9.0, lambda: UsageError("it takes too long")):
...     sum(range(10))
45
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Where something that cannot fail was interrupted, such as the end of an object, the next one counts.
_AGAIN_S = 1.0


@contextmanager
def cpu_deadline(allowed_s: float, too_much: Callable[[], Exception]) -> Iterator[None]:
    """Raise ``too_much()`` when the block takes more CPU time of this process; in the main thread only."""

    def give_up(_number: int, _frame: object) -> None:
        raise too_much()

    before = signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, allowed_s, _AGAIN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
