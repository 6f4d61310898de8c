"""Whether two subjects differ: from their effect to a verdict, for one comparison or for a whole family.

``Terms`` fix the rules before the run.

*Source*: D. J. Schuirmann, "A comparison of the two one-sided tests procedure", J. Pharmacokin. Biopharm. 15
(1987); and those of the modules that it puts together: effects, multiplicity, spending.

>>> compare([0.10, 0.11, 0.09, 0.10, 0.12]).verdict
<Verdict.HIGHER: 'higher'>

>>> holm({"a": 0.001, "b": 0.02, "c": 0.3}, 0.05)["b"]
0.025
>>> screening({"a": 0.001, "b": 0.02, "c": 0.3}, 0.05)
0.03333333333333333

Whether the effect of one factor depends on the level of another: ratios of two ratios within blocks.

>>> grid = {(0, 0): ["a"], (0, 1): ["b"], (1, 0): ["c"], (1, 1): ["d"]}
>>> step = {"a": 0.0, "b": 0.7, "c": 0.7, "d": 0.7}
>>> logs = {name: {k: step[name] + 0.001 * (k % 2) for k in range(6)} for name in step}
>>> round(interactions(grid, logs)[1, 1].effect, 2)
-0.5
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import permutations
from math import fsum, isinf, log1p, sqrt
from typing import TypeVar

from prony.figures.statistics.all_pairs import Pair, all_pairs, pair_level
from prony.figures.statistics.effects import Effect, change_of, paired
from prony.figures.statistics.spending import Look

LEAST_BLOCKS = 5
"""Fewer blocks give no verdict, and fewer sessions neither where a study has several."""

MARGIN = 0.02
"""Smaller differences are of no interest. Fixed before the run."""

Key = TypeVar("Key", bound=Hashable)


class Verdict(StrEnum):
    """The verdict on B / A. ``HIGHER`` and ``LOWER`` describe the figure; METRICS knows which is
    better.
    """

    HIGHER = "higher"
    LOWER = "lower"
    EQUIVALENT = "equivalent"
    TRIVIAL = "different, perhaps trivial"
    NOT_SHOWN = "not shown"
    LIMITED = "not shown: the generator was the limit"
    DISTURBED = "not shown: other programs may have hidden it"
    SHARED = "not shown: server and generator on the same CPUs may have hidden it"
    SURVIVORS = "not shown: its failed trials are missing"
    TOO_FEW = "too few blocks for a verdict"
    TOO_FEW_SESSIONS = "too few sessions for a verdict"
    TOO_FEW_RUNS = "too few runs for a verdict"


HIDDEN = (Verdict.LIMITED, Verdict.DISTURBED, Verdict.SHARED)
"""A figure is a bound, and what it leaves open is not said."""

HELD_BACK = (*HIDDEN, Verdict.SURVIVORS)
"""What was seen is not said, because of how it was seen: no block decides it."""

NO_VERDICT = (Verdict.TOO_FEW, Verdict.TOO_FEW_SESSIONS, Verdict.TOO_FEW_RUNS)

OPEN = (*NO_VERDICT, Verdict.TRIVIAL, Verdict.NOT_SHOWN)
"""More blocks, or sessions, may decide it."""


def few_sessions(sessions: int) -> str:
    """Return why so many sessions, fewer than five, have no verdict.

    >>> few_sessions(2)
    '2 sessions are too few for a verdict, which needs five'
    """
    be = "session is" if sessions == 1 else "sessions are"
    return f"{sessions} {be} too few for a verdict, which needs five"


@dataclass(frozen=True, slots=True)
class Terms:
    """The rules for a family of comparisons, fixed before the run.

    ``level``: the chance of any false difference in the family, and that of any false equivalence.
    ``margin``: a difference of less is of no interest.
    ``look``: where a study stands that looks several times, null: the number of blocks was fixed.
    ``screens``: the family is not the one that the run was made for, and false findings are held to a share
    of ``level`` of those found. ``by_session``: a session counts once, in place of a block, and fewer than
    five have no interval. ``too_few``: what is said of fewer than five blocks.
    """

    level: float = 0.05
    margin: float = MARGIN
    look: Look | None = None
    screens: bool = False
    by_session: bool = False
    too_few: Verdict = Verdict.TOO_FEW

    def nominal(self, level: float) -> float:
        """Return the two-sided level to test at now, for one over all looks."""
        started = self.look is not None and self.look.blocks >= self.look.planned[0]
        return self.look.nominal(min(level, 1.0)) if self.look and started else min(level, 1.0)


@dataclass(frozen=True, slots=True)
class Comparison:
    """B against A. ``effect`` is B / A - 1, ``low`` and ``high`` its interval at 1 - ``level``; null below
    two blocks.
    """

    blocks: int
    """Blocks that both have; of several sessions, these."""
    effect: float | None
    low: float | None
    high: float | None
    level: float
    """Of this interval alone, or of the intervals of all pairs together (`compare_all`)."""
    p_value: float | None
    """Of this pair alone, against no effect."""
    method: str
    verdict: Verdict
    """It describes the figure, not what is better."""
    spread: float | None = None
    """The standard deviation of one block's log ratio, with `freedom` degrees of freedom."""
    freedom: float | None = None
    nominal: float | None = None
    """The level of this pair alone, over all looks."""
    least: float | None = None
    """`least` and `most`: of several sessions, the range of the effect in single ones; with fewer than five
    there is nothing else. Else null."""
    most: float | None = None


