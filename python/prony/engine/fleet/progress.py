"""The progress of all generators of a load, from the latest that each of them said. Pure.

>>> said = {"phase": "window", "elapsed_ns": 5, "ok": 2, "failed": 0}
>>> said |= {"in_flight": 1, "queued": 0, "connected": 1}
>>> (found := summed({"a": said, "b": said}, ended={"b"}))["ok"], found["connected"]
(4, 1)
"""

from collections.abc import Container, Mapping

from prony.engine.answers import PHASES
from prony.model.shapes import Json

_COUNTED = ("ok", "failed")
_OPEN = ("in_flight", "queued", "connected")


def summed(latest: Mapping[str, Json], ended: Container[str]) -> Json | None:
    """Return the event of the whole, in the phase of the last of them; null where none has said anything.

    ``ended``: those whose load is over. What they counted stays, but nothing of them is open any more.
    """
    if not latest:
        return None
    phase = min((str(one["phase"]) for one in latest.values()), key=PHASES.index)
    elapsed_ns = min(one["elapsed_ns"] for one in latest.values() if one["phase"] == phase)
    going = [one for name, one in latest.items() if name not in ended]
    event = {"event": "progress", "phase": phase, "elapsed_ns": elapsed_ns, "last_second": None}
    counted = {name: sum(one[name] for one in latest.values()) for name in _COUNTED}
    return {**event, **counted, **{name: sum(one[name] for one in going) for name in _OPEN}}
