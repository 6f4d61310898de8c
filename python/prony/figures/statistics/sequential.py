"""When a study that looks several times may stop: its figures are precise, its verdicts are reached, or more
blocks would not help.

A study of a fixed number of blocks has no such question.

>>> from prony.figures.statistics.compare import compare_family
>>> steady = compare_family({"b/a": [0.10, 0.101, 0.099, 0.1, 0.102, 0.098, 0.1, 0.1, 0.101, 0.099]})
>>> decide(steady, 10, Precision(target=0.02)).decision
<Decision.REACHED: 'verdicts reached'>
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import ceil, log1p
from typing import TypeVar

from prony.figures.statistics.compare import HELD_BACK, Comparison, Terms, Verdict
from prony.figures.statistics.effects import student_t
from prony.figures.statistics.spending import Look
from prony.model.plan import Precision

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


def _half_width(found: Comparison) -> float:
    if found.low is None or found.high is None:
        return float("inf")
    return (log1p(found.high) - log1p(found.low)) / 2


def _projected(found: Comparison, terms: Terms, precision: Precision) -> int | None:
    """Return about how many blocks make the interval narrow enough, or decide on which side of the bar the
    effect lies: (t s / d)^2 with d the target, or the distance to the bar, whichever is more. Null without an
    interval. The bar is the margin.
    """
    if found.effect is None or found.spread is None or found.freedom is None or found.nominal is None:
        return None
    most = precision.looks[-1]
    level = Look(most, precision.looks).nominal(found.nominal)
    quantile = student_t(1 - level / 2, found.freedom * most / found.blocks)
    distance = abs(abs(log1p(found.effect)) - log1p(terms.margin))
    return ceil((quantile * found.spread / max(distance, log1p(precision.target))) ** 2)


def decide(
    found: Mapping[Key, Comparison], blocks: int, precision: Precision, terms: Terms | None = None
) -> Stop:
    """Return whether to stop after ``blocks``, from each comparison that a report would show now, made with
    the look of ``blocks``.

    *Definition*: REACHED when every comparison is higher, lower or equivalent; PRECISE when every one is that
    or has a half-width of at most the target (left out: those that the generator limits, and those of
    survivors, which no block decides); AT_MAXIMUM after the last look; FUTILE when none that is open is
    projected to be either within the maximum, or at a look there is nothing to compare; otherwise, and
    between looks, CONTINUE.
    *Assumptions*: blocks are added whole. The intervals of all looks hold together at their level (repeated
    confidence intervals), so the time to stop, and the choice of what is shown, may depend on them.
    *Source*: C. Jennison and B. W. Turnbull, "Interim analyses: the repeated confidence interval approach",
    J. R. Statist. Soc. B 51 (1989); "Group Sequential Methods" (2000), chapters 9 and 10.
    """
    found = {key: one for key, one in found.items() if one.verdict not in HELD_BACK}
    if not found:
        return _without_figures(blocks, precision)
    agreed = terms or Terms()
    undecided = {key: one for key, one in found.items() if one.verdict not in _DECIDED}
    wide = {key: one for key, one in undecided.items() if _half_width(one) > log1p(precision.target)}
    needs = [_projected(one, agreed, precision) for one in wide.values()]
    projected = min((one for one in needs if one is not None), default=None)
    decision = _decision(len(undecided), len(wide), projected, blocks, precision)
    return Stop(decision, blocks, _rule(decision, precision, len(found)), projected)


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
    several = f", {comparisons} comparisons with the leaders" if comparisons > 1 else ""
    return (
        f"{decision}: looks after {looks} blocks with O'Brien-Fleming-type spending{several}, "
        f"for intervals of ±{100 * precision.target:g} % or a verdict"
    )
