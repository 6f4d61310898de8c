"""What each machine of a fleet does: it runs its share of the load, beats, and reads its clock.

Runs in Dask's worker process; must not know Dask.

Pure: it is given the time.

>>> FleetMember(lambda beat: None, HereGenerator()).clock() > 0
True

>>> watch = Liveness(["a", "b"], now_ns=0, silence_ns=1000)
>>> watch.look(600)
()
>>> watch.beat("a")
>>> watch.look(1200), watch.look(1400)
(('b',), ())
"""

import contextlib
import json
import os
import platform
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from prony.core.errors import EngineError
from prony.core.units import DAY_NS, MILLISECOND_NS, SECOND_NS
from prony.core.version import prony_version
from prony.engine.answers import with_authority
from prony.engine.child_process import Child
from prony.machine.fingerprint import generator_fingerprint
from prony.model.json_codec import Json, encode

BEAT_EVERY_S = 0.2
SILENCE_NS = 1200 * MILLISECOND_NS
"""Six beats: a loss is noticed in less than 1.5 s, and a machine that is saturated has time to beat."""

# Between two looks. What lies beyond that, this side was stopped or starved itself, and heard nobody.
_LONGEST_STEP_NS = 300 * MILLISECOND_NS


class Liveness:
    """Looks for the silent; ``beat`` may be called from any thread.

    ``grace_ns``: so much more time there is for the first beat.
    """

    def __init__(
        self, names: Iterable[str], now_ns: int, silence_ns: int = SILENCE_NS, grace_ns: int = 0
    ) -> None:
        self._silence_ns = silence_ns
        self._last_look_ns = now_ns
        self._awake_ns = 0
        self._heard_ns = dict.fromkeys(names, grace_ns)

    def beat(self, name: str, grace_ns: int = 0) -> None:
        """Note a sign of life; until the next one there may be so much more silence."""
        if name in self._heard_ns:
            self._heard_ns[name] = self._awake_ns + grace_ns

    def ended(self, name: str) -> None:
        """Expect no more of this one."""
        self._heard_ns.pop(name, None)

    def look(self, now_ns: int) -> tuple[str, ...]:
        """Return who is newly lost."""
        self._awake_ns += min(now_ns - self._last_look_ns, _LONGEST_STEP_NS)
        self._last_look_ns = now_ns
        lost = tuple(
            name for name, heard_ns in self._heard_ns.items() if self._awake_ns - heard_ns > self._silence_ns
        )
        for name in lost:
            self.ended(name)
        return lost


# The other side reads the clock every second: without it, nobody waits for the load any more.
_LEASE_NS = 5 * SECOND_NS


def facts() -> Json:
    """Return what the other side checks before a load, version and architecture, and what it keeps."""
    return {
        "version": prony_version(),
        "machine": platform.machine(),
        "host": socket.gethostname(),
        "cpus": len(os.sched_getaffinity(0)),
        "pid": os.getpid(),
        "is_root": os.geteuid() == 0,
        "fingerprint": encode(generator_fingerprint()),
    }


class Generator(Protocol):
    """What sends the load of one machine."""

    def run(self, spec: Json, authority: str | None, on_event: Callable[[Json], None]) -> str:
        """Run a specification to its end and return its Recording as JSON. ``authority``: of the server's
        certificates, whose file is on another machine.

        *Errors*: EngineError.
        """

    def cancel(self) -> None:
        """End the load, from any thread: its Recording says that it was interrupted."""


class HereGenerator:
    """The engine in this process."""

    def __init__(self) -> None:
        self._cancelled = threading.Event()

    def run(self, spec: Json, authority: str | None, on_event: Callable[[Json], None]) -> str:
        """See ``Generator``."""
        from prony import _engine

        self._cancelled.clear()
        is_over = False

        def heard(text: str) -> None:
            nonlocal is_over
            on_event(json.loads(text))
            # The first interrupt ends the load, so it is raised once.
            if not is_over and self._cancelled.is_set():
                is_over = True
                raise KeyboardInterrupt

        try:
            with with_authority(spec, authority) as whole:
                return _engine.run(json.dumps(whole), heard)
        except _engine.EngineError as error:
            raise EngineError(str(error)) from error
        except KeyboardInterrupt:
            raise EngineError("the load was cancelled before it began") from None

    def cancel(self) -> None:
        """See ``Generator``."""
        self._cancelled.set()


class SeatedGenerator:
    """The engine in a process of its own, which is started first and takes the seat with its load."""

    def __init__(self, seat: Json) -> None:
        self._seat = seat
        self._child = Child("prony.engine.child")

    def started(self) -> AbstractContextManager[None]:
        """Start it: within the block this process may give up its rights."""
        return self._child.started()

    def run(self, spec: Json, authority: str | None, on_event: Callable[[Json], None]) -> str:
        """See ``Generator``. The other side sets the deadline; the authority's file is on this machine."""
        del authority
        order = {"spec": spec, "seat": self._seat}
        return json.dumps(self._child.run(order, DAY_NS, on_event).said)

    def cancel(self) -> None:
        """See ``Generator``."""
        self._child.cancel()


class FleetMember:
    """One generator of a fleet. ``say``: sends a beat to the other side, from any thread; ``clock_ns``: what
    it answers of its clock.
    """

    def __init__(
        self,
        say: Callable[[Json], None],
        generator: Generator,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._say = say
        self._generator = generator
        self._clock_ns = clock_ns
        self._heard_ns = time.monotonic_ns()
        self._progress: Json | None = None

    def clock(self) -> int:
        """Return this machine's CLOCK_MONOTONIC; whoever asks still waits for the load."""
        self._heard_ns = time.monotonic_ns()
        return self._clock_ns()

    def cancel(self) -> None:
        """End the load now; its Recording says that it was interrupted."""
        self._generator.cancel()

    def generate(self, order: bytes) -> bytes:
        """Run an order's load to its end; return ``{"recording": ...}`` or ``{"error": ...}``, as JSON."""
        asked = json.loads(order)
        self._progress = None
        self._heard_ns = time.monotonic_ns()
        with self._beating():
            try:
                recording = self._generator.run(asked["spec"], asked["authority"], self._on_event)
            except EngineError as error:
                return json.dumps({"error": error.message}).encode()
        return b'{"recording":' + recording.encode() + b"}"

    def _on_event(self, event: Json) -> None:
        """Note the progress, say at once what else happens, and end a load that nobody waits for."""
        if event["event"] == "progress":
            self._progress = event
        else:
            self._say({"event": event})
        if time.monotonic_ns() - self._heard_ns > _LEASE_NS:
            self._generator.cancel()

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
            self._say({"has_ended": True})

    def _beat_until(self, over: threading.Event) -> None:
        while not over.is_set():
            self._say({"progress": self._progress})
            over.wait(BEAT_EVERY_S)
