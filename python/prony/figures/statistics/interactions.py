"""Whether the effect of one factor depends on the level of another: ratios of two ratios within blocks.

>>> grid = {(0, 0): ["a"], (0, 1): ["b"], (1, 0): ["c"], (1, 1): ["d"]}
>>> step = {"a": 0.0, "b": 0.7, "c": 0.7, "d": 0.7}
>>> logs = {name: {k: step[name] + 0.001 * (k % 2) for k in range(6)} for name in step}
>>> round(interactions(grid, logs)[1, 1].effect, 2)
-0.5
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from math import fsum, sqrt

from prony.figures.statistics.all_pairs import Pair, all_pairs
from prony.figures.statistics.compare import Comparison, Terms, Verdict, compare_effects
from prony.figures.statistics.effects import Effect

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
        (i, j): _mean([_difference(effects, grid, (i, j), k) for k in range(len(grid[0, 0]))])
        for i, j in grid
        if i and j
    }
    known = {place: effect for place, effect in found.items() if effect is not None}
    return compare_effects(known, agreed)


def _difference(
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


def _mean(parts: Sequence[Effect | None]) -> Effect | None:
    known = [one for one in parts if one is not None]
    if not known or len(known) < len(parts):
        return None
    error = sqrt(fsum(one.error**2 for one in known)) / len(known)
    centre = fsum(one.centre for one in known) / len(known)
    freedom = min(one.freedom for one in known)
    return Effect(min(one.count for one in known), centre, error, freedom, known[0].method)
