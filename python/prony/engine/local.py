"""The built-in engine in this process: for a load without a study.

Must not know trials.

>>> LocalEngine(EngineChoice()).cancel()
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from prony.engine.base import NO_REQUESTS, OnEvent, RequestDescriptors, descriptor_of, recording_of
from prony.errors import EngineError, UsageError
from prony.model.address import Address
from prony.model.workload import EngineChoice, Workload
from prony.specification import to_spec

if TYPE_CHECKING:
    from prony.model.recording import Recording
    from prony.seat import EngineSeat


class LocalEngine:
    """See ``Engine``. It uses only the CPUs of the seat; without CPUs, workers are not pinned.

    ``latencies``: a file that gets a row for each request of the window, while the load runs. ``fresh``: is
    asked at each event for the addresses of new connections; null: they stay. ``requests``: descriptors of
    files with requests, by their digests.
    """

    def __init__(
        self,
        choice: EngineChoice,
        latencies: Path | None = None,
        fresh: "Callable[[], Sequence[str] | None]" = lambda: None,
        requests: RequestDescriptors = NO_REQUESTS,
    ) -> None:
        self._choice = choice
        self._latencies = latencies
        self._fresh = fresh
        self._requests = requests

    def run(self, workload: Workload, address: Address, seat: "EngineSeat", on_event: OnEvent) -> "Recording":
        """Run the load to its end, in the caller's thread, and return the Recording.

        *Errors*: EngineError; UsageError for what the engine does not send; KeyboardInterrupt when a signal
        ends it.
        """
        # Imported where it is used: archives can be read without it.
        from prony import _engine

        def heard(event: str) -> Sequence[str] | None:
            on_event(json.loads(event))
            return self._fresh()

        spec = to_spec(workload, address, self._choice, seat.cpus or None)
        try:
            descriptor = descriptor_of(workload, self._requests)
            told = _engine.run(json.dumps(spec), heard, self._latencies, descriptor)
        except _engine.EngineError as error:
            kind = UsageError if error.kind == "invalid_spec" else EngineError
            raise kind(str(error)) from error
        return recording_of(json.loads(told))

    def cancel(self) -> None:
        """Do nothing: the caller's own signals stop it."""
