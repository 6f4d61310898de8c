"""Whether clients noticed anything in a trial, and whether its pages alone explain how long they waited.

A symptom of the server is certain to be the limit only where somebody went without: several rules ask. Pure.
"""

from prony.figures.accept_queue import starvation
from prony.figures.account import KEPT_RATE, QUALIFIED_ERROR_RATIO
from prony.figures.latency import read_distribution
from prony.model.recording import Recording
from prony.model.trial import Ok, Trial

_MOST_OF_WINDOW = 0.25
# Requests in flight for each core in use: one that is worked on uses one at most, one on its way none.
_MOST_A_CORE = 1.2

ENDED = ("connect_refused", "reset", "eof")
"""The classes of failures by which a server sends requests away, or takes them along when it ends."""


def carried_its_rate(recording: Recording | None) -> bool:
    """Return whether 99 % of what was due in an open loop had a valid reply."""
    if recording is None or not recording.is_open:
        return False
    due = recording.account.scheduled
    return due > 0 and recording.completed.ok >= KEPT_RATE * due


def in_flight(recording: Recording) -> float | None:
    """Return how many requests were in flight, on average; None where nobody knows."""
    integral_ns, length_ns = recording.little.within_window_ns, recording.window.length_ns
    return integral_ns / length_ns if integral_ns and length_ns else None


def each_had_a_core(recording: Recording, cores: float) -> bool:
    """Return whether each request in flight had one of the ``cores`` in use to itself, so that none waited
    for another. Not where nobody knows how many there were.
    """
    known = in_flight(recording)
    return known is not None and known <= _MOST_A_CORE * cores


def lost_requests(recording: Recording) -> int:
    """Return how many requests failed, or had to be sent again, for a connection that ended; of generators
    that do not say why any failed, all that did.
    """
    known = [recording.account.others.get(name) for name in ENDED]
    failed = sum(one or 0 for one in known)
    told = any(one is not None for one in known)
    return (failed if told else recording.completed.failed) + (recording.connections.retried or 0)


def went_without(trial: Trial) -> bool:
    """Return whether one of a thousand requests failed or had to be sent again, connections starved, or the
    trial did not end well.
    """
    recording = trial.recording
    if recording is None or not isinstance(trial.outcome, Ok):
        return True
    lost = recording.completed.failed + (recording.connections.retried or 0)
    often = lost > 0 and lost >= QUALIFIED_ERROR_RATIO * recording.completed.all
    return often or starvation(recording) is not None


def slow_share(recording: Recording, *, with_open: bool = False) -> float:
    """Return the share of replies that took more than a quarter of the window, of those still open too if
    ``with_open``; 0 where nobody knows.
    """
    found, length_ns = recording.distributions, recording.window.length_ns
    parts = (found.ok_service, found.censored_service) if with_open else (found.ok_service,)
    times = [one for one in map(read_distribution, parts) if one is not None and one.histogram is not None]
    count = sum(one.count for one in times)
    if not count or length_ns is None:
        return 0.0
    edge = round(_MOST_OF_WINDOW * length_ns)
    quick = sum(one.histogram.count_below(edge) for one in times if one.histogram is not None)
    return 1.0 - quick / count
