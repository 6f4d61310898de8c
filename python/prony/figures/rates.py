"""Rates and ratios of a Recording. The denominator of every rate is the window.

The share of errors and the rate of errors are of one account, so that no page has two answers: all requests
of the window, and those that it found open.

>>> is_speed("ok_per_s"), is_speed("error_ratio")
(True, False)
"""

from prony.core.metrics import METRICS, Unit
from prony.core.units import SECOND_NS
from prony.figures.account import tally
from prony.model.recording import Recording

QUALIFIED_ERROR_RATIO = 0.001
"""The largest error ratio with which a speed figure may be compared: beyond it, speed describes only the
successes.
"""


def is_speed(metric: str) -> bool:
    """Return whether a metric measures how fast a server is. It is not compared for a server that loses
    requests, and not given for one whose trials fail.
    """
    return METRICS[metric].unit in (Unit.RATE, Unit.DURATION) and metric != "error_per_s"


KEPT_RATE = 0.99
"""The least share of what was due that was sent in time where a rate was kept."""


def keeps_rate(recording: Recording) -> bool:
    """Return whether what was due in an open loop was sent within the window: then a generator's limit cannot
    have lowered the throughput.

    *Definition*: sent / due >= 0.99; of a generator that does not count what it sent, what was completed in
    the window / due.
    """
    due, sent = recording.account.scheduled, recording.generator.sent_in_window
    in_time = recording.completed.all if sent is None else sent
    return recording.is_open and due > 0 and in_time >= KEPT_RATE * due


def rates_of(recording: Recording) -> dict[str, float | None]:
    """Return the rate metrics by name; None where the window or the requests are missing.

    *Definition*: ``ok_per_s``: requests that were answered within the window, whenever they were begun /
    length of the window: what was done in this time. ``attempted_per_s``: requests that were due or begun in
    the window / its length. ``duration_ns_per_request``: length of the window / requests that ended within
    it. ``error_ratio``: requests of the window, and those that it found open, without a valid reply / all of
    them; ``error_per_s``: the same requests / length of the window.
    """
    found, completed, length_s = tally(recording.account), recording.completed, recording.window.duration_s

    def per_s(count: int) -> float | None:
        return None if length_s is None else count / length_s

    ended, closed = completed.all, not recording.is_open
    return {
        "duration_ns_per_request": SECOND_NS * length_s / ended if closed and length_s and ended else None,
        "ok_per_s": per_s(completed.ok),
        "attempted_per_s": per_s(found.scheduled),
        "error_per_s": per_s(found.lost),
        "success_ratio": found.ok / found.requests if found.requests else None,
        "error_ratio": found.error_ratio,
    }