@dataclass(frozen=True, slots=True)
class _Levels:
    """The levels of one member: two-sided for a difference, one-sided for equivalence. ``nominal``: that of
    a difference over all looks; ``stated``: the one that its interval is said to hold at, if not its own.
    """

    difference: float
    equivalence: float
    nominal: float
    stated: float | None = None


def _verdict(effect: Effect, levels: _Levels, terms: Terms) -> Verdict:
    low, high = effect.interval(levels.difference)
    margin = log1p(terms.margin)
    if low > margin:
        return Verdict.HIGHER
    if high < -margin:
        return Verdict.LOWER
    if effect.p_within(margin) <= levels.equivalence:
        return Verdict.EQUIVALENT
    return Verdict.TRIVIAL if low > 0 or high < 0 else Verdict.NOT_SHOWN


def _judged(effect: Effect, levels: _Levels, terms: Terms) -> Comparison:
    enough = effect.count >= LEAST_BLOCKS
    if (terms.by_session and not enough) or isinf(effect.error):
        return _without_interval(effect.count, effect.centre, effect.method, terms)
    low, high = effect.interval(levels.difference)
    verdict = _verdict(effect, levels, terms) if enough else terms.too_few
    return Comparison(
        blocks=effect.count,
        effect=change_of(effect.centre),
        low=change_of(low),
        high=change_of(high),
        level=levels.difference if levels.stated is None else levels.stated,
        p_value=effect.p_value,
        method=effect.method,
        verdict=verdict,
        spread=effect.spread,
        freedom=effect.freedom,
        nominal=levels.nominal,
    )


def _alone(log_ratios: Sequence[float], terms: Terms) -> Comparison:
    """Return the comparison of fewer than two blocks."""
    return _without_interval(len(log_ratios), log_ratios[0] if log_ratios else None, "none", terms)


def _without_interval(count: int, centre: float | None, method: str, terms: Terms) -> Comparison:
    verdict = Verdict.TOO_FEW_SESSIONS if terms.by_session else terms.too_few
    effect = None if centre is None else change_of(centre)
    return Comparison(count, effect, None, None, terms.level, None, method, verdict)


def with_range(found: Comparison, log_ratios: Sequence[float]) -> Comparison:
    """Return a comparison with the range of the effect in single sessions, from the log ratio of each."""
    if not log_ratios:
        return found
    return replace(found, least=change_of(min(log_ratios)), most=change_of(max(log_ratios)))


def compare(log_ratios: Sequence[float], terms: Terms = Terms()) -> Comparison:
    """Return the verdict on B / A from ln(B_b / A_b), one for each block in which both are valid.

    *Definition*: as ``compare_effects``, for a family of one.
    *Errors*: none; fewer than 5 blocks give TOO_FEW.
    """
    return compare_family({"": log_ratios}, terms)[""]


def compare_family(family: Mapping[Key, Sequence[float]], terms: Terms = Terms()) -> dict[Key, Comparison]:
    """Return the comparison of each member of a family that was chosen before the run, from log ratios by
    block.

    *Definition*: as ``compare_effects``; members below two blocks have no interval.
    *Errors*: none; fewer than 5 blocks give TOO_FEW.
    """
    effects = {key: paired(ratios) for key, ratios in family.items() if len(ratios) >= 2}
    compared = compare_effects(effects, terms)
    return {key: compared.get(key) or _alone(ratios, terms) for key, ratios in family.items()}


