"""Whether a repeat confirms the claims of a published experiment: a verdict with its figure for each.

Each kind has an estimand and a test. A claim of several parts (loads, rivals) holds when every part does, and
does not when one is shown not to hold.

*Source*: R. L. Berger, "Multiparameter hypothesis testing and acceptance sampling", Technometrics 24 (1982):
of a claim that is the conjunction of its parts, each may be tested at the full level.
"""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import fsum, inf, log
from statistics import median
from types import MappingProxyType

from prony.core.metrics import METRICS, Better
from prony.core.units import format_percent
from prony.figures.account import QUALIFIED_ERROR_RATIO, ending_named, is_speed
from prony.figures.answer import hidden_by, is_frail
from prony.figures.at_least import Bounded, Open, ends_of, is_pace, open_end
from prony.figures.by_session import judged_in_common
from prony.figures.claim_needs import (
    Lack,
    Place,
    UnmetNeed,
    blocks_needed,
    by_block,
    claimed,
    cpus_wanted,
    more_with_cpus,
    rivals,
    tested,
    unmet,
    unsampled,
    where,
)
from prony.figures.claim_parts import (
    Bounds,
    ClaimResult,
    ClaimVerdict,
    Part,
    blocks_for_spreads,
    judged,
    of_effect,
    of_spreads,
    of_values,
)
from prony.figures.generator import is_at_ceiling
from prony.figures.missing import Missing
from prony.figures.statistics.compare import LEAST_BLOCKS, Terms, Verdict, few_sessions
from prony.figures.statistics.failure_rates import Failures, clopper_pearson, compare_in_blocks
from prony.figures.summary import NOT_STEADY, CellSummary, TrialFigures
from prony.model.plan import Claim, ClaimKind
from prony.model.trial import Failed

_ONE_CORE_PERCENT = 100.0
_MOST = 0.5
# What connections set where the server waits before each reply.
_OF_CONNECTIONS = "ok_per_s"
_OF_A_RUN = "duration_ns_per_request"
# What twice the CPUs make twice as good at most.
_OF_CPUS = ("ok_per_s", _OF_A_RUN)
_COMPARED = (ClaimKind.HIGHEST, ClaimKind.LOWEST, ClaimKind.RATIO)
# Of the level at which a claim that one fails more than others is refuted: the rest is for the shares of
# these. So none of five trials still refutes that most fail, and seven of seven that one rival does not.
_OF_SHARES = 0.8


def evaluate(claim: Claim, cells: Sequence[CellSummary], terms: Terms | None = None) -> ClaimResult:
    """Return the verdict of a study's cells, of all loads, on ``claim``.

    *Definition*: not testable where a need of the claim is not met, blocks included (at least 5 for an order,
    a ratio and growth), unless it lacks CPUs and these could not change the verdict
    (`claim_needs.more_with_cpus`). ``terms``: the margin and how trials are counted.
    """
    own = claimed(claim, cells)
    lacking = unmet(claim, tested(claim, cells))
    if own and not any(cell.total for cell in own):
        lacking = UnmetNeed(f"{own[0].cell.subject.name}, which has no trial")
    is_bounded = lacking is not None and lacking.of is Lack.MACHINE and _is_bounded_by_cpus(claim)
    if lacking is None or is_bounded:
        found = _combined(_KINDS[claim.kind](claim, own, cells, terms or Terms()))
        if lacking is None or found.verdict in (ClaimVerdict.HOLDS, ClaimVerdict.DOES_NOT_HOLD):
            return found
    return ClaimResult(ClaimVerdict.NOT_TESTABLE, reason=f"needs {lacking.words}", lack=lacking.of)


def _is_bounded_by_cpus(claim: Claim) -> bool:
    """Return whether a claim compares what the CPU time of a request bounds, or is about one's own speed."""
    is_own = claim.kind is ClaimKind.VALUE and is_speed(claim.metric)
    return is_own or (claim.kind in _COMPARED and claim.metric in _OF_CPUS)


def _combined(parts: Sequence[ClaimResult]) -> ClaimResult:
    """Return the part that decides: the weakest that does not hold, else the weakest open one, else the
    weakest of all.
    """
    for verdict in (ClaimVerdict.DOES_NOT_HOLD, ClaimVerdict.CANNOT_TELL):
        for part in parts:
            if part.verdict is verdict:
                return part
    return parts[0] if parts else ClaimResult(ClaimVerdict.CANNOT_TELL, reason="nobody to compare with")


