"""From which second on a fresh server's pace is the one that it keeps: how long it warms up.

Must not know why a server changes its pace, or how a pilot is run.

>>> warm_after([50, 70, 85, 95, 100, 101, 99, 100, 100, 101, 99, 100], 0.02)
4
>>> warm_after([50, 60, 70, 80, 90, 100], 0.02) is None
True
"""

from collections.abc import Sequence
from itertools import pairwise
from math import sqrt
from statistics import fmean, median

from prony.analysis.missing import Missing
from prony.analysis.steady_state import pace_of
from prony.model.facts import PilotStep
from prony.model.trial import Trial
from prony.units import SECOND_NS

LEAST_SECONDS = 6
"""The shortest load of a pilot, in seconds: three parts of two."""

_LEAST_PART = 2
# In standard errors: how far two equal parts of a window may lie apart.
_REACH = 2.0
# Standard deviation over median absolute deviation of a normal, and of the difference of two.
_DEVIATION = 1.4826 / 2**0.5


def warm_after(pace: Sequence[float], margin: float) -> int | None:
    """Return after how many seconds a pace of at least 6 s no longer changes; null: it still does at its end.

    *Definition*: the number of first seconds to leave out, d, that minimises the sum of the squares about the
    mean of the n - d others, over (n - d)^2 (the marginal standard error rule); 0 if the means of both parts
    differ by no more than ``margin`` and two standard errors, the deviation of seconds being that of the
    differences of neighbours. It still changes: the last two thirds differ by more than that, or d is
    half of the seconds, the most that is looked at.
    *Assumptions*: noise of neighbouring seconds is not much alike; else a server is taken to warm up longer
    than it does.
    *Source*: K. P. White, "An effective truncation heuristic for bias reduction in simulation output",
    Simulation 69 (1997); K. Hoad, S. Robinson and R. Davies, "Automating warm-up length estimation", J. Oper.
    Res. Soc. 61 (2010).
    """
    part = max(_LEAST_PART, len(pace) // 3)
    deviation = _deviation(pace)
    if _differ(pace[-2 * part : -part], pace[-part:], margin, deviation):
        return None
    most = len(pace) // 2
    cut = min(range(most + 1), key=lambda first: _standard_error(pace[first:]))
    if not cut or not _differ(pace[:cut], pace[cut:], margin, deviation):
        return 0
    return None if cut == most else cut


def _differ(first: Sequence[float], rest: Sequence[float], margin: float, deviation: float) -> bool:
    """Return whether two parts differ by more than the margin and what noise may set them apart."""
    noise = _REACH * deviation * sqrt(1 / len(first) + 1 / len(rest))
    return abs(fmean(first) - fmean(rest)) > margin * fmean(rest) + noise


def _deviation(pace: Sequence[float]) -> float:
    steps = [after - before for before, after in pairwise(pace)]
    middle = median(steps)
    return _DEVIATION * median(abs(step - middle) for step in steps)


def _standard_error(pace: Sequence[float]) -> float:
    mean = fmean(pace)
    return sum((value - mean) ** 2 for value in pace) / len(pace) ** 2


def judge_pilot(trial: Trial, cell_id: int, seconds: int, margin: float) -> PilotStep:
    """Return what a pilot of ``seconds`` shows of the warm-up of a cell."""
    pace = pace_of(trial.recording)
    if isinstance(pace, Missing):
        return PilotStep(cell_id, seconds, reason=pace.reason)
    if len(pace) < LEAST_SECONDS:
        return PilotStep(cell_id, seconds, reason=f"{len(pace)} whole seconds; expected {LEAST_SECONDS}")
    if not min(pace) > 0:
        return PilotStep(cell_id, seconds, reason="a second without a valid reply")
    after = warm_after(pace, margin)
    return PilotStep(cell_id, seconds, changes=after is None, after_s=after)


def warmup_ns(planned_ns: int, longest_ns: int, step: PilotStep | None) -> int:
    """Return the warm-up of a cell's trials: what its last pilot found, at least as planned, and at most
    ``longest_ns`` where that is longer.
    """
    if step is None or step.reason:
        return planned_ns
    found_ns = longest_ns if step.after_s is None else min(step.after_s * SECOND_NS, longest_ns)
    return max(planned_ns, found_ns)
