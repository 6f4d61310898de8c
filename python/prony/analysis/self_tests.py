"""An archive as a test of the procedure itself: its A/A pairs, or pairs of subjects made equal.

Must not know archives or how they are measured.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations

from prony.analysis.answer import log_ratios
from prony.analysis.noise_floor import BLOCKS, SelfTest, centred, load_class, self_test
from prony.analysis.rates import is_speed
from prony.analysis.summary import CellSummary
from prony.analysis.versus import METRICS_COMPARED, Match

__all__ = ["is_real", "pairs", "self_tests"]


def pairs(groups: Iterable[Sequence[CellSummary]]) -> tuple[Match, ...]:
    """Return the pairs of cells under one load: those of one subject under two names, if there are any."""
    found = [Match(*two) for cells in groups for two in combinations(cells, 2)]
    return tuple([one for one in found if is_real(one)] or found)


def is_real(match: Match) -> bool:
    """Return whether both are the same subject except for its name, under the same requests."""
    first, second = match.first.cell, match.second.cell
    alike = replace(first.subject, name="") == replace(second.subject, name="")
    return alike and first.workload == second.workload


def self_tests(found: Sequence[Match]) -> tuple[SelfTest, ...]:
    """Return the self-test of the pairs, for each metric, class of load and number of blocks that they
    suffice for.

    *Definition*: of two subjects that differ, the effect is taken out of the log ratios first, and only
    permutations of the labels are read.
    """
    loads = dict.fromkeys(load_class(one.first.cell) for one in found)
    tests = (
        self_test(metric, load, _ratios(found, metric, load), blocks, is_real=all(map(is_real, found)))
        for load in loads
        for metric in METRICS_COMPARED
        for blocks in BLOCKS
    )
    return tuple(one for one in tests if one is not None)


def _ratios(found: Sequence[Match], metric: str, load: str) -> list[list[float]]:
    samples = []
    for match in found:
        fit = match.first.unqualified is None and match.second.unqualified is None
        ratios = log_ratios(match.first, match.second, metric)
        if load_class(match.first.cell) == load and ratios and (fit or not is_speed(metric)):
            samples.append(list(ratios) if is_real(match) else centred(ratios))
    return samples