# --- orders and ratios ------------------------------------------------------------------------------------


def _unqualified(claim: Claim, cell: CellSummary) -> str | None:
    """Return why a cell's speed does not count. The time of a run of so many requests is that of all of it,
    its slow start too, as a client like ab has it: a change of its pace takes nothing from that.
    """
    is_of_run = claim.metric == _OF_A_RUN and "requests" in cell.cell.load
    if not is_speed(claim.metric) or (is_of_run and cell.unqualified == NOT_STEADY):
        return None
    return cell.unqualified


def _valueless(claim: Claim, cell: CellSummary) -> str | None:
    """Return why a cell's speed does not count, not even as a bound: latencies of those that were answered
    are one.
    """
    return None if _flatters(claim, cell) else _unqualified(claim, cell)


def _flatters(claim: Claim, cell: CellSummary) -> bool:
    is_latency = "_ok_" in claim.metric and METRICS[claim.metric].better is Better.LOWER
    return is_latency and cell.answers_some


def _ratios(claim: Claim, cell: CellSummary, other: CellSummary) -> dict[Place, float]:
    mine, theirs = by_block(cell, claim), by_block(other, claim)
    both = sorted(mine.keys() & theirs.keys())
    return {b: log(mine[b] / theirs[b]) for b in both if mine[b] > 0 and theirs[b] > 0}


def _units(values: Mapping[Place, float], terms: Terms) -> list[float]:
    """Return what a part counts: the values of blocks, or where sessions count, the mean of each of these."""
    if not terms.by_session:
        return list(values.values())
    sessions: dict[int, list[float]] = {}
    for (session, _), value in values.items():
        sessions.setdefault(session, []).append(value)
    return [fsum(found) / len(found) for found in sessions.values()]


def _pairs(
    claim: Claim, own: Sequence[CellSummary], cells: Sequence[CellSummary]
) -> Iterable[tuple[CellSummary, CellSummary]]:
    return ((cell, other) for cell in own for other in rivals(claim, cell, cells))


def _order(
    claim: Claim, own: Sequence[CellSummary], cells: Sequence[CellSummary], terms: Terms
) -> list[ClaimResult]:
    """Estimand: the ratio to each rival under the same load. It holds where every interval lies on the
    claimed side of 1, by more than the claim's tolerance, and does not where one lies on the other side by
    as much: in between the difference is of no interest. Rivals whose speed does not qualify are no rivals; a
    load at which none is left cannot tell.
    """
    bar, doubt = 1 + claim.tolerance, (1 + claim.tolerance) ** 2
    highest = claim.kind is ClaimKind.HIGHEST
    bounds = Bounds(bar, None, doubt) if highest else Bounds(None, 1 / bar, doubt)
    pairs = list(_pairs(claim, own, cells))
    fit = [(cell, other) for cell, other in pairs if _no_rival(claim, other) is None]
    met = {id(cell) for cell, _ in fit}
    alone = {where(cell): None for cell, _ in pairs if id(cell) not in met}
    return _compared(claim, fit, bounds, terms) + [
        ClaimResult(ClaimVerdict.CANNOT_TELL, 0, reason=f"{one}: no other server's speed qualifies")
        for one in alone
    ]


def _ratio(
    claim: Claim, own: Sequence[CellSummary], cells: Sequence[CellSummary], terms: Terms
) -> list[ClaimResult]:
    """Estimand: the ratio to each rival; it holds where the whole interval lies within the bounds."""
    return _compared(claim, list(_pairs(claim, own, cells)), Bounds(claim.low, claim.high), terms)


def _compared(
    claim: Claim, pairs: Sequence[tuple[CellSummary, CellSummary]], bounds: Bounds, terms: Terms
) -> list[ClaimResult]:
    parts: list[Part] = []
    for cell, other in pairs:
        ratios, name = _units(_ratios(claim, cell, other), terms), f"{where(cell)}, to {other.name}"
        lost = _valueless(claim, cell) or _no_rival(claim, other)
        own, theirs = (_reach(claim, one) for one in (cell, other))
        ends = ends_of(claim.metric, Bounded(own, theirs))
        part = replace(of_effect(ratios, name, lost, ends), limit=_bound_by(claim, cell, other))
        part = _with_cpus(_with_survivors(part, claim, cell, other), claim, cell, other)
        parts.append(_with_ceiling(part, claim, cell, other))
    return judged(parts, bounds, terms, blocks_needed(claim))


