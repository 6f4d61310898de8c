"""Reading what tools print. Pure.

>>> parse_time_ns("1.50ms"), counts_in(r"(\\d+) of (\\d+)", "3 of 4", "what it did")
(1500000, (3, 4))
"""

import json
import re

from prony.errors import EngineError
from prony.model.shapes import Json
from prony.units import HOUR_NS, MICROSECOND_NS, MILLISECOND_NS, MINUTE_NS, SECOND_NS

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
