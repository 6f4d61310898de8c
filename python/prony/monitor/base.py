"""The role of a monitor: watches one source while a load runs.

Must not know what is watched.

>>> Monitor.__name__
'Monitor'
"""

from typing import Protocol

__all__ = ["Monitor"]


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