def _no_rival(claim: Claim, other: CellSummary) -> str | None:
    """Return why a cell is no rival; of an order, its failures are no reason where it had too few CPUs."""
    if claim.kind is ClaimKind.RATIO:
        return _valueless(claim, other)
    return None if more_with_cpus(claim, other) > 1 else _unqualified(claim, other)


def _with_cpus(part: Part, claim: Claim, cell: CellSummary, other: CellSummary) -> Part:
    """Return the ratio as a bound where a side had fewer CPUs than the claim needs. A rival whose requests
    fail can be beaten so, but refutes nothing: with these CPUs it may be no rival either.
    """
    found = Bounded(more_with_cpus(claim, cell), more_with_cpus(claim, other))
    if not found:
        return part
    ends = ends_of(claim.metric, found)
    if _unqualified(claim, other) is not None:
        ends |= Open(above=inf) if claim.kind is ClaimKind.HIGHEST else Open(below=inf)
    most = max((one for one in (found.first, found.second) if one < inf), default=inf)
    bound = f"{max(cpus_wanted(claim))} CPUs make neither more than {most:.3g} times as fast"
    name = f"{part.name}: {bound}, by the CPU time of a request here"
    return replace(part, name=name, open=part.open | ends)


_SURVIVORS = "trials that the server failed are missing, and may have been the slow ones"
_ANSWERED = "requests without a reply are missing, and waited longer"


def _with_survivors(part: Part, claim: Claim, cell: CellSummary, *others: CellSummary) -> Part:
    """Return the part as a bound where a side failed trials, or left requests without a reply: by the rest it
    may seem better.
    """
    ends = _worse_end(claim, cell)
    for other in others:
        ends |= _worse_end(claim, other).turned
    if ends == Open():
        return part
    found = _missing(claim, cell, *others)
    limit = found if part.open == Open() else f"{part.limit}; {found}"
    return replace(part, open=part.open | ends, limit=limit)


def _missing(claim: Claim, *cells: CellSummary) -> str:
    """Return what may have been slower and is in no figure of these cells."""
    are_trials = any(is_frail(cell, claim.metric) for cell in cells)
    are_requests = any(_flatters(claim, cell) for cell in cells)
    return "; ".join([_SURVIVORS] * are_trials + [_ANSWERED] * are_requests)


def _worse_end(claim: Claim, cell: CellSummary) -> Open:
    """Return where the true value may lie, had the server not failed trials or requests of the cell."""
    if not is_frail(cell, claim.metric) and not _flatters(claim, cell):
        return Open()
    return Open(below=inf) if METRICS[claim.metric].better is Better.HIGHER else Open(above=inf)


_HIDDEN = {
    Verdict.LIMITED: "the generator was the limit",
    Verdict.DISTURBED: "other programs ran",
    Verdict.SHARED: "the generator ran on its CPUs",
}
_BY_SERVER = "the server ran on the generator's CPUs"


def _bound_by(claim: Claim, *cells: CellSummary) -> str:
    """Return why figures of these cells are bounds, if they are."""
    roles = list(filter(None, (unsampled(claim, cell) for cell in cells)))
    held = any(cell.at_least for cell in cells) or not roles
    return "; ".join([*([f"{_hidden_words(cells)}, so the figure is a bound"] if held else []), *roles])


def _hidden_words(cells: Sequence[CellSummary]) -> str:
    hidden = hidden_by(cells)
    by_server = hidden is Verdict.SHARED and any(cell.is_of_generator for cell in cells)
    return _BY_SERVER if by_server else _HIDDEN[hidden]


def _with_ceiling(part: Part, claim: Claim, cell: CellSummary, other: CellSummary) -> Part:
    """Return the ratio as a bound where the connections of one side, and not its generator, set its
    throughput, and the other side is another generator with another number of them. Of one generator these
    numbers are what is compared.
    """
    found = [_ceiling(claim, one) for one in (cell, other)]
    is_one = cell.cell.engine.name == other.cell.engine.name
    if found == [None, None] or cell.most_per_s == other.most_per_s or is_one:
        return part
    one, rival = (1.0 if limit is None else inf for limit in found)
    ends = ends_of(claim.metric, Bounded(one, rival))
    limits = [part.limit if part.open != Open() else None, *found]
    return replace(part, open=part.open | ends, limit="; ".join(filter(None, limits)))


