"""What generators on other machines say, of a fleet or for a target, read strictly: who says what is no
answer of Prony's is named. Pure.

>>> read_answer("far-1", b'{"recording": {"format": 1}}')
'{"format": 1}'
>>> read_answer("far-1", b'{"error": "no server"}')
Traceback (most recent call last):
prony.errors.EngineError: far-1: no server
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from prony.errors import EngineError
from prony.escapes import shortened
from prony.lines import json_object
from prony.model.facts import Fingerprint
from prony.model.shapes import Json, ShapeError, decode

PHASES = ("opening", "warmup", "window", "drain")
"""Of a load, in their order."""

_COUNTS = ("elapsed_ns", "ok", "failed", "in_flight", "queued", "connected")


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """What a machine that sends load says of itself: its Prony and architecture, and what is kept of it."""

    version: str
    machine: str
    host: str
    cpus: int
    pid: int
    is_root: bool
    fingerprint: Fingerprint


def read_facts(name: str, said: object) -> MachineFacts:
    """Return the facts of a generator's machine.

    *Errors*: EngineError where they are none.
    """
    try:
        return decode(MachineFacts, said, "facts")
    except ShapeError as error:
        raise _no_answer(name, shortened(str(error), 200)) from error


def read_answer(name: str, said: bytes) -> str:
    """Return the Recording in a generator's answer, as JSON.

    *Errors*: EngineError when the load failed there, or this is no answer.
    """
    try:
        found = json_object(said)
    except ValueError:
        raise _no_answer(name, repr(said[:60])) from None
    return json.dumps(recording_in(name, found))


def recording_in(name: str, answer: Json) -> Json:
    """Return the Recording in an answer.

    *Errors*: EngineError when the load failed there, or this is no answer.
    """
    match answer:
        case {"error": str(words)}:
            raise EngineError(f"{name}: {shortened(words, 400)}")
        case {"recording": dict(recording)}:
            return recording
    raise _no_answer(name, f"fields {shortened(', '.join(answer)) or 'none'}")


def _no_answer(name: str, why: str) -> EngineError:
    return EngineError(
        f"generator `{name}` sent what is no answer of Prony's: {why}", hint="see what runs there"
    )


def progress_in(beat: Json) -> Json | None:
    """Return the progress of a beat; null where there is none that can be added up."""
    match beat.get("progress"):
        case {"phase": phase, **counts} if phase in PHASES and _are_counts(counts):
            return dict(beat["progress"])
    return None


def event_in(beat: Json) -> Json | None:
    """Return the event of a beat; null where there is none with a kind, or with a time that is none."""
    match beat.get("event"):
        case {"event": str(), **rest} if isinstance(rest.get("monotonic_ns"), int | None):
            return dict(beat["event"])
    return None


def _are_counts(found: Mapping[object, object]) -> bool:
    return all(isinstance(found.get(name), int) for name in _COUNTS)
