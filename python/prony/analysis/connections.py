"""How the generator's connections ended, and how long its threads waited for their CPU. Pure.

>>> longest_wait_ns((WorkerThread(0, 0, 0, 0, 7), WorkerThread(1, 0, 0, 0, None)))
7
"""

from collections.abc import Sequence

from prony.analysis.generator import missing_reason
from prony.analysis.missing import Missing, Value
from prony.model.recording import Recording, WorkerThread

# Of the valid replies: the rest went over connections that were kept.
_LEAST_CLOSED = 0.9


def connection_metrics(recording: Recording) -> dict[str, Value]:
    """Return by metric name how many connections were opened again and how many got no reply, and the wait.

    *Definition*: run queue: of the generator's thread that waited longest, the time that it was ready to run
    and had no CPU / window and drain.
    """
    absent = missing_reason(recording.engine, "connections")
    reconnects, answered = recording.connections.reconnects, recording.connections.answered
    return {
        "reconnects": absent if reconnects is None else float(reconnects),
        "connections_without_reply": absent if answered is None else float(answered.without_reply),
        "generator_run_queue_percent": _run_queue(recording),
    }


def closes_each(recording: Recording) -> bool:
    """Return whether the server closed a connection after nine of ten valid replies at least.

    *Definition*: connections that were opened in place of ended ones, over valid replies. A failed request
    may have ended one too, unless it did not connect at all, and so counts against it.
    """
    again, failures = recording.connections.reconnects, recording.connections.connect_failures or 0
    if again is None or not recording.completed.ok:
        return False
    lost = max(0, recording.completed.failed - failures)
    return again - lost >= _LEAST_CLOSED * recording.completed.ok


def _run_queue(recording: Recording) -> Value:
    length_ns, waited_ns = recording.window.drained_length_ns, longest_wait_ns(recording.generator.threads)
    if waited_ns is None or length_ns is None:
        return Missing("not recorded by this generator")
    return 100 * waited_ns / length_ns


def longest_wait_ns(threads: Sequence[WorkerThread]) -> int | None:
    """Return the longest time that one of the threads was ready and had no CPU; null: it is not known."""
    return max((one.run_queue_ns for one in threads if one.run_queue_ns is not None), default=None)
