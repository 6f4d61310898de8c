"""A generator on the machine from which the user asked: each load goes there through a pipe, and its events
come back.

One line of JSON each: ``{"load": K, "spec": ..., "limit_ns": ..., "authority": ...}`` and ``{"cancel": K}``
there; ``{"load": K, "event": ...}``, ``{"load": K, "recording": ..., "machine": ...}`` or ``{"load": K,
"error": ...}`` back, as `prony.engine.answers` reads them. Clocks are not compared: an event is dated when it
arrives.

>>> next(Pipe(0, 1).numbers)
1
"""

import itertools
import json
import os
import select
import time
from dataclasses import replace

from prony.core.errors import EngineError
from prony.core.lines import Lines, json_object
from prony.core.units import SECOND_NS, seconds
from prony.engine.answers import MachineFacts, event_in, read_facts, recording_in, text_of
from prony.engine.child_process import SPARE_NS
from prony.engine.generator import OnEvent, recording_of
from prony.model.address import Address
from prony.model.json_codec import Json
from prony.model.recording import GeneratorMachine, Recording
from prony.model.sandbox import EngineSeat
from prony.model.workload import EngineChoice, Workload
from prony.plan.engine_spec import hard_limit_ns, to_spec

# The other side has a deadline of its own, and says so.
_BEYOND_NS = 30 * SECOND_NS
_SHOWN_BYTES = 200
# As long as a target waits for a beat.
_SILENCE_MS = 20_000
_PEER = "the asker's"
_GONE = "the machine that sends the load is gone"


class Pipe:
    """Lines in both directions, and blocks of bytes: of all loads of a study, for what is left of one that
    failed comes later. ``read``, ``write``: descriptors. ``lines``: what comes. ``peer``: who is
    there, in words. ``longest``: the most bytes of one of its messages; null: any number.
    """

    def __init__(
        self, read: int, write: int, peer: str = "the other side", longest: int | None = None
    ) -> None:
        self._write, self._peer = write, peer
        self.lines = Lines(read, longest)
        self.numbers = itertools.count(1)

    def send(self, message: Json) -> None:
        """Send one line of JSON.

        *Errors*: OSError when nobody reads it.
        """
        self.send_block(json.dumps(message).encode() + b"\n")

    def send_block(self, data: bytes) -> None:
        """Send bytes as they are.

        *Errors*: OSError when nobody reads them; where the descriptor does not block, TimeoutError when that
        takes longer than 20 s.
        """
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._write, left) :]
            except BlockingIOError:
                taken = select.poll()
                taken.register(self._write, select.POLLOUT)
                if not taken.poll(_SILENCE_MS):
                    raise TimeoutError from None

    def message(self, silence_s: float | None = None) -> Json | None:
        """Return the next message; None at the end, or when nothing comes for so long.

        *Errors*: EngineError for what is none.
        """
        line: bytes | None = None
        try:
            line = self.lines.line(silence_s)
            return None if line is None else json_object(line)
        except ValueError as error:
            shown = repr(line[:_SHOWN_BYTES]) if line else str(error)
            raise EngineError(f"{self._peer} sent what is no message of Prony's: {shown}") from error


class PipeEngine:
    """See ``Engine``. One run at a time."""

    def __init__(self, choice: EngineChoice, pipe: Pipe) -> None:
        self._choice, self._pipe = choice, pipe

    def run(self, workload: Workload, address: Address, seat: EngineSeat, on_event: OnEvent) -> Recording:
        """Run the load to its end and return the Recording.

        *Errors*: EngineError when it could not run, or the other side is gone; errors of ``on_event``.
        """
        del seat
        limit_ns = hard_limit_ns(workload) + SPARE_NS
        load = next(self._pipe.numbers)
        spec = to_spec(workload, address, self._choice)
        self._send({"load": load, "spec": spec, "limit_ns": limit_ns, "authority": text_of(spec)})
        try:
            return self._followed(load, limit_ns, on_event)
        except BaseException:
            self._send({"cancel": load})
            raise

    def _send(self, message: Json) -> None:
        try:
            self._pipe.send(message)
        except OSError as error:
            raise EngineError(_GONE) from error

    def _followed(self, load: int, limit_ns: int, on_event: OnEvent) -> Recording:
        deadline_s = time.monotonic() + seconds(limit_ns + _BEYOND_NS)
        while (message := self._pipe.message(max(0.0, deadline_s - time.monotonic()))) is not None:
            # What is left of an earlier load, which was cancelled.
            if message.get("load") != load:
                continue
            if (event := event_in(message)) is None:
                found = recording_of(recording_in(_PEER, message))
                return _measured(found, read_facts(_PEER, message.get("machine")))
            on_event({**event, "monotonic_ns": time.monotonic_ns()} if "monotonic_ns" in event else event)
        raise EngineError(f"{_GONE}, or did not finish in time")


def _measured(recording: Recording, machine: MachineFacts) -> Recording:
    """Return a Recording that says on which machine it was measured."""
    one = GeneratorMachine(
        name=machine.host,
        requests=recording.account.scheduled,
        ok=recording.account.ok,
        limited=recording.generator.limited,
        evidence=recording.generator.evidence,
        fingerprint=machine.fingerprint,
    )
    return replace(recording, machines=(one,))
