"""Reading what tools print. Pure.

>>> parse_time_ns("1.50ms"), parse_size_bytes("2.00KB")
(1500000, 2048)
"""

import json
import re
from collections.abc import Mapping

from prony.engine.external.tool import number_in
from prony.errors import EngineError
from prony.model import Json

__all__ = ["count_in", "find", "json_in", "parse_size_bytes", "parse_time_ns"]

_TIMES_NS = {"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9}
_SIZES = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
# Longer output is no summary any more: a tool that repeats an error for each request.
_MOST = 4_000_000


def find(pattern: str, text: str, what: str) -> re.Match[str]:
    """Return where ``pattern`` is in a tool's output.

    *Errors*: EngineError when it is not: the tool broke off, or is of another version.
    """
    found = re.search(pattern, text[:_MOST], re.MULTILINE)
    if found is None:
        last = text.strip().splitlines()[-1:] or [""]
        raise EngineError(f"the generator did not tell {what}; its last line: `{last[0][:200]}`")
    return found


def count_in(pattern: str, text: str, what: str) -> int:
    """Return the first group of ``pattern`` as a whole number.

    *Errors*: EngineError when it is not there or is no number.
    """
    return int(number_in(find(pattern, text, what)[1], what))


def parse_time_ns(text: str) -> int:
    """Return a time such as ``1.02ms`` in nanoseconds.

    *Errors*: EngineError when it is none.
    """
    return round(_scaled(text, _TIMES_NS, "a time"))


def parse_size_bytes(text: str) -> int:
    """Return a size such as ``1.02KB`` in bytes.

    *Errors*: EngineError when it is none.
    """
    return round(_scaled(text, _SIZES, "a size"))


def _scaled(text: str, units: Mapping[str, float], what: str) -> float:
    found = re.fullmatch(r"([0-9.]+)\s*([A-Za-zµ]+)", text.strip())
    if found is None or found[2] not in units:
        raise EngineError(f"cannot read {what} in the output of the generator: `{text[:60]}`")
    return number_in(found[1], what) * units[found[2]]


def json_in(text: str, what: str) -> Json:
    """Return the object that ``text`` is.

    *Errors*: EngineError when it is none.
    """
    try:
        value = json.loads(text[:_MOST])
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        last = text.strip()[-200:]
        raise EngineError(f"the generator did not tell {what} as JSON; it ends in `{last}`")
    return value
