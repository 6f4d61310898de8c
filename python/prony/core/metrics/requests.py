"""How the requests ended: how many per second, and which share.

>>> [metric.name for metric in REQUESTS][:2]
['ok_per_s', 'attempted_per_s']

How long requests took: response and service time, of valid replies and of all requests.

>>> [metric.name for metric in LATENCY][:2]
['response_ok_mean', 'response_ok_p50']

How long TLS handshakes took, and how many there were.

>>> [metric.name for metric in HANDSHAKES][:2]
['handshakes_full', 'handshakes_resumed']
"""

from collections.abc import Mapping
from types import MappingProxyType

from prony.core.metrics.metric import ACCOUNT, HISTOGRAM, Better, Metric, Unit

_HANDSHAKES_KINDS = {
    "full": ("full TLS handshakes", "in full"),
    "resumed": ("resumed TLS handshakes", "by taking up an earlier session"),
}
_STATISTICS = {
    "mean": ("mean", "sum / count"),
    "p50": ("p50", "the smallest value that at least 50 % of them do not exceed; needs 10 above it"),
    "p99": ("p99", "the smallest value that at least 99 % of them do not exceed; needs 10 above it"),
    "max": ("max", "the largest value"),
}
_OF = "of all the generator's connections from the first on, those before the window too"

HANDSHAKES = (
    *(
        Metric(
            f"handshakes_{kind}",
            Unit.COUNT,
            Better.NEITHER,
            title,
            f"TLS handshakes that ended {how}, {_OF}",
            HISTOGRAM,
        )
        for kind, (title, how) in _HANDSHAKES_KINDS.items()
    ),
    Metric(
        "handshakes_failed",
        Unit.COUNT,
        Better.LOWER,
        "failed TLS handshakes",
        f"TLS handshakes that did not end, {_OF}",
        HISTOGRAM,
    ),
    *(
        Metric(
            f"handshake_{kind}_{suffix}",
            Unit.DURATION,
            Better.LOWER,
            f"time of {title}, {label}",
            f"{statistic}, over the TLS handshakes that ended {how}, {_OF}; timed from the open TCP "
            "connection to the end of the handshake",
            HISTOGRAM,
        )
        for kind, (title, how) in _HANDSHAKES_KINDS.items()
        for suffix, (label, statistic) in _STATISTICS.items()
    ),
)


PERCENTILES: Mapping[str, str] = MappingProxyType(
    {"p50": "50", "p90": "90", "p95": "95", "p99": "99", "p999": "99.9", "p9999": "99.99"}
)
"""The percentiles that are reported: metric suffix to percentile."""

_KINDS = {
    "response": (
        "response time",
        "from the intended send time of a request to the last byte of its reply (open loop only)",
    ),
    "service": (
        "service time",
        "from handing a request to the kernel to the last byte of its reply",
    ),
}
_POPULATIONS = {
    "ok": ("of valid replies", "over the requests answered as expected"),
    "all": (
        "of all requests",
        "over all requests: failed ones count as infinite, unanswered ones with their age at the end",
    ),
}
_RANKED = "the smallest value that at least {p} % of the requests do not exceed; needs 10 requests above it"


def _statistics() -> dict[str, tuple[str, str]]:
    ranked = {suffix: (f"p{p}", _RANKED.format(p=p)) for suffix, p in PERCENTILES.items()}
    return {"mean": ("mean", "sum / count"), **ranked, "max": ("max", "the largest value")}


def _latency_metrics() -> list[Metric]:
    return [
        Metric(
            f"{kind}_{population}_{suffix}",
            Unit.DURATION,
            Better.LOWER,
            f"{title} {of}, {label}",
            f"{statistic}, {over}; timed {timed}",
            HISTOGRAM,
        )
        for kind, (title, timed) in _KINDS.items()
        for population, (of, over) in _POPULATIONS.items()
        for suffix, (label, statistic) in _statistics().items()
    ]


LATENCY = (
    *_latency_metrics(),
    *(
        Metric(
            f"send_lag_p{percentile}",
            Unit.DURATION,
            Better.LOWER,
            f"send lag, p{percentile}",
            f"p{percentile} of send time - max(intended send time, time a connection was free): how late the "
            "generator itself was (open loop only)",
            HISTOGRAM,
        )
        for percentile in (50, 99)
    ),
)


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
