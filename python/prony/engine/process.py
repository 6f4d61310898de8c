"""The built-in engine as a child process: in the subject's network, with a hard deadline.

>>> ProcessEngine.__name__, LocalEngine.__name__
('ProcessEngine', 'LocalEngine')
"""

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from pathlib import Path

from prony.core.errors import EngineError, UsageError
from prony.engine.child_process import SPARE_NS, Child
from prony.engine.generator import NO_REQUESTS, OnEvent, RequestDescriptors, descriptor_of, recording_of
from prony.model.address import Address
from prony.model.json_codec import Json
from prony.model.recording import Recording
from prony.model.sandbox import EngineSeat
from prony.model.workload import EngineChoice, Workload
from prony.plan.engine_spec import hard_limit_ns, to_spec


class ProcessEngine:
    """See ``Engine``. One run at a time."""

    def __init__(
        self,
        choice: EngineChoice,
        spare_ns: int = SPARE_NS,
        ceiling_per_s: float | None = None,
        requests: RequestDescriptors = NO_REQUESTS,
    ) -> None:
        self._choice = choice
        self._spare_ns = spare_ns
        self._ceiling_per_s = ceiling_per_s
        self._requests = requests
        self._child = Child("prony.engine.child", descriptors=tuple(requests.values()))

    def staying(self) -> AbstractContextManager[None]:
        """Within the block one process sends all loads: a short one costs no start."""
        return self._child.staying()

    def run(self, workload: Workload, address: Address, seat: EngineSeat, on_event: OnEvent) -> Recording:
        """Run the load to its end and return the Recording.

        *Errors*: EngineError when it could not run, died, or missed the deadline; errors of ``on_event``.
        """
        told = self._child.run(*self._order(workload, address, seat), on_event)
        recording = recording_of(told.said)
        return replace(recording, generator=replace(recording.generator, processes=told.processes))

    def run_short(
        self, workload: Workload, address: Address, seat: EngineSeat, on_event: OnEvent
    ) -> Recording:
        """As ``run``, for a load that is too short for samples of the generator: there are none."""
        return recording_of(self._child.run_unwatched(*self._order(workload, address, seat), on_event))

    def _order(self, workload: Workload, address: Address, seat: EngineSeat) -> tuple[Json, int]:
        """Return the order to the child, and how long it may take."""
        spec = to_spec(workload, address, self._choice, seat.cpus, self._ceiling_per_s)
        order = {"spec": spec, "seat": asdict(seat), "requests": descriptor_of(workload, self._requests)}
        return order, hard_limit_ns(workload) + self._spare_ns


# --- the built-in engine in this process ------------------------------------------------------------------


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
