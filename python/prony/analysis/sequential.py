"""When a study that looks several times may stop: its figures are precise, its verdicts are reached, or more
blocks would not help.

A study of a fixed number of blocks has no such question. Must not know how blocks are run.

>>> steady = {"b/a": [0.10, 0.101, 0.099, 0.1, 0.102, 0.098, 0.1, 0.1, 0.101, 0.099]}
>>> decide(steady, 10, Precision(target=0.02)).decision
<Decision.REACHED: 'verdicts reached'>
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import ceil, log1p
from typing import TypeVar

from prony.analysis.compare import Comparison, Terms, Verdict, compare_family, paired_effects
from prony.analysis.effects import Effect, student_t
from prony.analysis.spending import Look
from prony.model import Precision

__all__ = ["Decision", "Stop", "compare_at", "decide"]

Key = TypeVar("Key", bound=Hashable)

_DECIDED = (Verdict.HIGHER, Verdict.LOWER, Verdict.EQUIVALENT)


class Decision(StrEnum):
    """The decision of a look."""

    CONTINUE = "continue"
    PRECISE = "precise enough"
    REACHED = "verdicts reached"
    FUTILE = "futile"
    AT_MAXIMUM = "at maximum"


@dataclass(frozen=True, slots=True)
class Stop:
    """The decision after ``blocks``, and the rule that made it, in words.

    ``projected``: about how many blocks the least uncertain open comparison would need, null if none is open.
    """

    decision: Decision
    blocks: int
    rule: str
    projected: int | None = None


def compare_at(
    family: Mapping[Key, Sequence[float]],
    blocks: int,
    precision: Precision,
    terms: Terms | None = None,
    floors: Mapping[Key, float] | None = None,
) -> dict[Key, Comparison]:
    """Return interval and verdict of each member at the look after ``blocks``: Holm's levels over the family,
    each spent over the looks. ``floors``: as for ``compare_effects``.

    *Definition*: the intervals of all looks hold together at their level (repeated confidence intervals), so
    that the time to stop may depend on them. Before the first planned look: the plain procedure.
    *Source*: C. Jennison and B. W. Turnbull, "Interim analyses: the repeated confidence interval approach",
    J. R. Statist. Soc. B 51 (1989).
    """
    return compare_family(family, replace(terms or Terms(), look=Look(blocks, precision.looks)), floors)


def _half_width(found: Comparison) -> float:
    if found.low is None or found.high is None:
        return float("inf")
    return (log1p(found.high) - log1p(found.low)) / 2


def _projected(effect: Effect, terms: Terms, precision: Precision) -> int:
    """Return about how many blocks make the interval narrow enough, or decide on which side of the bar the
    effect lies: (t s / d)^2 with d the target, or the distance to the bar, whichever is more.

    The bar is the margin, or a noise floor above it: then an effect below it is never decided.
    """
    most = precision.looks[-1]
    level = replace(terms, look=Look(most, precision.looks)).nominal(terms.level)
    quantile = student_t(1 - level / 2, effect.freedom * most / effect.count)
    beyond = abs(effect.centre) - log1p(terms.bar)
    distance = abs(beyond) if terms.bar <= terms.margin else max(0.0, beyond)
    return ceil((quantile * effect.spread / max(distance, log1p(precision.target))) ** 2)


def decide(
    family: Mapping[Key, Sequence[float]],
    blocks: int,
    precision: Precision,
    terms: Terms | None = None,
    floors: Mapping[Key, float] | None = None,
) -> Stop:
    """Return whether to stop after ``blocks``, from the log ratios by block of each primary comparison.
    ``floors``: as for ``compare_effects``.

    *Definition*: REACHED when every comparison is higher, lower or equivalent; PRECISE when every one is that
    or has a half-width of at most the target; AT_MAXIMUM after the last look; FUTILE when none that is open
    is projected to be either within the maximum, or at a look there is nothing to compare; otherwise, and
    between looks, CONTINUE.
    *Assumptions*: blocks are added whole.
    *Source*: C. Jennison and B. W. Turnbull, "Group Sequential Methods" (2000), chapters 9 and 10.
    """
    if not family:
        return _without_figures(blocks, precision)
    agreed = terms or Terms()
    found = compare_at(family, blocks, precision, agreed, floors)
    undecided = {key: one for key, one in found.items() if one.verdict not in _DECIDED}
    wide = {key for key, one in undecided.items() if _half_width(one) > log1p(precision.target)}
    effects = paired_effects(family)
    own = {key: agreed.above((floors or {}).get(key)) for key in wide}
    needs = [_projected(effects[key], own[key], precision) for key in wide if key in effects]
    projected = min(needs, default=None)
    decision = _decision(len(undecided), len(wide), projected, blocks, precision)
    return Stop(decision, blocks, _rule(decision, precision, len(family)), projected)


def _without_figures(blocks: int, precision: Precision) -> Stop:
    """More blocks of subjects that all fail would show nothing: that is not a verdict."""
    ends = blocks in precision.looks or blocks > precision.looks[-1]
    decision = Decision.FUTILE if ends else Decision.CONTINUE
    return Stop(decision, blocks, f"{decision}: no subject has figures that could be compared")


def _decision(
    undecided: int, wide: int, projected: int | None, blocks: int, precision: Precision
) -> Decision:
    most = precision.looks[-1]
    if blocks < most and blocks not in precision.looks:
        return Decision.CONTINUE
    if not undecided:
        return Decision.REACHED
    if not wide:
        return Decision.PRECISE
    if blocks >= most:
        return Decision.AT_MAXIMUM
    return Decision.FUTILE if projected is not None and projected > most else Decision.CONTINUE


def _rule(decision: Decision, precision: Precision, comparisons: int) -> str:
    looks = ", ".join(map(str, precision.looks))
    several = f", Holm over {comparisons} comparisons" if comparisons > 1 else ""
    return (
        f"{decision}: looks after {looks} blocks with O'Brien-Fleming-type spending{several}, "
        f"for intervals of ±{100 * precision.target:g} % or a verdict"
    )
