"""The role of a load generator.

Must not know how a generator works.

>>> Engine.__name__
'Engine'
"""

from collections.abc import Callable
from typing import Protocol

from prony.errors import EngineError
from prony.model import Address, Json, Recording, Workload
from prony.model.recording import decode_recording
from prony.model.shapes import ShapeError
from prony.sandbox.base import EngineSeat

__all__ = ["Engine", "OnEvent", "recording_of"]

OnEvent = Callable[[Json], None]


def recording_of(reported: object) -> Recording:
    """Return the Recording that a generator reported as JSON.

    *Errors*: EngineError when it is of another shape.
    """
    try:
        return decode_recording(reported)
    except ShapeError as error:
        raise EngineError(f"the generator reported a Recording that cannot be read: {error}") from error


class Engine(Protocol):
    """Sends a load to an address."""

    def run(self, workload: Workload, address: Address, seat: EngineSeat, on_event: OnEvent) -> Recording:
        """Run the load to its end and return the Recording; ``on_event`` receives each event.

        *Errors*: EngineError when it could not run; errors of ``on_event``, after the load is stopped.
        """
        ...

    def cancel(self) -> None:
        """Stop the running load, from any thread: ``run`` returns a Recording marked as interrupted."""
        ...
