"""How many blocks a study has: as many as were asked for, or until a look at its figures says enough.

Looks and budgets are between blocks only. Must not know how a block is run.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, pairwise

from prony.analysis.answer import log_ratios
from prony.analysis.compare import Terms
from prony.analysis.missing import Missing
from prony.analysis.sequential import Decision, decide
from prony.archive import open_archive
from prony.host.noise_floors import kept_floors
from prony.model import Plan, Precision
from prony.model.facts import Stopped
from prony.reading.study import Group, Reading, read_archive, terms
from prony.study.base import Study
from prony.study.ledger import Ledger
from prony.units import format_duration

__all__ = ["primary_family", "run_until_known"]

# With a single subject there is nothing to compare: its own figures are to be precise, and are never
# "equivalent" to their mean.
_NO_MARGIN = 1e-12


def run_until_known(study: Study, ledger: Ledger, run_block: Callable[[int], None]) -> Stopped | None:
    """Run blocks until a rule stops them, and return it; null where their number was fixed beforehand.

    A look says what a report would say then, with the noise floors that are kept for this machine. In a study
    that goes on, a block that others came after was not the last one: it is not asked again.
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
    """Return what stops the study after so many blocks, or null."""
    if blocks in precision.looks:
        with open_archive(study.out) as opened:
            floors = kept_floors(study.user.cache, opened.fingerprint())
            found = _decided(study.plan, precision, blocks, read_archive(opened, floors))
        if found:
            return found
    return _over_budget(precision, blocks, ledger.measured_ns)


def _decided(plan: Plan, precision: Precision, blocks: int, reading: Reading) -> Stopped | None:
    family, agreed = primary_family(reading), terms(plan, blocks)
    if not family:
        family, agreed = _alone(reading), Terms(margin=_NO_MARGIN, look=agreed.look)
    found = decide(family, blocks, precision, agreed, _floors(reading, family))
    if found.decision is Decision.CONTINUE:
        return None
    more = f"; about {found.projected} blocks would be needed" if found.projected else ""
    return Stopped(found.decision.value, blocks, f"{found.rule}{more}")


# The load, counted among the primary ones, and the names of those that are compared.
Member = tuple[int, str, str]


def primary_family(reading: Reading) -> dict[Member, Sequence[float]]:
    """Return the log ratios by block of all pairs that qualify, under each primary load.

    The metric is the one that decides under that load; what has none in common is not compared.
    """
    return {
        (number, one.name, other.name): log_ratios(one, other, group.answer.metric)
        for number, group in enumerate(_primary(reading))
        if group.answer.metric is not None
        for one, other in combinations([cell for cell in group.cells if cell.unqualified is None], 2)
    }


def _floors(reading: Reading, family: Iterable[Member]) -> dict[Member, float]:
    """Return the noise floor of each pair: that of its load's metric, as the report has it."""
    groups = _primary(reading)
    return {member: groups[member[0]].noise_floor for member in family}


def _alone(reading: Reading) -> dict[Member, Sequence[float]]:
    """Return each one's own log figures by block, about their mean."""
    return {
        (number, cell.name, ""): _centred([found[metric] for found in cell.by_block.values()])
        for number, group in enumerate(_primary(reading))
        if (metric := group.answer.metric) is not None
        for cell in group.cells
        if cell.unqualified is None
    }


def _centred(values: Sequence[float | Missing]) -> list[float]:
    logs = [math.log(value) for value in values if not isinstance(value, Missing) and value > 0]
    return [value - math.fsum(logs) / len(logs) for value in logs]


def _primary(reading: Reading) -> list[Group]:
    return [group for group in reading.groups if group.primary]


def _over_budget(precision: Precision, blocks: int, measured_ns: int) -> Stopped | None:
    """Return a stop when the next look, or within a stretch the next block, would end after the budget."""
    if precision.budget_ns is None:
        return None
    bounds = (0, *precision.looks)
    next_look = next(last for first, last in pairwise(bounds) if first <= blocks < last)
    more = next_look - blocks if blocks in precision.looks else 1
    if measured_ns * (1 + more / blocks) <= precision.budget_ns:
        return None
    budget = format_duration(precision.budget_ns)
    if blocks < precision.looks[0]:
        words = f"the time of {budget} was over before the first look, after {precision.looks[0]} blocks"
    else:
        words = f"the look after {next_look} blocks would have ended after the time of {budget}"
    return Stopped("budget", blocks, words)
