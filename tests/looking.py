"""Families of comparisons for tests of studies that look several times."""

from dataclasses import replace

from prony.figures.statistics.compare import Terms, compare_family
from prony.figures.statistics.power import decide
from prony.figures.statistics.spending import Look


def compare_at(family, blocks, precision, terms=None):
    """Return the comparisons at the look after `blocks`."""
    return compare_family(family, replace(terms or Terms(), look=Look(blocks, precision.looks)))


def decide_at(family, blocks, precision, terms=None):
    """Return the decision of the look after `blocks`, from log ratios."""
    return decide(compare_at(family, blocks, precision, terms), blocks, precision, terms)