def compare_effects(effects: Mapping[Key, Effect], terms: Terms) -> dict[Key, Comparison]:
    """Return the comparison of each effect, at the levels that it has in its family.

    *Definition*: the effect is exp(centre) - 1. HIGHER and LOWER: its interval lies beyond the margin;
    EQUIVALENT: two one-sided tests place it within the margin; TRIVIAL: the interval excludes 0. Differences
    get their levels by Holm from the p-values against 0, equivalences theirs from the p-values of the two
    one-sided tests: with one order for both, what is least different would be tested for equivalence at the
    most generous level. With looks, each level is spent over them.
    *Assumptions*: those of the effects. False HIGHER and LOWER are bounded by half of ``level`` at a true
    difference of the margin if the effects are positively dependent, as those against one leader are.
    Members without a verdict (fewer than 5 blocks) do not use up the level.
    """
    tested = {key: effect for key, effect in effects.items() if effect.count >= LEAST_BLOCKS}
    levels = _levels(tested, terms)
    alone = _Levels(terms.nominal(terms.level), 0.0, terms.level)
    return {key: _judged(effect, levels.get(key, alone), terms) for key, effect in effects.items()}


def _levels(effects: Mapping[Key, Effect], terms: Terms) -> dict[Key, _Levels]:
    differences = {key: effect.p_value for key, effect in effects.items()}
    if terms.screens:
        overall = screening(differences, terms.level)
        inner = _one_sided(screening(_within(effects, terms), terms.level), terms)
        return {key: _Levels(terms.nominal(overall), inner, overall) for key in effects}
    outer = holm(differences, terms.level, terms.nominal)
    inner_levels = _equivalences(effects, terms)
    return {key: _Levels(outer[key], inner_levels[key], terms.level) for key in effects}


def _one_sided(level: float, terms: Terms) -> float:
    return terms.nominal(2 * level) / 2


def _within(effects: Mapping[Key, Effect], terms: Terms) -> dict[Key, float]:
    same = log1p(terms.margin)
    return {key: effect.p_within(same) for key, effect in effects.items()}


def _equivalences(effects: Mapping[Key, Effect], terms: Terms) -> dict[Key, float]:
    """Return the one-sided level of each test for equivalence: Holm's, in their own order."""
    return holm(_within(effects, terms), terms.level, lambda level: _one_sided(level, terms))


# --- all pairs of several subjects ------------------------------------------------------------------------


def compare_all(logs: Mapping[str, Mapping[int, float]], terms: Terms = Terms()) -> dict[Pair, Comparison]:
    """Return the comparison of each ordered pair, second / first, from logarithms by subject and block.

    *Definition*: effects are those of ``all_pairs``. All intervals hold together at 1 - ``level``: each has
    the level at which Student's test of a pair keeps that of the studentised range (Tukey), spent over the
    looks. So whoever leads may be read off the same trials. Verdicts follow from these intervals as in
    ``compare_effects``; only equivalences have levels of their own (Holm).
    *Assumptions*: those of ``all_pairs``. One family is one measure under one load.
    *Source*: as ``studentized.pair_level``.
    """
    effects = all_pairs(logs)
    tested = {pair: effect for pair, effect in effects.items() if effect.count >= LEAST_BLOCKS}
    inner = _equivalences(tested, terms)
    found: dict[Pair, Comparison] = {}
    for (first, second), effect in effects.items():
        own = pair_level(terms.level, len(logs), effect.freedom)
        levels = _Levels(terms.nominal(own), inner.get((first, second), 0.0), own, terms.level)
        found[first, second] = _judged(effect, levels, terms)
        found[second, first] = _judged(effect.mirrored(), levels, terms)
    for first, second in permutations(logs, 2):
        found.setdefault((first, second), _alone(_common(logs[first], logs[second]), terms))
    if not terms.by_session:
        return found
    return {pair: with_range(one, _common(logs[pair[0]], logs[pair[1]])) for pair, one in found.items()}


def _common(first: Mapping[int, float], second: Mapping[int, float]) -> list[float]:
    return [second[block] - first[block] for block in sorted(first.keys() & second.keys())]


# --- the level of each of several tests, so that errors stay rare over all of them ------------------------


def _unchanged(level: float) -> float:
    return level


def holm(
    p_values: Mapping[Key, float], level: float, nominal: Callable[[float], float] = _unchanged
) -> dict[Key, float]:
    """Return the level of each test: ``level`` / m for the smallest p, ``level`` / (m - 1) for the next, ...

    After the first that is not rejected, all others keep its level. ``nominal`` gives the level of one look
    from a level over all looks; it must rise with it.

    *Definition*: the chance of any false rejection is at most ``level``, however the tests depend on each
    other. With looks: the procedure of Maurer and Bretz, in which every test spends its own level over the
    looks.
    *Source*: S. Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6 (1979);
    W. Maurer and F. Bretz, "Multiple testing in group sequential trials using graphical approaches",
    Statistics in Biopharmaceutical Research 5 (2013).
    """
    levels: dict[Key, float] = {}
    stopped: float | None = None
    for rank, key in enumerate(sorted(p_values, key=lambda key: p_values[key])):
        adjusted = stopped if stopped is not None else nominal(level / (len(p_values) - rank))
        levels[key] = adjusted
        if p_values[key] > adjusted:
            stopped = adjusted
    return levels


