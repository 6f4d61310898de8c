"""Translates a tool's replies by status, its errors and its latencies into the terms of a Recording. Pure.

>>> by_status({"200": 3, "503": 1}, None)
(3, {'503': 1})
>>> by_kind({"Get \\"/\\": dial tcp: connection refused": 2})
{'connect_refused': 2}
"""

import re
from collections.abc import Mapping

from prony.engine.external.text import counts_in, number_in
from prony.engine.external.tool import Reported

_KINDS = (
    ("in_flight_at_end", r"aborted due to deadline"),
    ("timed_out", r"(?i)timeout|timed out|deadline exceeded"),
    ("connect_refused", r"(?i)connection refused"),
    ("reset", r"(?i)connection reset|broken pipe"),
    ("eof", r"EOF$|server closed|connection closed"),
    ("client_no_address", r"(?i)cannot assign requested address"),
    ("client_no_descriptor", r"(?i)too many open files"),
)


def by_status(codes: Mapping[str, object], wanted: int | None) -> tuple[int, dict[str, int]]:
    """Return how many replies were valid, and the others by status. ``wanted`` null: 200 to 399 is valid.

    *Errors*: EngineError for an invalid status or number.
    """
    counts = {int(number_in(code, "a status")): int(number_in(n, "a count")) for code, n in codes.items()}
    good = {code for code in counts if is_good(code, wanted)}
    bad = {str(code): count for code, count in counts.items() if code not in good and count}
    return sum(counts[code] for code in good), bad


def is_good(code: int, wanted: int | None) -> bool:
    """Return whether a status is the ``wanted`` one; null: whether it is 200 to 399."""
    return code == wanted if wanted else 200 <= code < 400


def by_class(text: str) -> tuple[int, dict[str, int]]:
    """Return how many replies had a status below 400, and the others by class: for h2load and weighttp.

    *Errors*: EngineError when the tool did not report it.
    """
    line = r"^status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx"
    ok, moved, refused, broken = counts_in(line, text, "the status codes")
    return ok + moved, {name: count for name, count in (("4xx", refused), ("5xx", broken)) if count}


def by_kind(errors: Mapping[str, object]) -> dict[str, int]:
    """Return failures by class of the account; other failures are ``unspecified``.

    *Errors*: EngineError for an invalid number.
    """
    found: dict[str, int] = {}
    for told, count in errors.items():
        kind = next((kind for kind, pattern in _KINDS if re.search(pattern, told)), "unspecified")
        found[kind] = found.get(kind, 0) + int(number_in(count, "a count"))
    return found


def reported(population: str, count: int, values: Mapping[str, object], unit_ns: float) -> Reported | None:
    """Return a tool's own summary of ``count`` latencies; null when there are none.

    ``values``: ``min``, ``mean``, ``max``, and percentiles by name, in units of ``unit_ns`` nanoseconds.

    *Errors*: EngineError for an invalid number.
    """
    if count <= 0:
        return None
    ns = {name: number_in(value, f"the latency `{name}`") * unit_ns for name, value in values.items()}
    low, mean, high = (ns.pop(name) for name in ("min", "mean", "max"))
    percentiles = {name: round(value) for name, value in ns.items()}
    return Reported(population, count, round(low), mean, round(high), percentiles)
