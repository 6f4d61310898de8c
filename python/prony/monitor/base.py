"""The roles of monitors: one watches a source while a load runs, another counts between two moments.

Must not know what is watched.

>>> Monitor.__name__
'Monitor'
"""

from typing import Protocol

__all__ = ["Monitor", "WindowCounters"]


class Monitor(Protocol):
    """Watches one source from ``start`` to ``stop``, and at each moment that the caller chooses."""

    def start(self) -> None:
        """Begin to watch."""
        ...

    def sample(self) -> None:
        """Look now."""
        ...

    def stop(self) -> None:
        """End; a second call does nothing."""
        ...


class WindowCounters(Protocol):
    """Reads cumulative figures when the window opens and when it closes."""

    def open_window(self) -> None:
        """Read at the beginning."""
        ...

    def close_window(self) -> None:
        """Read at the end."""
        ...

    def deltas(self) -> tuple[dict[str, int], dict[str, str]]:
        """Return what was counted by name, and of what is missing the reasons."""
        ...
