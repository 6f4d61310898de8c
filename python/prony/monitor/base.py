"""The roles of monitors: count between two moments, read the values of one moment.

Must not know what is watched.

>>> [one.__name__ for one in (WindowCounters, Gauges)]
['WindowCounters', 'Gauges']
"""

from typing import Protocol


class WindowCounters(Protocol):
    """Reads cumulative figures at the start and at the end of the window."""

    def open_window(self) -> None:
        """Read the figures at the start of the window."""
        ...

    def close_window(self) -> None:
        """Read the figures at the end of the window."""
        ...

    def deltas(self) -> tuple[dict[str, int], dict[str, str]]:
        """Return the differences by name, and the reason for each missing one."""
        ...


class Gauges(Protocol):
    """Reads momentary values, by name, with each sample of the processes."""

    def read(self) -> dict[str, int]:
        """Return the values that are cheap enough to read with every sample."""
        ...

    def read_at_open(self) -> dict[str, int]:
        """Return more, or newer, values at the start of the window."""
        ...

    def read_at_close(self) -> dict[str, int]:
        """Return more, or newer, values at the end of the window."""
        ...

    def missing(self) -> dict[str, str]:
        """Return the reason for each value that could not be read."""
        ...

    def close(self) -> None:
        """Stop reading."""
        ...