def _reach(claim: Claim, cell: CellSummary) -> float:
    """Return the factor by which a cell may be better: by no more than its connections allow."""
    return min(cell.reach(claim.metric, claim.role), max(1.0, _room(claim, cell)))


def _room(claim: Claim, cell: CellSummary) -> float:
    """Return the most that a cell's connections let through, over what it had; infinite if nobody knows."""
    value = cell.metrics[claim.metric]
    if claim.metric != _OF_CONNECTIONS or isinstance(value, Missing) or cell.most_per_s is None:
        return inf
    return cell.most_per_s / value.mean if value.mean else inf


def _ceiling(claim: Claim, cell: CellSummary) -> str | None:
    """Return that a cell's connections let no more requests through; None where they do, or nobody knows."""
    if not is_at_ceiling(1.0, _room(claim, cell)):
        return None
    return f"{cell.name} is at the {cell.most_per_s:,.0f} /s that its connections allow, whoever sends them"


# --- values -----------------------------------------------------------------------------------------------


def _value(
    claim: Claim, own: Sequence[CellSummary], _: Sequence[CellSummary], terms: Terms
) -> list[ClaimResult]:
    """Estimand: the mean over blocks; it holds where the whole interval lies within the bounds. Of the share
    of failed requests: the share of trials in which it lies within the bounds; it holds where most do.
    """
    if claim.counts_trials:
        return _counted(claim, own, terms)
    return judged(_means(claim, own, terms), Bounds(claim.low, claim.high), terms, claim.needs.blocks)


def _single_core(
    claim: Claim, own: Sequence[CellSummary], _: Sequence[CellSummary], terms: Terms
) -> list[ClaimResult]:
    """Estimand: the mean CPU of a server that has more than one core; it holds where the whole interval lies
    at or below one core and the claim's tolerance: samples of CPU and time are not taken at one moment.
    """
    most = _ONE_CORE_PERCENT * (1 + claim.tolerance)
    return judged(_means(claim, own, terms), Bounds(None, most), terms, claim.needs.blocks)


def _means(claim: Claim, own: Sequence[CellSummary], terms: Terms) -> list[Part]:
    found = (of_values(_units(by_block(cell, claim), terms), where(cell)) for cell in own)
    return [_bounded(part, claim, cell) for part, cell in zip(found, own, strict=True)]


def _bounded(part: Part, claim: Claim, cell: CellSummary) -> Part:
    more = more_with_cpus(claim, cell)
    faster = open_end(claim.metric, at_least=more > 1).at_most(more if claim.metric in _OF_CPUS else inf)
    ends, limit = _end(claim, cell) | faster, _bound_by(claim, cell)
    bound = replace(part, lost=_lost(claim, cell), open=ends, limit=limit)
    return _with_survivors(bound, claim, cell)


def _lost(claim: Claim, cell: CellSummary) -> str | None:
    """Return why a cell has no value that counts; None if it has one, or if only its trials are too few."""
    value = cell.metrics[claim.metric]
    missing = value.reason if isinstance(value, Missing) and cell.ok and not claim.role else None
    return _valueless(claim, cell) or missing


# --- spread -----------------------------------------------------------------------------------------------


def _steadier(
    claim: Claim, own: Sequence[CellSummary], cells: Sequence[CellSummary], terms: Terms
) -> list[ClaimResult]:
    """Estimand: the ratio of the spreads over blocks, of logarithms, to each rival's; it holds where the
    whole interval lies below 1. Where figures of a side are bounds, its spread is larger or smaller by what
    these leave open.
    """
    parts = []
    for cell, other in _pairs(claim, own, cells):
        pairs = _both(claim, cell, other, terms)
        mine, theirs = (_open_spread(claim, *side) for side in ((cell, 0, pairs), (other, 1, pairs)))
        part = of_spreads(pairs, f"{where(cell)}, to {other.name}")
        lost = _unqualified(claim, cell) or _unqualified(claim, other)
        limit = _spoilt_spread(claim, cell, other) or ""
        parts.append(replace(part, lost=lost, open=mine | theirs.turned, limit=limit))
    fewest = blocks_for_spreads(terms.nominal(terms.level / max(1, len(parts))))
    return judged(parts, Bounds(None, 1.0), terms, max(fewest, blocks_needed(claim)))


