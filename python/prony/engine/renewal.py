"""A name that is looked up again while a load runs: where its new connections go.

>>> list(changes_of("shop", ("192.0.2.1",), ("192.0.2.2", "192.0.2.1")))
['`shop` has changed: new connections also go to 192.0.2.2']
"""

from collections.abc import Callable, Iterator, Sequence
from queue import Empty, SimpleQueue
from threading import Event, Thread
from types import TracebackType
from typing import Self

from prony.errors import PronyError


class Renewal:
    """Looks a name up again every so often, in a thread of its own, from ``with`` on.

    ``look_up``: returns the addresses that may be loaded; where it raises a PronyError, for a name that has
    none or one that is not allowed, the addresses stay as they are. ``say``: gets the words for each change,
    in the thread that calls ``fresh``.
    """

    def __init__(
        self,
        name: str,
        addresses: Sequence[str],
        look_up: Callable[[], Sequence[str]],
        every_s: float,
        say: Callable[[str], None],
    ) -> None:
        self._name, self._addresses, self._look_up, self._say = name, tuple(addresses), look_up, say
        self._every_s = every_s
        self._found: SimpleQueue[tuple[str, ...] | str] = SimpleQueue()
        self._is_over = Event()
        self._last = ""

    def __enter__(self) -> Self:
        # A look-up may take longer than the load.
        Thread(target=self._look, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()

    def fresh(self) -> list[str] | None:
        """Return the addresses for new connections where they have changed since the last call."""
        before = self._addresses
        try:
            while True:
                self._take(self._found.get_nowait())
        except Empty:
            return list(self._addresses) if self._addresses != before else None

    def _look(self) -> None:
        while not self._is_over.wait(self._every_s):
            try:
                self._found.put(tuple(self._look_up()))
            except PronyError as error:
                self._found.put(str(error))

    def _take(self, found: tuple[str, ...] | str) -> None:
        """Take what a look-up found, or why it failed; what is as before is not said again."""
        if isinstance(found, str):
            words = [f"{found}; new connections go on to {', '.join(self._addresses)}"]
        else:
            words = list(changes_of(self._name, self._addresses, found))
        for one in words:
            if one != self._last:
                self._say(one)
        self._last = words[-1] if words else ""
        # A server of names may give them in any order.
        if not isinstance(found, str) and set(found) != set(self._addresses):
            self._addresses = found


def changes_of(name: str, before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """Yield words for what has changed of the addresses of a name: none where nothing has."""
    added = [one for one in after if one not in before]
    gone = [one for one in before if one not in after]
    also = " also" if len(gone) < len(before) else ""
    words = [f"new connections{also} go to {', '.join(added)}"] if added else []
    words += [f"none go to {', '.join(gone)} any more"] if gone else []
    if words:
        yield f"`{name}` has changed: {', '.join(words)}"
