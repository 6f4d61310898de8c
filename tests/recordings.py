"""Recordings for tests: JSON of the wire with only what a test is about, the rest as of an idle generator."""

from prony.model.json_codec import encode
from prony.model.recording import decode_recording

IDLE = {
    "format": 1,
    "engine": {"name": "prony-engine"},
    "loop": "closed",
    "window": {"open_ns": 0, "close_ns": 10**9, "interrupted": False},
    "account": {"scheduled": 0, "ok": 0, "bad_status": {}},
    "completed": {"ok": 0, "failed": 0},
    "connections": {},
    "bytes": {},
    "queue": {},
    "distributions": {},
    "series": [],
    "generator": {},
    "little": {},
    "error_samples": [],
}


def recording_of(**parts):
    """A Recording with these parts, each as on the wire, and an idle generator's others."""
    return decode_recording({**IDLE, **parts})


def with_parts(recording, **parts):
    """A Recording with parts of it changed, each as on the wire; one of an object changes only its keys."""
    known = encode(recording)
    new = {
        name: {**(known.get(name) or {}), **part} if isinstance(part, dict) and name != "account" else part
        for name, part in parts.items()
    }
    return decode_recording({**known, **new})
