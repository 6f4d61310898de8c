"""The role of a load generator.

Must not know how a generator works.

>>> Engine.__name__
'Engine'
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from prony.errors import EngineError
from prony.model.address import Address
from prony.model.shapes import Json, ShapeError
from prony.model.workload import Workload

if TYPE_CHECKING:
    # A generator's own process imports this module, and has none of what a fleet needs.
    from prony.engine.fleet.address import Fleet
    from prony.model.recording import Recording
    from prony.sandbox.cgroup.base import ControlGroup
    from prony.seat import EngineSeat

OnEvent = Callable[[Json], None]


def recording_of(reported: object) -> "Recording":
    """Return the Recording that a generator reported as JSON.

    *Errors*: EngineError when it is of another shape.
    """
    # The load has ended by then; to import it takes a while.
    from prony.model.recording import decode_recording

    try:
        return decode_recording(reported)
    except ShapeError as error:
        raise EngineError(f"the generator reported a Recording that cannot be read: {error}") from error


@dataclass(frozen=True, slots=True)
class Means:
    """What a trial has for its generator.

    ``ceiling_per_s``: what the built-in one can reach on this machine under its load, if known; ``machines``:
    of the generator ``fleet``; ``group``: makes a control group of a name, where there are groups.
    """

    ceiling_per_s: float | None = None
    machines: "Fleet | None" = None
    group: "Callable[[str], ControlGroup] | None" = None


class Engine(Protocol):
    """Sends a load to an address."""

    def run(self, workload: Workload, address: Address, seat: "EngineSeat", on_event: OnEvent) -> "Recording":
        """Run the load to its end and return the Recording; ``on_event`` receives each event.

        *Errors*: EngineError when it could not run; errors of ``on_event``, after the load is stopped.
        """
        ...

    def cancel(self) -> None:
        """Stop the running load, from any thread: ``run`` returns a Recording marked as interrupted."""
        ...