def screening(p_values: Mapping[Key, float], level: float) -> float:
    """Return the one level at which all are tested: of those rejected, about ``level`` are false.

    *Definition*: R ``level`` / m, where R is the largest number of tests with p <= R ``level`` / m, at least
    1; intervals at this level miss their truth in at most a share of ``level`` of those selected.
    *Assumptions*: tests are independent or positively dependent.
    *Source*: Y. Benjamini and Y. Hochberg, "Controlling the false discovery rate", J. R. Statist. Soc. B 57
    (1995); Y. Benjamini and D. Yekutieli, "False discovery rate-adjusted multiple confidence intervals", J.
    Am. Statist. Ass. 100 (2005).
    """
    total = max(1, len(p_values))
    ranked = enumerate(sorted(p_values.values()), start=1)
    rejected = max((rank for rank, p in ranked if p <= rank * level / total), default=1)
    return rejected * level / total


# --- whether the effect of one factor depends on the level of another -------------------------------------


Place = tuple[int, int]
"""A combination of levels of two factors, by their numbers; 0 is the first."""

_SHOWN = (Verdict.HIGHER, Verdict.LOWER)


class Dependent(StrEnum):
    """Whether the effect of one factor depends on the level of another."""

    YES = "depends"
    NO = "does not depend"
    NOT_SHOWN = "not shown"
    TOO_FEW = "too few blocks for a verdict"


def dependent(verdicts: Sequence[Verdict]) -> Dependent:
    """Return what the verdicts on all interactions of two factors say together.

    >>> dependent([Verdict.EQUIVALENT, Verdict.LOWER]).value
    'depends'
    """
    if any(one in _SHOWN for one in verdicts):
        return Dependent.YES
    if not verdicts or any(one is Verdict.TOO_FEW for one in verdicts):
        return Dependent.TOO_FEW
    return Dependent.NO if all(one is Verdict.EQUIVALENT for one in verdicts) else Dependent.NOT_SHOWN


def interactions(
    grid: Mapping[Place, Sequence[str]], logs: Mapping[str, Mapping[int, float]], terms: Terms | None = None
) -> dict[Place, Comparison]:
    """Return each interaction of two factors, from logarithms by subject and block.

    ``grid``: the subjects at each combination of levels, one for each combination of other factors' levels,
    in the same order everywhere.

    *Definition*: at (i, j), with y the logarithms, (y_ij - y_i0) - (y_0j - y_00), the mean over the other
    factors' levels: exp of it is by how much the ratio that level j makes at level i is larger than at level
    0. Both differences are effects of pairs (`all_pairs`) without a subject in common, so their squared
    errors add up. Verdicts and levels as in `compare_effects` (Holm over all combinations).
    *Assumptions*: those of `all_pairs`; within a block, deviations of subjects are independent.
    *Source*: R. A. Fisher, "The Design of Experiments" (1935), chapter 6, for interactions in factorial
    designs.
    """
    agreed = terms or Terms()
    effects = all_pairs(logs)
    found = {
        (i, j): _mean_effect([_step_more(effects, grid, (i, j), k) for k in range(len(grid[0, 0]))])
        for i, j in grid
        if i and j
    }
    known = {place: effect for place, effect in found.items() if effect is not None}
    return compare_effects(known, agreed)


def _step_more(
    effects: Mapping[Pair, Effect], grid: Mapping[Place, Sequence[str]], place: Place, k: int
) -> Effect | None:
    """Return what the step to a level makes here more than at the first level of the other factor."""
    i, j = place
    here = _step(effects, grid[i, 0][k], grid[i, j][k])
    there = _step(effects, grid[0, 0][k], grid[0, j][k])
    if here is None or there is None:
        return None
    error = sqrt(here.error**2 + there.error**2)
    count = min(here.count, there.count)
    freedom = min(here.freedom, there.freedom)
    return Effect(count, here.centre - there.centre, error, freedom, f"{here.method}, twice")


def _step(effects: Mapping[Pair, Effect], first: str, second: str) -> Effect | None:
    found = effects.get((first, second))
    back = effects.get((second, first))
    return found or (back.mirrored() if back else None)


def _mean_effect(parts: Sequence[Effect | None]) -> Effect | None:
    known = [one for one in parts if one is not None]
    if not known or len(known) < len(parts):
        return None
    error = sqrt(fsum(one.error**2 for one in known)) / len(known)
    centre = fsum(one.centre for one in known) / len(known)
    freedom = min(one.freedom for one in known)
    return Effect(min(one.count for one in known), centre, error, freedom, known[0].method)
