"""What the generators of a fleet say, read strictly: who says what is no answer of Prony's is named. Pure.

>>> read_answer("far-1", b'{"recording": {"format": 1}}')
'{"format": 1}'
>>> read_answer("far-1", b'{"error": "no server"}')
Traceback (most recent call last):
prony.errors.EngineError: far-1: no server
"""

import json
from collections.abc import Mapping

from prony.errors import EngineError
from prony.lines import json_object
from prony.model.shapes import Json

PHASES = ("opening", "warmup", "window", "drain")
"""Of a load, in their order."""

_COUNTS = ("elapsed_ns", "ok", "failed", "in_flight", "queued", "connected")


def read_answer(name: str, said: bytes) -> str:
    """Return the Recording in a generator's answer, as JSON.

    *Errors*: EngineError when the load failed there, or this is no answer.
    """
    try:
        found = json_object(said)
    except ValueError:
        found = {}
    match found:
        case {"error": str(words)}:
            raise EngineError(f"{name}: {words}")
        case {"recording": dict(recording)}:
            return json.dumps(recording)
    raise EngineError(
        f"generator `{name}` sent what is no answer of Prony's: {said[:60]!r}",
        hint="see what runs there as a worker of the fleet",
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
