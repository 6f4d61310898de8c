"""How long TLS handshakes took, and how many there were. Must not know how times are taken.

>>> [metric.name for metric in HANDSHAKES][:2]
['handshakes_full', 'handshakes_resumed']
"""

from prony.metrics.metric import Better, Metric, Unit
from prony.metrics.sources import HISTOGRAM

_KINDS = {
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
        for kind, (title, how) in _KINDS.items()
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
        for kind, (title, how) in _KINDS.items()
        for suffix, (label, statistic) in _STATISTICS.items()
    ),
)
