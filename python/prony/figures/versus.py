"""One comparison of two sides: subjects of a plan, archives, or loads in turns, in each metric at each load.

Its values are its document.

A limit of a change, such as `rps < -5%`, compared with the interval of the change.

>>> limit = parse_limit("rps < -5%")
>>> limit.shown((-0.08, -0.06)), limit.shown((-0.08, -0.01)), limit.shown((-0.02, 0.01))
(True, None, False)
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import log

from prony.core.metrics import METRICS
from prony.core.units import parse_percent
from prony.figures.account import is_speed
from prony.figures.answer import (
    bounded_by,
    criterion,
    deciding_metrics,
    is_frail,
    log_ratios,
    without_survivors,
)
from prony.figures.at_least import heeded
from prony.figures.by_session import in_sessions, is_failed, more_often
from prony.figures.missing import Missing
from prony.figures.objective import ALIASES
from prony.figures.statistics.compare import (
    LEAST_BLOCKS,
    NO_VERDICT,
    OPEN,
    Comparison,
    Terms,
    Verdict,
    compare_effects,
    with_range,
)
from prony.figures.statistics.effects import Effect, paired, unpaired
from prony.figures.statistics.failure_rates import FailureComparison
from prony.figures.summary import CellSummary, Estimate
from prony.model.shown import INTERNAL, shown, shown_as
from prony.model.workload import ClosedLoop, Loop, Stop, Workload

METRICS_COMPARED = (
    "ok_per_s",
    *(f"{kind}_ok_{suffix}" for kind in ("response", "service") for suffix in ("p50", "p95", "p99", "mean")),
    *("cpu_ns_per_request", "pss_end", "rss_peak"),
)
"""In the order of reports."""


class Family(StrEnum):
    """Whether the comparison was made for a metric."""

    PRIMARY = "primary"
    SCREENING = "screening"


@dataclass(frozen=True, slots=True)
class Match:
    """Two cells under one load: ``second`` is compared with ``first``."""

    first: CellSummary
    second: CellSummary


@dataclass(frozen=True, slots=True)
class ComparedFigure:
    """One metric: the means of both sides, and how the second compares; null: ``reason`` says why not."""

    family: Family
    first: float | None
    second: float | None
    comparison: Comparison | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class LoopAndStop:
    """When a load sends, and when it ends."""

    loop: Loop
    stop: Stop


@dataclass(frozen=True, slots=True)
class ComparedLoad:
    """Two subjects under one load, by metric, and how often their trials failed."""

    first: str
    second: str
    load: Mapping[str, float]
    """`connections` or `rate`, `streams` of a connection, `requests`, `threads` of the generator."""
    workload: Workload = field(metadata=INTERNAL)
    failed_trials: FailureComparison
    metrics: Mapping[str, ComparedFigure]

    @shown_as("workload")
    def loop_and_stop(self) -> LoopAndStop:
        """Return the load, without its requests: their headers may be secret."""
        return LoopAndStop(self.workload.loop, self.workload.stop)

    @property
    def deciding(self) -> tuple[str, ComparedFigure] | None:
        """The first metric that the comparison was made for and that both have, else the first of these."""
        made_for = [(name, one) for name, one in self.metrics.items() if one.family is Family.PRIMARY]
        enough = (one for one in made_for if one[1].comparison and one[1].comparison.blocks >= LEAST_BLOCKS)
        return next(enough, made_for[0] if made_for else None)


@dataclass(frozen=True, slots=True)
class LimitResult:
    """A forbidden change under one load."""

    limit: str
    load: Mapping[str, float]
    metric: str
    shown: bool | None
    """Whether it is shown to be beyond it, null where neither is shown, or nothing is known."""
    reason: str


@dataclass(frozen=True, slots=True)
class Resemblance:
    """How neighbouring pairs resemble each other: ``correlation`` as estimated, ``most`` as allowed for, and
    ``widening``, by which standard errors and intervals are multiplied.
    """

    correlation: float
    most: float
    widening: float


@dataclass(frozen=True, slots=True)
class SideTotals:
    """All windows, or all saved loads, of one side together."""

    requests: int
    errors: int
    limited: int
    """Windows or loads in which the generator may have been the limit."""
    files: tuple[str, ...] = ()
    """Of saved loads: each is one run of its side."""


@dataclass(frozen=True, slots=True)
class Windows:
    """Loads in turns: how many ``pairs`` of windows there are of those ``asked``, in an order by ``seed``."""

    seed: int
    asked: int
    pairs: int
    dropped: int
    """Of a comparison that was interrupted, those of the pair that was under way; 0: it ran to its end."""
    resemblance: Mapping[str, Resemblance]
    """Of pairs, by metric."""


@dataclass(frozen=True, slots=True)
class Versus:
    """``second`` compared with ``first``: archives, subjects of one, saved loads, or the addresses of
    loads.
    """

    first: str
    second: str
    paired: bool
    """By block, or by pair of `windows`."""
    loads: tuple[ComparedLoad, ...]
    by_session: bool = False
    """Sessions are counted in place of blocks and trials."""
    forced: tuple[str, ...] = ()
    """Differences that were accepted."""
    limits: tuple[LimitResult, ...] = ()
    """Each of the forbidden changes for each load, in their order."""
    sides: tuple[SideTotals, ...] = ()
    """Of loads, the first and the second."""
    windows: Windows | None = None
    then: str | None = None
    """What may decide what is open, null where all is decided."""

    @shown
    def remark(self) -> str | None:
        """What to mind where it is not paired, else null."""
        return None if self.paired else "unpaired: includes machine drift"


def matches(first: Iterable[CellSummary], second: Sequence[CellSummary], alike: bool) -> tuple[Match, ...]:
    """Return the cells of both sides with the same load and generator; ``alike``: and the same subject."""
    return tuple(
        Match(one, other)
        for one in first
        for other in second
        if one.cell.load == other.cell.load
        and one.cell.engine.name == other.cell.engine.name
        and (not alike or one.cell.subject.name == other.cell.subject.name)
    )


def differing_parts(match: Match) -> tuple[str, ...]:
    """Return how the two cells differ beside their subjects, in words."""
    first, second = match.first.cell, match.second.cell
    told = {
        "sandbox": first.sandbox == second.sandbox,
        "window": first.workload.stop == second.workload.stop,
        "warm-up": first.workload.warmup_ns == second.workload.warmup_ns,
        "time-out": _time_outs(first.workload) == _time_outs(second.workload),
        "request": _asked(first.workload) == _asked(second.workload),
        "pacing": first.engine.pacing == second.engine.pacing,
        "rounds of short windows": _has_rounds(match.first) == _has_rounds(match.second),
    }
    return tuple(name for name, same in told.items() if not same)


def _has_rounds(cell: CellSummary) -> bool:
    return any(trial.by_round for trial in cell.counted)


def _asked(load: Workload) -> tuple[object, ...]:
    ends = load.connection_requests, load.connection_age_ns
    return load.request, load.mix, load.follow, load.groups, *ends


def _time_outs(workload: Workload) -> tuple[int, int | None]:
    return workload.timeout_ns, workload.connect_timeout_ns


Key = tuple[int, str]
"""The place of a match, and a metric."""

EffectOf = Callable[[Match, str], Effect | Missing]
"""How the sides of a match differ in a metric that both have."""


_NOT_ON_BOTH = Missing("not measured on both sides")


def compared_loads(
    found: Sequence[Match],
    is_paired: bool,
    terms: Terms,
    primary: Sequence[str] = (),
    effect_of: EffectOf | None = None,
) -> tuple[ComparedLoad, ...]:
    """Return the comparison of each match in all metrics. ``primary``: those that it is made for;
    ``effect_of``: None for that of blocks, or of two archives.

    *Definition*: primary are these, or the metric that decides (throughput in a closed loop, the tail in an
    open one): one family over all loads (Holm). All others are a screening (Benjamini and Hochberg). Paired
    by block within an archive; between archives Welch's test on logarithms. Where sessions are counted
    (``terms.by_session``), fewer than five have no interval.
    *Assumptions*: of two archives nothing but the subject changed. It did: the effect includes the machine's
    drift.
    """
    if terms.by_session:
        found = [_in_sessions(match, is_paired) for match in found]
    own = effect_of or (of_blocks if is_paired else of_trials)
    asked = {
        (k, metric): _Asked(family, _not_qualified(match, metric) or own(match, metric))
        for k, match in enumerate(found)
        for metric, family in _metrics(match, primary)
    }
    compared = _judged(found, asked, terms, is_paired)
    return tuple(
        ComparedLoad(
            match.first.cell.subject.name,
            match.second.cell.subject.name,
            match.first.cell.load,
            match.first.cell.workload,
            _failures(match, is_paired),
            {
                metric: _figure(match, metric, one, compared.get((place, metric)))
                for (place, metric), one in asked.items()
                if place == k
            },
        )
        for k, match in enumerate(found)
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    family: Family
    effect: Effect | Missing


def _metrics(match: Match, primary: Sequence[str]) -> Iterator[tuple[str, Family]]:
    """Yield the metrics that the comparison is made for, and those that both have."""
    wanted = primary or (_criterion(match),)
    is_closed = isinstance(match.first.cell.workload.loop, ClosedLoop)
    for metric in METRICS_COMPARED:
        can_be = metric in wanted and not (is_closed and metric.startswith("response_"))
        if can_be or _both_have(match, metric):
            yield metric, Family.PRIMARY if metric in wanted else Family.SCREENING


def _figure(match: Match, metric: str, asked: _Asked, found: Comparison | None) -> ComparedFigure:
    reason = asked.effect.reason if isinstance(asked.effect, Missing) else None
    return ComparedFigure(
        asked.family, _mean(match.first, metric), _mean(match.second, metric), found, reason
    )


def then_of(loads: Iterable[ComparedLoad], more: str) -> str | None:
    """Return ``more``, which may decide it, where a comparison is open that blocks can decide; else None."""
    found = (one.deciding for one in loads)
    verdicts = [one[1].comparison.verdict for one in found if one and one[1].comparison]
    return more if any(one in OPEN for one in verdicts) else None


def _mean(cell: CellSummary, metric: str) -> float | None:
    value = cell.metrics[metric]
    return value.mean if isinstance(value, Estimate) else None


def _has_sessions(match: Match) -> bool:
    return match.first.by_session is not None or match.second.by_session is not None


def _in_sessions(match: Match, is_paired: bool) -> Match:
    """Return a match in which sessions count, over the blocks that both have; of two archives each by itself,
    for blocks of the one have nothing to do with those of the other.
    """
    if is_paired:
        return Match(*in_sessions((match.first, match.second)))
    return Match(*in_sessions((match.first,)), *in_sessions((match.second,)))


def _criterion(match: Match) -> str:
    """Return the metric that decides, or would if both had it."""
    return criterion([match.first, match.second]) or deciding_metrics(match.first.cell)[0]


def _judged(
    found: Sequence[Match], asked: Mapping[Key, _Asked], terms: Terms, is_paired: bool
) -> dict[Key, Comparison]:
    compared: dict[Key, Comparison] = {}
    for family in Family:
        effects = {
            key: one.effect
            for key, one in asked.items()
            if one.family is family and isinstance(one.effect, Effect)
        }
        compared |= compare_effects(effects, replace(terms, screens=family is Family.SCREENING))
    for (k, metric), one in compared.items():
        singles = log_ratios(found[k].first, found[k].second, metric)
        ranged = with_range(one, singles if terms.by_session and is_paired else ())
        compared[k, metric] = _heeded(found[k], metric, ranged, terms)
    return compared


def _heeded(match: Match, metric: str, found: Comparison, terms: Terms) -> Comparison:
    """Return a comparison without what bounds, and trials that a server failed, leave open."""
    one = heeded(found, metric, bounded_by(match.first, match.second, metric), terms.margin)
    sides = {"first": match.first, "second": match.second}
    frail = {name for name, cell in sides.items() if is_frail(cell, metric)}
    return without_survivors(("first", "second"), one, METRICS[metric].better, frail)


def _both_have(match: Match, metric: str) -> bool:
    return bool(_values(match.first, metric) and _values(match.second, metric))


def _values(cell: CellSummary, metric: str) -> list[float]:
    found = [metrics[metric] for metrics in cell.units.values()]
    return [float(value) for value in found if not isinstance(value, Missing) and value > 0]


def _not_qualified(match: Match, metric: str) -> Missing | None:
    lost = match.first.unqualified or match.second.unqualified
    if lost and is_speed(metric):
        return Missing(f"speed does not qualify: {lost}")
    if _both_have(match, metric):
        return None
    values = (side.metrics[metric] for side in (match.first, match.second))
    return next((one for one in values if isinstance(one, Missing)), _NOT_ON_BOTH)


def of_blocks(
    match: Match, metric: str, widening: Callable[[Sequence[float]], float | None] | None = None
) -> Effect | Missing:
    """Return the effect of the blocks, or sessions, that both have. ``widening``: by how much the standard
    error of their log ratios is multiplied; None: as that of blocks.
    """
    ratios = log_ratios(match.first, match.second, metric)
    if len(ratios) < 2:
        units = "sessions" if _has_sessions(match) else "blocks"
        return Missing(f"{len(ratios)} common {units}: no interval")
    return paired(ratios, widening and widening(ratios))


def of_trials(match: Match, metric: str) -> Effect | Missing:
    """Return the effect of the trials, or sessions, of each side."""
    first, second = (list(map(log, _values(cell, metric))) for cell in (match.first, match.second))
    if min(len(first), len(second)) < 2:
        units = "sessions" if _has_sessions(match) else "trials"
        return Missing(f"{len(first)} and {len(second)} {units}: no interval")
    return unpaired(first, second)


def _failures(match: Match, is_paired: bool) -> FailureComparison:
    found = more_often(match.first, match.second, is_failed, is_paired=is_paired)
    few = min(found.first.total, found.second.total) < LEAST_BLOCKS
    return replace(found, differs=False) if few and _has_sessions(match) else found


# --- limits of a change -----------------------------------------------------------------------------------


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


_TOO_FEW_OF = {Verdict.TOO_FEW: "blocks", Verdict.TOO_FEW_RUNS: "runs"}
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
        units = _TOO_FEW_OF.get(compared.verdict, "sessions")
        return LimitResult(limit.text, load.load, metric, None, f"{compared.blocks} {units} are too few")
    shown = limit.shown((compared.low, compared.high))
    return LimitResult(limit.text, load.load, metric, shown, _WORDS[shown])