def _open_spread(claim: Claim, cell: CellSummary, side: int, pairs: Sequence[tuple[float, float]]) -> Open:
    """Return where a side's mean distance from the median may lie.

    *Definition*: each logarithm may be more by up to r, that of the largest reach; so a distance from a
    middle that is r / 2 more changes by r / 2 at most, and the median has the least mean distance.
    """
    most = inf if is_frail(cell, claim.metric) else cell.reach(claim.metric, claim.role)
    if most == 1 or not pairs:
        return Open()
    if is_pace(claim.metric):
        most = max(most, *cell.rate_reaches)
    elif is_speed(claim.metric):
        most = inf
    logs = [log(pair[side]) for pair in pairs]
    middle, off = median(logs), log(most) / 2
    distance = fsum(abs(one - middle) for one in logs) / len(logs)
    if not distance:
        return Open(inf, inf)
    return Open(below=distance / (distance - off) if off < distance else inf, above=1 + off / distance)


def _both(claim: Claim, cell: CellSummary, other: CellSummary, terms: Terms) -> list[tuple[float, float]]:
    """Return the values of two cells in the blocks, or sessions, that both have."""
    mine, theirs = by_block(cell, claim), by_block(other, claim)
    both = sorted(place for place in mine.keys() & theirs.keys() if mine[place] > 0 and theirs[place] > 0)
    own, others = ({place: one[place] for place in both} for one in (mine, theirs))
    return list(zip(_units(own, terms), _units(others, terms), strict=True))


def _spoilt_spread(claim: Claim, *cells: CellSummary) -> str | None:
    """Return why the spread of one of these may be another one than that of its server; None if none is."""
    if any(open_end(claim.metric, at_least=cell.at_least) != Open() for cell in cells):
        return f"{_hidden_words(cells)}, so the spread may be its own"
    return _SURVIVORS if any(is_frail(cell, claim.metric) for cell in cells) else None


# --- growth -----------------------------------------------------------------------------------------------


def _grows(
    claim: Claim, own: Sequence[CellSummary], _: Sequence[CellSummary], terms: Terms
) -> list[ClaimResult]:
    """Estimand: exp(s ln(heaviest / lightest load)), s the slope of ln(metric) on ln(load), fitted in each
    block. It holds where the interval lies within the claim's bounds; without any, above 1 by more than the
    margin. It does not hold where it lies outside of them.
    """
    name = _varied(own)
    if name is None:
        return [ClaimResult(ClaimVerdict.NOT_TESTABLE, reason="needs two loads or more")]
    alike: dict[tuple[str, str], list[CellSummary]] = {}
    for cell in (one for one in own if name in one.cell.load):
        alike.setdefault((cell.cell.subject.name, cell.cell.engine.name), []).append(cell)
    curves = [found for found in alike.values() if len({cell.cell.load[name] for cell in found}) > 1]
    parts = [_growth(claim, found, name, terms) for found in curves]
    low = 1 + terms.margin if claim.low is None and claim.high is None else claim.low
    return judged(parts, Bounds(low, claim.high), terms, blocks_needed(claim))


def _varied(own: Sequence[CellSummary]) -> str | None:
    """Return the quantity in which these loads differ; None when they do not."""
    names = ("connections", "rate", "streams", "requests", "threads")
    return next((name for name in names if len({cell.cell.load.get(name) for cell in own}) > 1), None)


def _growth(claim: Claim, cells: Sequence[CellSummary], name: str, terms: Terms) -> Part:
    sizes = [cell.cell.load[name] for cell in cells]
    span = log(max(sizes) / min(sizes))
    values = {size: by_block(cell, claim) for size, cell in zip(sizes, cells, strict=True)}
    blocks = sorted(set.intersection(*(set(found) for found in values.values())))
    curves = {block: [(log(size), found[block]) for size, found in values.items()] for block in blocks}
    slopes = {block: _slope(curve) for block, curve in curves.items() if all(value > 0 for _, value in curve)}
    growths = [span * slope for slope in _units(slopes, terms)]
    lost = next((lost for cell in cells if (lost := _valueless(claim, cell))), None)
    title = f"{cells[0].cell.subject.name}, from {min(sizes):g} to {max(sizes):g} {name}"
    part = of_effect(growths, title, lost, _ends_of_growth(claim, cells, sizes))
    return replace(part, limit="; ".join(filter(None, [_bound_by(claim, *cells), _missing(claim, *cells)])))


