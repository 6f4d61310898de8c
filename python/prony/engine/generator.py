"""The role of a load generator.

>>> Engine.__name__
'Engine'

>>> OnLoss("partial").value
'partial'
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from prony.core.errors import EngineError
from prony.model.address import Address
from prony.model.json_codec import Json, ShapeError
from prony.model.workload import Workload

if TYPE_CHECKING:
    from prony.model.recording import Recording
    from prony.model.sandbox import EngineSeat

OnEvent = Callable[[Json], None]
RequestDescriptors = Mapping[str, int]
"""Descriptors of open files with requests, by the digests by which loads name them."""
NO_REQUESTS: RequestDescriptors = MappingProxyType({})


def descriptor_of(workload: Workload, requests: RequestDescriptors) -> int | None:
    """Return the descriptor of the file that a load has its requests in; None: it has none.

    *Errors*: EngineError where that is not there.
    """
    file = workload.mix.file if workload.mix else None
    if file is None:
        return None
    if file.sha256 not in requests:
        raise EngineError(
            f"the requests of `{file.name}` are not here; expected a generator of this machine alone"
        )
    return requests[file.sha256]


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


class Engine(Protocol):
    """Sends a load to an address."""

    def run(self, workload: Workload, address: Address, seat: "EngineSeat", on_event: OnEvent) -> "Recording":
        """Run the load to its end and return the Recording; ``on_event`` receives each event.

        *Errors*: EngineError when it could not run; errors of ``on_event``, after the load is stopped.
        """


# --- what becomes of a load that loses a generator --------------------------------------------------------


class OnLoss(StrEnum):
    """Nothing, or the account of the others."""

    INVALID = "invalid"
    PARTIAL = "partial"
