"""A limit of a change, such as `rps < -5%`, compared with the interval of the change.

>>> limit = parse_limit("rps < -5%")
>>> limit.shown((-0.08, -0.06)), limit.shown((-0.08, -0.01)), limit.shown((-0.02, 0.01))
(True, None, False)
"""

import re
from dataclasses import dataclass

from prony.core.units import parse_percent
from prony.figures.objective import ALIASES
from prony.figures.statistics.compare import NO_VERDICT, Verdict
from prony.figures.versus import METRICS_COMPARED, ComparedLoad, LimitResult

_LIMIT = re.compile(r"\s*([a-z][a-z0-9_.]*)\s*(<|>)\s*([+-]?)\s*(\S.*?)\s*")
_EXAMPLE = "such as `rps < -5%` or `p99 > +10%`"


@dataclass(frozen=True, slots=True)
class ChangeLimit:
    """A forbidden change of one of ``metrics`` (the first that exists). ``bound``: relative."""

    text: str
    metrics: tuple[str, ...]
    below: bool
    bound: float

    def shown(self, interval: tuple[float, float]) -> bool | None:
        """Return whether the change is shown to be beyond the bound; None when it is not shown either way."""
        low, high = interval
        beyond, within = (
            (high < self.bound, low >= self.bound) if self.below else (low > self.bound, high <= self.bound)
        )
        return True if beyond else False if within else None


def parse_limit(text: str) -> ChangeLimit:
    """Return the limit that ``text`` writes: a metric, `<` or `>`, and a change in per cent with its sign.

    *Errors*: ValueError, naming the text and what was expected.
    """
    match = _LIMIT.fullmatch(text)
    if match is None:
        raise ValueError(f"`{text.strip()}` is not a limit of a change; expected one {_EXAMPLE}")
    name, operator, sign, percent = match.groups()
    metrics = _comparable(name)
    if not metrics:
        known = [one for one in (*_ALIASES, "rss_peak") if _comparable(one)]
        raise ValueError(f"`{name}` is not a compared metric; expected one of {', '.join(known)}, {_EXAMPLE}")
    bound = parse_percent(percent)
    return ChangeLimit(text.strip(), metrics, operator == "<", -bound if sign == "-" else bound)


def _comparable(name: str) -> tuple[str, ...]:
    """Return the metrics that a name means when two subjects are compared: latencies are of valid replies,
    since those of all requests are infinite where one fails.
    """
    found = tuple(metric.replace("_all_", "_ok_") for metric in _ALIASES.get(name, (name,)))
    return found if found[0] in METRICS_COMPARED else ()


# A change of the share of CPUs that is used says nothing where the rate changes too.
_ALIASES = {**ALIASES, "cpu": ("cpu_ns_per_request",)}


_UNITS = {Verdict.TOO_FEW: "blocks", Verdict.TOO_FEW_RUNS: "runs"}
_WORDS = {True: "shown to be beyond it", False: "shown to be within it", None: "not shown either way"}


def held(limit: ChangeLimit, load: ComparedLoad) -> LimitResult:
    """Return whether a limit holds under one load. Below 5 blocks nothing is shown either way."""
    known = {name: load.metrics[name] for name in limit.metrics if name in load.metrics}
    found = {name: one.comparison for name, one in known.items() if one.comparison is not None}
    if not found:
        reasons = (one.reason for one in known.values() if one.reason)
        reason = next(reasons, "not measured on both sides")
        return LimitResult(limit.text, load.load, next(iter(known), limit.metrics[0]), None, reason)
    metric, compared = next(iter(found.items()))
    if compared.low is None or compared.high is None or compared.verdict in NO_VERDICT:
        units = _UNITS.get(compared.verdict, "sessions")
        return LimitResult(limit.text, load.load, metric, None, f"{compared.blocks} {units} are too few")
    shown = limit.shown((compared.low, compared.high))
    return LimitResult(limit.text, load.load, metric, shown, _WORDS[shown])
