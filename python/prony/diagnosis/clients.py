"""Whether clients noticed anything in a trial, and whether its pages alone explain how long they waited.

A symptom of the server is certain to be the limit only where somebody went without: several rules ask. Pure.
"""

from prony.analysis.distribution import read_distribution
from prony.analysis.rates import KEPT_RATE, QUALIFIED_ERROR_RATIO
from prony.analysis.starvation import starvation
from prony.model import Ok, Trial
from prony.model.recording import Recording

__all__ = ["carried_its_rate", "in_flight", "pages_are_slow", "went_without", "were_alone"]

_MOST_OF_WINDOW = 0.25
# Of the requests in flight, on average: with one at a time only one core and one worker can be busy.
_MOST_AT_ONCE = 1.2


def carried_its_rate(recording: Recording | None) -> bool:
    """Return whether 99 % of what was due in an open loop had a valid reply."""
    if recording is None or not recording.is_open:
        return False
    due = recording.account.scheduled
    return due > 0 and recording.completed.ok >= KEPT_RATE * due


def in_flight(recording: Recording) -> float | None:
    """Return how many requests were in flight, on average; null where nobody knows."""
    integral_ns, length_ns = recording.little.in_flight_integral_ns, recording.window.length_ns
    return integral_ns / length_ns if integral_ns and length_ns else None


def were_alone(recording: Recording) -> bool:
    """Return whether a request seldom met another one: fewer than 1.2 were in flight, on average."""
    known = in_flight(recording)
    return known is not None and known < _MOST_AT_ONCE


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


def pages_are_slow(recording: Recording) -> bool:
    """Return whether half of the replies took more than a quarter of the window; not where nobody knows."""
    times, length_ns = read_distribution(recording.distributions.ok_service), recording.window.length_ns
    if times is None or times.histogram is None or length_ns is None:
        return False
    return times.histogram.value_at_quantile(0.5) > _MOST_OF_WINDOW * length_ns
