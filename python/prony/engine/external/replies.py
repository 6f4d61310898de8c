"""Translates a tool's replies by status, its errors and its latencies into the terms of a Recording. Pure.

>>> by_status({"200": 3, "503": 1}, None)
(3, {'503': 1})
>>> by_kind({"Get \\"/\\": dial tcp: connection refused": 2})
{'connect_refused': 2}

>>> parse_time_ns("1.50ms"), counts_in(r"(\\d+) of (\\d+)", "3 of 4", "what it did")
(1500000, (3, 4))
"""

import json
import re
from collections.abc import Mapping

from prony.core.errors import EngineError
from prony.core.units import HOUR_NS, MICROSECOND_NS, MILLISECOND_NS, MINUTE_NS, SECOND_NS
from prony.engine.external.tool import Reported
from prony.model.json_codec import Json

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
    """Return how many replies were valid, and the others by status. ``wanted`` None: 200 to 399 is valid.

    *Errors*: EngineError for an invalid status or number.
    """
    counts = {int(number_in(code, "a status")): int(number_in(n, "a count")) for code, n in codes.items()}
    good = {code for code in counts if is_good(code, wanted)}
    bad = {str(code): count for code, count in counts.items() if code not in good and count}
    return sum(counts[code] for code in good), bad


def is_good(code: int, wanted: int | None) -> bool:
    """Return whether a status is the ``wanted`` one; None: whether it is 200 to 399."""
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
    """Return a tool's own summary of ``count`` latencies; None when there are none.

    ``values``: ``min``, ``mean``, ``max``, and percentiles by name, in units of ``unit_ns`` nanoseconds.

    *Errors*: EngineError for an invalid number.
    """
    if count <= 0:
        return None
    ns = {name: number_in(value, f"the latency `{name}`") * unit_ns for name, value in values.items()}
    low, mean, high = (ns.pop(name) for name in ("min", "mean", "max"))
    percentiles = {name: round(value) for name, value in ns.items()}
    return Reported(population, count, round(low), mean, round(high), percentiles)


# --- reading what tools print -----------------------------------------------------------------------------


_TIMES_NS = {
    "ns": 1,
    "us": MICROSECOND_NS,
    "µs": MICROSECOND_NS,
    "ms": MILLISECOND_NS,
    "s": SECOND_NS,
    "m": MINUTE_NS,
    "h": HOUR_NS,
}
# Longer output is not a summary: the tool repeats an error for each request.
_MOST = 4_000_000


def find(pattern: str, text: str, what: str) -> re.Match[str]:
    """Return where ``pattern`` is in a tool's output.

    *Errors*: EngineError when it is missing: the tool was aborted, or has another version.
    """
    found = re.search(pattern, text[:_MOST], re.MULTILINE)
    if found is None:
        last = text.strip().splitlines()[-1:] or [""]
        raise EngineError(f"the generator did not report {what}; its last line: `{last[0][:200]}`")
    return found


def number_in(value: object, what: str) -> float:
    """Return a number of a tool's output.

    *Errors*: EngineError when it is not a number, negative, or not finite.
    """
    try:
        number = float(str(value))
    except ValueError:
        number = -1.0
    # NaN fails every comparison.
    if not 0 <= number < 1e18:
        raise EngineError(f"cannot read {what} in the output of the generator: `{str(value)[:60]}`")
    return number


def counts_in(pattern: str, text: str, what: str) -> tuple[int, ...]:
    """Return the groups of ``pattern`` as whole numbers.

    *Errors*: EngineError when the pattern is not found or a group is not a number.
    """
    return tuple(int(number_in(group, what)) for group in find(pattern, text, what).groups())


def parse_time_ns(text: str) -> int:
    """Return a time such as ``1.02ms`` in nanoseconds.

    *Errors*: EngineError for anything else.
    """
    found = re.fullmatch(r"([0-9.]+)\s*([A-Za-zµ]+)", text.strip())
    if found is None or found[2] not in _TIMES_NS:
        raise EngineError(f"cannot read a time in the output of the generator: `{text[:60]}`")
    return round(number_in(found[1], "a time") * _TIMES_NS[found[2]])


def json_in(text: str, what: str) -> Json:
    """Parse ``text`` as a JSON object.

    *Errors*: EngineError for anything else.
    """
    try:
        value = json.loads(text[:_MOST])
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        last = text.strip()[-200:]
        raise EngineError(f"the generator did not report {what} as JSON; it ends in `{last}`")
    return value
