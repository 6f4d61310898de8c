"""How the requests ended: how many per second, and which share. Must not know how long they took.

>>> [metric.name for metric in REQUESTS][:2]
['ok_per_s', 'attempted_per_s']
"""

from prony.metrics.metric import Better, Metric, Unit
from prony.metrics.sources import ACCOUNT

REQUESTS = (
    Metric(
        "ok_per_s",
        Unit.RATE,
        Better.HIGHER,
        "valid replies per second",
        "requests answered as expected within the window, even if sent before it / length of the window",
        ACCOUNT,
    ),
    Metric(
        "attempted_per_s",
        Unit.RATE,
        Better.NEITHER,
        "requests per second",
        "requests scheduled in the window / length of the window",
        ACCOUNT,
    ),
    Metric(
        "error_per_s",
        Unit.RATE,
        Better.LOWER,
        "errors per second",
        "failed, unsent and unanswered requests of the error ratio / length of the window",
        ACCOUNT,
    ),
    Metric(
        "duration_ns_per_request",
        Unit.DURATION,
        Better.LOWER,
        "time per request",
        "length of the window / requests that ended within it, including failed ones; with a fixed number of "
        "requests, first send to last completion / requests. Of the whole load, not of one connection "
        "(closed loop only)",
        ACCOUNT,
    ),
    Metric(
        "success_ratio",
        Unit.RATIO,
        Better.HIGHER,
        "success",
        "requests answered as expected / requests scheduled in the window or carried into it",
        ACCOUNT,
    ),
    Metric(
        "error_ratio",
        Unit.RATIO,
        Better.LOWER,
        "errors",
        "1 - success ratio: failed, unsent and unanswered requests / requests scheduled in the window or "
        "carried into it",
        ACCOUNT,
    ),
    Metric(
        "reply_bytes",
        Unit.BYTES,
        Better.NEITHER,
        "bytes a reply",
        "bytes received for requests of the window, heads included, without what TLS adds / those of them "
        "that were answered, whatever the status",
        "engine's Recording, bytes and account",
    ),
    Metric(
        "carried_in",
        Unit.COUNT,
        Better.NEITHER,
        "requests carried in",
        "requests that were begun before the window opened and were open then",
        ACCOUNT,
    ),
    Metric(
        "carried_in_lost",
        Unit.COUNT,
        Better.LOWER,
        "requests carried in and lost",
        "requests that were open when the window opened and got no valid reply",
        ACCOUNT,
    ),
)