def _end(claim: Claim, cell: CellSummary) -> Open:
    reach = cell.reach(claim.metric, claim.role)
    return open_end(claim.metric, at_least=reach > 1).at_most(reach)


def _ends_of_growth(claim: Claim, cells: Sequence[CellSummary], sizes: Sequence[float]) -> Open:
    """Return where the true growth may lie: what is higher under a load above the middle adds to it, by as
    much as that load weighs in the slope.
    """
    logs = [log(size) for size in sizes]
    middle, span = fsum(logs) / len(logs), max(logs) - min(logs)
    squares, ends = fsum((one - middle) ** 2 for one in logs), Open()
    for cell, at in zip(cells, logs, strict=True):
        own = (_end(claim, cell) | _worse_end(claim, cell)) ** (span * abs(at - middle) / squares)
        ends |= own if at > middle else own.turned
    return ends


def _slope(curve: Sequence[tuple[float, float]]) -> float:
    """Return the least-squares slope of ln(value) on x."""
    middle = fsum(x for x, _ in curve) / len(curve)
    squares = fsum((x - middle) ** 2 for x, _ in curve)
    return fsum((x - middle) * log(value) for x, value in curve) / squares


# --- failures ---------------------------------------------------------------------------------------------


def _fails(
    claim: Claim, own: Sequence[CellSummary], cells: Sequence[CellSummary], terms: Terms
) -> list[ClaimResult]:
    """Estimand: the share of trials in which more than ``low`` (0.1 %) of the requests end so, or, without a
    kind, the server fails. It holds where most do (one-sided, exact), and, against others, more of them than
    of those, in the blocks that both have (`failure_rates.compare_in_blocks`). It does not where most trials
    of one of the others fail too.
    """
    if claim.against == "*":
        return _counted(claim, own, terms)
    pairs = list(_pairs(claim, own, cells))
    found = _counted(claim, own, terms, _OF_SHARES)
    found += [_more(claim, cell, other, terms) for cell, other in pairs]
    return found + _too(claim, [other for _, other in pairs], terms)


def _too(claim: Claim, others: Sequence[CellSummary], terms: Terms) -> list[ClaimResult]:
    """Return of which others most trials are shown to fail as well, at what the own shares leave of the
    level.
    """
    shares, tests = [_share(claim, [other], terms) for other in others], len(others) / (1 - _OF_SHARES)
    found = judged(shares, Bounds(None, _MOST), terms, claim.needs.blocks, tests)
    return [
        replace(one, reason=f"its rival fails too: {one.reason}")
        for one in found
        if one.verdict is ClaimVerdict.DOES_NOT_HOLD
    ]


def _counted(
    claim: Claim, own: Sequence[CellSummary], terms: Terms, of_level: float = 1.0
) -> list[ClaimResult]:
    """Return the verdict on each cell's share of trials, and of all cells together where that refutes it: if
    each cell has at least half, all have. ``of_level``: the part of the level that these may refute at.
    """
    bounds, least, tests = Bounds(_MOST, None), claim.needs.blocks, (len(own) + (len(own) > 1)) / of_level
    found = judged([_share(claim, [cell], terms) for cell in own], bounds, terms, least, tests)
    if len(own) > 1:
        pooled = judged([_share(claim, own, terms)], bounds, terms, least, tests)
        found += [one for one in pooled if one.verdict is ClaimVerdict.DOES_NOT_HOLD]
    return found


def _seen(claim: Claim, trials: Sequence[TrialFigures], terms: Terms, *, with_half: bool = False) -> Failures:
    """Return in how many trials it was as claimed; where sessions count, in how many of these."""
    if terms.by_session:
        found = list(_by_session(claim, trials, with_half=with_half).values())
    else:
        found = [_as_claimed(claim, trial) for trial in trials]
    return Failures(sum(found), len(found))


