"""Replies by status, and failures by what a tool says of them, in the terms of a Recording. Pure.

>>> by_status({"200": 3, "503": 1}, None)
(3, {'503': 1})
>>> by_kind({"Get \\"/\\": dial tcp: connection refused": 2})
{'connect_refused': 2}
"""

import re
from collections.abc import Mapping

from prony.engine.external.tool import number_in

__all__ = ["by_kind", "by_status"]

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
    """Return how many replies were good, and the others by status. ``wanted`` null: 200 to 399 is good.

    *Errors*: EngineError for what is no status or no number.
    """
    counts = {int(number_in(code, "a status")): int(number_in(n, "a count")) for code, n in codes.items()}
    good = {code for code in counts if (code == wanted if wanted else 200 <= code < 400)}
    bad = {str(code): count for code, count in counts.items() if code not in good and count}
    return sum(counts[code] for code in good), bad


def by_kind(errors: Mapping[str, object]) -> dict[str, int]:
    """Return failures by class of the account; those that fit none are ``unspecified``.

    *Errors*: EngineError for what is no number.
    """
    found: dict[str, int] = {}
    for told, count in errors.items():
        kind = next((kind for kind, pattern in _KINDS if re.search(pattern, told)), "unspecified")
        found[kind] = found.get(kind, 0) + int(number_in(count, "a count"))
    return found
