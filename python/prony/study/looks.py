"""How many blocks a study has: a fixed number, or until a look at the figures stops it.

Looks and budgets apply between blocks only. Must not know how a block is run.
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

from prony.analysis.compare import Comparison, Terms, compare_family
from prony.analysis.missing import Missing
from prony.analysis.sequential import Decision, decide
from prony.archive import open_archive
from prony.model.facts import Stopped
from prony.model.plan import Plan, Precision
from prony.reading.groups import Group, terms
from prony.reading.study import Reading, read_archive
from prony.study.base import Study
from prony.study.ledger import Ledger
from prony.units import format_duration

# A single subject has nothing to compare with: its own figures must become precise, and are never
# "equivalent" to their mean.
_NO_MARGIN = 1e-12


def run_until_known(study: Study, ledger: Ledger, run_block: Callable[[int], None]) -> Stopped | None:
    """Run blocks until a rule stops them, and return it; null when their number was fixed in advance.

    A look judges the figures as a report would at that moment. When a study is resumed, a block
    that is followed by another one is not looked at again: it did not stop the study.
    """
    precision = study.plan.design.precision
    if precision is None:
        for block in range(study.plan.blocks):
            run_block(block)
        return None
    for block in range(precision.looks[-1]):
        run_block(block)
        stopped = None if ledger.has_after(block) else _after(study, precision, block + 1, ledger)
        if stopped:
            return stopped
    raise AssertionError("the last look always stops")


def _after(study: Study, precision: Precision, blocks: int, ledger: Ledger) -> Stopped | None:
    """Return what stops the study after this many blocks, or null."""
    if blocks in precision.looks:
        with open_archive(study.out) as opened:
            found = _decided(study.plan, precision, blocks, read_archive(opened))
        if found:
            return found
    return _over_budget(precision, blocks, ledger)


def _decided(plan: Plan, precision: Precision, blocks: int, reading: Reading) -> Stopped | None:
    shown, agreed = shown_comparisons(reading), terms(plan, blocks)
    if not shown:
        agreed = Terms(margin=_NO_MARGIN, look=agreed.look)
        shown = _alone(reading, agreed)
    found = decide(shown, blocks, precision, agreed)
    if found.decision is Decision.CONTINUE:
        return None
    more = f"; about {found.projected} blocks would be needed" if found.projected else ""
    return Stopped(found.decision.value, blocks, f"{found.rule}{more}")


# The position of the load among the primary ones, and the name of the subject.
Member = tuple[int, str]


def shown_comparisons(reading: Reading) -> dict[Member, Comparison]:
    """Return what a report shows as the answer: each qualified subject against the leader, under each primary
    load. What it does not show need not be decided.
    """
    return {
        (number, name): found
        for number, group in enumerate(_primary(reading))
        for name, found in group.answer.comparisons.items()
    }


def _alone(reading: Reading, agreed: Terms) -> dict[Member, Comparison]:
    """Return each subject's log figures by block, minus their mean, as a comparison with itself."""
    family = {
        (number, cell.name): _centred([found[metric] for found in cell.by_block.values()])
        for number, group in enumerate(_primary(reading))
        if (metric := group.answer.metric) is not None
        for cell in group.cells
        if cell.unqualified is None
    }
    return compare_family(family, agreed)


def _centred(values: Sequence[float | Missing]) -> list[float]:
    logs = [math.log(value) for value in values if not isinstance(value, Missing) and value > 0]
    return [value - math.fsum(logs) / len(logs) for value in logs]


def _primary(reading: Reading) -> list[Group]:
    return [group for group in reading.groups if group.primary]


def _over_budget(precision: Precision, blocks: int, ledger: Ledger) -> Stopped | None:
    """Return a stop when the next look, or a block before it, would end after the budget."""
    if precision.budget_ns is None:
        return None
    bounds = (0, *precision.looks)
    next_look = next(last for first, last in pairwise(bounds) if first <= blocks < last)
    more = next_look - blocks if blocks in precision.looks else 1
    blocks_ns = ledger.measured_ns - ledger.pilot_ns
    if ledger.pilot_ns + blocks_ns * (1 + more / blocks) <= precision.budget_ns:
        return None
    budget = format_duration(precision.budget_ns)
    if blocks < precision.looks[0]:
        words = f"the budget of {budget} was used up before the first look, after {precision.looks[0]} blocks"
    else:
        words = f"the blocks up to the next look, after {next_look}, would exceed the budget of {budget}"
    return Stopped("budget", blocks, words)