def _by_session(claim: Claim, trials: Sequence[TrialFigures], *, with_half: bool = False) -> dict[int, bool]:
    """Return by session whether it was as claimed in most of its trials, or ``with_half`` in at least half of
    them.
    """
    sessions: dict[int, list[bool]] = {}
    for trial in trials:
        sessions.setdefault(trial.session, []).append(_as_claimed(claim, trial))
    least = operator.ge if with_half else operator.gt
    return {session: least(sum(one), _MOST * len(one)) for session, one in sessions.items()}


def _by_unit(claim: Claim, trials: Sequence[TrialFigures], terms: Terms) -> dict[int, bool]:
    """Return whether it was as claimed, of one cell, by block or by session."""
    if terms.by_session:
        return _by_session(claim, trials)
    return {trial.block: _as_claimed(claim, trial) for trial in trials}


def _as_claimed(claim: Claim, trial: TrialFigures) -> bool:
    if isinstance(trial.outcome, Failed):
        fails = claim.kind is ClaimKind.FAILS and claim.failure in (None, trial.outcome.stage)
        return fails or (claim.kind is ClaimKind.VALUE and claim.high is None)
    share = _lost_share(claim, trial)
    if claim.kind is ClaimKind.FAILS:
        return share > (QUALIFIED_ERROR_RATIO if claim.low is None else claim.low)
    return (claim.low or 0.0) <= share <= (1.0 if claim.high is None else claim.high)


def _lost_share(claim: Claim, trial: TrialFigures) -> float:
    """Return the share of a trial's requests that ended as the claim names it; 0 where none is known."""
    asked = ending_named(claim.failure) if claim.failure else None
    found = trial.account.failed.items()
    lost = sum(count for ending, count in found if asked is None or asked.includes(ending))
    return lost / trial.account.requests if trial.account.requests else 0.0


_NEAR = 1.1


def _share(claim: Claim, cells: Sequence[CellSummary], terms: Terms) -> Part:
    """Return the share of the cells' trials that are as claimed, with its exact interval."""
    trials, name = [trial for cell in cells for trial in cell.judged], _range(claim, cells)
    found = _seen(claim, trials, terms)
    # A session in which half of the trials were so speaks for neither side.
    at_most = _seen(claim, trials, terms, with_half=True)
    if not found.total:
        return Part(where(cells[0]), 0)

    def interval(level: float) -> tuple[float, float]:
        # One-sided at the level: 5 of 5 trials show that most fail.
        low, _ = clopper_pearson(found.failed, found.total, min(1.0, 2 * level))
        _, high = clopper_pearson(at_most.failed, at_most.total, min(1.0, 2 * level))
        return low, high

    return Part(
        name=name,
        n=found.total,
        figure=found.failed / found.total,
        interval=interval,
        open=_ends_of_share(claim, cells),
        one_sided=True,
    )


def _range(claim: Claim, cells: Sequence[CellSummary]) -> str:
    """Return the cells, and how many of a trial's requests failed."""
    ran = [trial for cell in cells for trial in cell.counted]
    lost = [_lost_share(claim, trial) for trial in ran]
    name = where(cells[0]) if len(cells) == 1 else f"all {len(cells)} together"
    if not lost:
        return name
    low, high = format_percent(min(lost)), format_percent(max(lost))
    return f"{name}: {low if low == high else f'{low} to {high}'} of a trial's requests fail"


def _ends_of_share(claim: Claim, cells: Sequence[CellSummary]) -> Open:
    """Return where the true share of trials may lie: more requests would fail if the generator could more,
    and fewer on CPUs without it.

    *Assumptions*: a server that is a tenth faster at most fails in as many trials.
    """
    more = open_end(claim.metric, at_least=any(cell.at_least for cell in cells))
    if any(cell.is_of_generator for cell in cells):
        more |= more.turned
    elif hidden_by(cells) is Verdict.SHARED:
        more = more.turned if max(cell.rate_reach for cell in cells) > _NEAR else Open()
    if claim.kind is ClaimKind.FAILS or claim.high is None:
        return more
    return more.turned if claim.low is None else more | more.turned


