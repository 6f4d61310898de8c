"""The roles of monitors: to watch while a load runs, to count between two moments, to read a moment.

Must not know what is watched.

>>> Monitor.__name__
'Monitor'
"""

from typing import Protocol

__all__ = ["Gauges", "Monitor", "WindowCounters"]


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


class Gauges(Protocol):
    """Reads figures of the moment, by name, beside each sample of the processes."""

    def read(self) -> dict[str, int]:
        """Return what can be had cheaply, at any sample."""
        ...

    def read_at_open(self) -> dict[str, int]:
        """Return what more there is, or again, when the window opens."""
        ...

    def read_at_close(self) -> dict[str, int]:
        """Return what more there is, or again, when the window closes."""
        ...

    def missing(self) -> dict[str, str]:
        """Return the reasons for what could not be read."""
        ...

    def close(self) -> None:
        """Read no more."""
        ...
