"""What became of the generator's connections, and how long its threads waited for their CPU. Pure.

>>> connection_metrics({"connections": {"reconnects": 3, "answered": None}, "generator": {}, "window": {}})[
...     "reconnects"]
3.0
"""

from prony.analysis.generator import missing_reason
from prony.analysis.missing import Missing, Value
from prony.model import Json

__all__ = ["connection_metrics"]


def connection_metrics(recording: Json) -> dict[str, Value]:
    """Return by metric name how many connections were opened again and how many got no reply, and the wait.

    *Definition*: run queue: of the generator's thread that waited longest, the time that it was ready to run
    and had no CPU / window and drain.
    """
    connections = recording["connections"]
    absent = missing_reason(recording, "connections")
    reconnects, answered = connections.get("reconnects"), connections.get("answered") or {}
    without, window = answered.get("without_reply"), recording["window"]
    return {
        "reconnects": absent if reconnects is None else float(reconnects),
        "connections_without_reply": absent if without is None else float(without),
        "generator_run_queue_percent": _run_queue(recording["generator"].get("threads") or [], window),
    }


def _run_queue(threads: list[Json], window: Json) -> Value:
    ended_ns = window.get("drained_ns") or window.get("close_ns")
    length_ns = (ended_ns or 0) - (window.get("open_ns") or 0)
    waits_ns = [one["run_queue_ns"] for one in threads if one.get("run_queue_ns") is not None]
    if not waits_ns or length_ns <= 0:
        return Missing("not recorded by this generator")
    return 100.0 * float(max(waits_ns)) / float(length_ns)