def _more(claim: Claim, cell: CellSummary, other: CellSummary, terms: Terms) -> ClaimResult:
    """Return whether a cell's trials are shown to fail more often than a rival's: at the full level, for all
    rivals must agree.
    """
    # Of a few trials most fail by chance more easily than of many.
    ours, others = (_by_unit(claim, trials, terms) for trials in judged_in_common(cell, other))
    tested = compare_in_blocks(ours, others)
    mine, theirs = tested.first, tested.second
    name = f"{where(cell)}, against {other.name}"
    if not mine.total:
        return ClaimResult(ClaimVerdict.CANNOT_TELL, 0, reason=f"{name}: no trial counts in a block of both")
    n = mine.total
    if terms.by_session and n < LEAST_BLOCKS:
        return ClaimResult(ClaimVerdict.CANNOT_TELL, n, mine.share, reason=f"{name}: {few_sessions(n)}")
    what = "sessions" if terms.by_session else "trials"
    counts = f"{mine.failed} of {mine.total} {what} fail, against {theirs.failed} of {theirs.total}"
    said = f"{name}: {counts} ({tested.method})"
    is_shown = mine.share > theirs.share and tested.p_value <= terms.nominal(terms.level)
    verdict = ClaimVerdict.HOLDS if is_shown else ClaimVerdict.CANNOT_TELL
    return ClaimResult(verdict, n, mine.share, None, said, terms.level)


Evaluation = Callable[[Claim, Sequence[CellSummary], Sequence[CellSummary], Terms], list[ClaimResult]]

_KINDS: Mapping[ClaimKind, Evaluation] = MappingProxyType(
    {
        ClaimKind.HIGHEST: _order,
        ClaimKind.LOWEST: _order,
        ClaimKind.RATIO: _ratio,
        ClaimKind.VALUE: _value,
        ClaimKind.GROWS: _grows,
        ClaimKind.FAILS: _fails,
        ClaimKind.SINGLE_CORE: _single_core,
        ClaimKind.STEADIER: _steadier,
    }
)


# --- a claim asked of the software of its own time --------------------------------------------------------


class VersionChange(StrEnum):
    """Why a claim of the original does not hold, or what is known of it without the software of today."""

    VERSIONS = "versions changed"
    """It holds with the software of the time, and not with that of today."""
    HELD = "held"
    """It holds with the software of the time; that of today was not measured."""
    NOT_THEN = "did not hold"
    """It does not hold with the software of the time."""
    UNKNOWN = "cannot tell"


@dataclass(frozen=True, slots=True)
class Then:
    """What the subjects with the software of the time say of a claim; ``subjects``: how many there are."""

    change: VersionChange
    result: ClaimResult
    subjects: int


_CHANGES = {ClaimVerdict.HOLDS: VersionChange.VERSIONS, ClaimVerdict.DOES_NOT_HOLD: VersionChange.NOT_THEN}
_ALONE = {**_CHANGES, ClaimVerdict.HOLDS: VersionChange.HELD}


def of_the_time(
    claim: Claim,
    found: ClaimResult,
    cells: Sequence[CellSummary],
    editions: Mapping[str, str],
    terms: Terms,
) -> Then | None:
    """Return what the software of the original's time says of a claim that does not hold, or that could not
    be tested without it; None for any other claim, or where it was not measured.

    ``editions``: the subject of today by the name of the one with that software, which takes its place: the
    claim is compared among these alone.
    """
    changes = {ClaimVerdict.DOES_NOT_HOLD: _CHANGES, ClaimVerdict.NOT_TESTABLE: _ALONE}.get(found.verdict)
    old = in_their_place(cells, editions)
    if changes is None or not old:
        return None
    result = evaluate(claim, old, terms)
    if found.verdict is result.verdict is ClaimVerdict.NOT_TESTABLE:
        return None
    subjects = len({cell.cell.subject.name for cell in old})
    change = changes.get(result.verdict, VersionChange.UNKNOWN)
    # One refutes a claim; that it holds of some is not that it holds of all.
    if result.verdict is ClaimVerdict.HOLDS and subjects < len(editions):
        change = VersionChange.UNKNOWN
    return Then(change, result, subjects)


def in_their_place(cells: Sequence[CellSummary], editions: Mapping[str, str]) -> list[CellSummary]:
    """Return the cells with the software of the time that were measured, each by the name of today's."""
    return [
        _in_its_place(cell, editions) for cell in cells if cell.cell.subject.name in editions and cell.total
    ]


def _in_its_place(cell: CellSummary, editions: Mapping[str, str]) -> CellSummary:
    name = editions[cell.cell.subject.name]
    own = replace(cell.cell, subject=replace(cell.cell.subject, name=name))
    return replace(cell, cell=own, name=name)
