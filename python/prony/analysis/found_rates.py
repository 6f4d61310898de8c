"""The highest rate at which a subject meets an objective: the rates that were tried, and their results.

Pure: the trials hold a search's state (`fact`), so an interrupted search continues where it stopped. Must
not know how a trial is run.

>>> steps = (RateStep(100.0, True), RateStep(200.0, False, "p99 was 80 ms"), RateStep(150.0, True))
>>> found_rate("waitress", steps, ()).stopped
'150/s met it; 200/s did not: p99 was 80 ms'
"""

from collections.abc import Mapping, Sequence
from math import ceil

from prony.analysis.missing import Missing, Value
from prony.analysis.objective import Condition, Objective
from prony.analysis.trial_metrics import trial_metrics
from prony.metrics import PERCENTILES, format_metric
from prony.model import Failed, Invalid, Ok, Trial
from prony.model.facts import FoundRate, RateStep

__all__ = ["found_rate", "judge_rate", "least_rate"]

_FEWEST_ABOVE = 10
"""A percentile is a figure only when this many requests lie above it."""


def judge_rate(trial: Trial, objective: Objective, rate_per_s: float) -> RateStep:
    """Return whether a trial at this rate met the objective.

    A subject that fails does not meet it; a trial that is not valid leaves it unknown. A missing figure
    (too few requests for a percentile) does not meet a condition.
    """
    limited = trial.recording.generator.limited if trial.recording else None
    match trial.outcome:
        case Failed(stage, reason):
            return RateStep(rate_per_s, False, f"it failed at {stage}: {reason}", limited)
        case Invalid(reason):
            return RateStep(rate_per_s, None, reason, limited)
        case Ok():
            metrics = trial_metrics(trial)
            found = objective.met(metrics)
            if found is True:
                return RateStep(rate_per_s, True, limited=limited)
            return RateStep(rate_per_s, False, _why_not(objective, metrics), limited)


def _why_not(objective: Objective, metrics: Mapping[str, Value]) -> str:
    """Return the first condition that is not met, and the measured value."""
    unmet = next(one for one in objective.conditions if one.met(metrics) is not True)
    return f"not `{unmet.text}`: {_measured(unmet, metrics)}"


def _measured(condition: Condition, metrics: Mapping[str, Value]) -> str:
    found = [(name, metrics[name]) for name in condition.metrics if name in metrics]
    name, value = next(((n, v) for n, v in found if not isinstance(v, Missing)), found[0])
    return value.reason if isinstance(value, Missing) else f"it was {format_metric(name, value)}"


def found_rate(subject: str, steps: Sequence[RateStep], fresh: Sequence[RateStep]) -> FoundRate:
    """Return the result of the search's steps and the fresh trials after it for one subject."""
    passed = [step.rate_per_s for step in steps if step.met]
    rate = max(passed, default=None)
    return FoundRate(
        subject,
        rate,
        sum(step.met is True for step in fresh),
        len(fresh),
        _stopped(steps, rate),
        tuple(steps),
    )


def _stopped(steps: Sequence[RateStep], rate: float | None) -> str:
    unknown = next((step for step in steps if step.met is None), None)
    if unknown is not None:
        return f"at {_shown(unknown.rate_per_s)} the search could not decide: {unknown.reason}"
    refused = [step for step in steps if step.met is False and (rate is None or step.rate_per_s > rate)]
    if rate is None:
        return (
            f"no rate met it, down to {_shown(refused[-1].rate_per_s)}: {refused[-1].reason}"
            if refused
            else ""
        )
    if not refused:
        return f"{_shown(rate)} met it, and no higher rate was tried"
    least = min(refused, key=lambda step: step.rate_per_s)
    by_generator = f" (the generator may have been the limit: {least.limited})" if least.limited else ""
    return f"{_shown(rate)} met it; {_shown(least.rate_per_s)} did not: {least.reason}{by_generator}"


def _shown(rate_per_s: float) -> str:
    return f"{rate_per_s:.5g}/s"


def least_rate(objective: Objective, window_s: float) -> float:
    """Return the least rate at which the objective's percentiles are figures, in requests per second.

    *Definition*: of n requests in the window, n (1 - p) >= 10.
    """
    shares = [_share_above(name) for condition in objective.conditions for name in condition.metrics]
    # Rounded: 1 - 0.999 is a little less than a thousandth.
    fewest = (ceil(round(_FEWEST_ABOVE / share, 6)) for share in shares if share)
    return max((count / window_s for count in fewest), default=0.0)


def _share_above(metric: str) -> float | None:
    found = next((value for suffix, value in PERCENTILES.items() if metric.endswith(f"_{suffix}")), None)
    return 1 - float(found) / 100 if found else None
