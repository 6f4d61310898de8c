"""What each machine of a fleet does: it runs its share of the load, beats, and reads its clock.

Runs in Dask's worker process; must not know Dask.

>>> FleetMember(lambda beat: None).clock() > 0
True
"""

import contextlib
import json
import os
import platform
import socket
import threading
import time
from collections.abc import Callable, Iterator

from prony.engine.fleet.liveness import BEAT_EVERY_S
from prony.model import Json
from prony.units import SECOND_NS
from prony.version import prony_version

__all__ = ["FleetMember", "facts"]

# The other side reads the clock every second: without it, nobody waits for the load any more.
_LEASE_NS = 5 * SECOND_NS


def facts() -> Json:
    """Return what the other side checks before a load: versions and machine."""
    return {
        "version": prony_version(),
        "machine": platform.machine(),
        "host": socket.gethostname(),
        "cpus": len(os.sched_getaffinity(0)),
        "pid": os.getpid(),
    }


class FleetMember:
    """One generator of a fleet. ``say``: sends a beat to the other side, from any thread."""

    def __init__(self, say: Callable[[Json], None]) -> None:
        self._say = say
        self._heard_ns = time.monotonic_ns()
        self._cancelled = threading.Event()
        self._progress: Json | None = None

    def clock(self) -> int:
        """Return this machine's CLOCK_MONOTONIC; whoever asks still waits for the load."""
        self._heard_ns = time.monotonic_ns()
        return time.monotonic_ns()

    def cancel(self) -> None:
        """End the load now; its Recording says that it was interrupted."""
        self._cancelled.set()

    def generate(self, order: bytes) -> bytes:
        """Run a specification to its end and return ``{"recording": ...}`` or ``{"error": ...}``, as JSON."""
        from prony import _engine

        self._cancelled.clear()
        self._progress = None
        self._heard_ns = time.monotonic_ns()
        with self._beating():
            try:
                recording = _engine.run(order.decode(), self._on_event())
            except _engine.EngineError as error:
                return json.dumps({"error": str(error)}).encode()
            except KeyboardInterrupt:
                return json.dumps({"error": "the load was cancelled before it began"}).encode()
        return b'{"recording":' + recording.encode() + b"}"

    def _on_event(self) -> Callable[[str], None]:
        """Return what notes the progress; the first interrupt ends the load, so it is raised once."""
        is_over = False

        def on_event(text: str) -> None:
            nonlocal is_over
            event = json.loads(text)
            if event["event"] == "progress":
                self._progress = event
            if not is_over and self._has_to_end():
                is_over = True
                raise KeyboardInterrupt

        return on_event

    def _has_to_end(self) -> bool:
        return self._cancelled.is_set() or time.monotonic_ns() - self._heard_ns > _LEASE_NS

    @contextlib.contextmanager
    def _beating(self) -> Iterator[None]:
        over = threading.Event()
        thread = threading.Thread(target=self._beat_until, args=(over,), name="prony-beat", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _beat_until(self, over: threading.Event) -> None:
        while not over.is_set():
            self._say({"progress": self._progress})
            over.wait(BEAT_EVERY_S)
