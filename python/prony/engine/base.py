"""The role of a load generator.

Must not know how a generator works.

>>> Engine.__name__
'Engine'
"""

from collections.abc import Callable
from typing import Protocol

from prony.model import Address, Json, Workload
from prony.sandbox.base import EngineSeat

__all__ = ["Engine", "OnEvent"]

OnEvent = Callable[[Json], None]


class Engine(Protocol):
    """Sends a load to an address."""

    def run(self, workload: Workload, address: Address, seat: EngineSeat, on_event: OnEvent) -> Json:
        """Run the load to its end and return the Recording; ``on_event`` receives each event.

        *Errors*: EngineError when it could not run; errors of ``on_event``, after the load is stopped.
        """
        ...

    def cancel(self) -> None:
        """Stop the running load, from any thread: ``run`` returns a Recording marked as interrupted."""
        ...
