"""How long requests took: response and service time, of valid replies and of all requests.

Must not know how times are taken.

>>> [metric.name for metric in LATENCY][:2]
['response_ok_mean', 'response_ok_p50']
"""

from collections.abc import Mapping
from types import MappingProxyType

from prony.metrics.metric import Better, Metric, Unit
from prony.metrics.sources import HISTOGRAM

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
