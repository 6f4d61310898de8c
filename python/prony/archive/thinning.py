"""Keeps the samples of a very long trial within what a reader takes: every second one, third one, and so on.

What Prony measured it must be able to read. CPU times and switches are cumulative, so fewer samples lose
resolution, and no figure of the whole window. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil

from prony.archive.caps import MOST_ROWS_OF_A_TRIAL
from prony.model import Trial
from prony.model.observation import Sample

__all__ = ["thinned"]


# Room for the ends of the phases, and for samples with more processes than the usual.
_FILLED = 0.9


def thinned(trial: Trial, most: Mapping[str, int] = MOST_ROWS_OF_A_TRIAL) -> Trial:
    """Return a trial with as many samples as fit; which every one is kept stands in its facts.

    The first and the last sample of each phase are always kept.
    """
    over = _over(trial.samples, most)
    if over <= 1:
        return trial
    step = ceil(over / _FILLED)
    facts = replace(trial.facts, free={**trial.facts.free, "one_sample_in": step})
    return replace(trial, samples=_every(trial.samples, step), facts=facts)


def _over(samples: Sequence[Sample], most: Mapping[str, int]) -> float:
    """Return how many times the rows of samples exceed what fits; 1 and below: they fit."""
    rows = {
        "sample": len(samples),
        "process_sample": sum(len(sample.processes) for sample in samples),
        "gauge": sum(len(sample.gauges) for sample in samples),
    }
    return max(found / most[table] for table, found in rows.items())


def _every(samples: Sequence[Sample], step: int) -> tuple[Sample, ...]:
    last = len(samples) - 1
    return tuple(
        sample
        for k, sample in enumerate(samples)
        if k % step == 0
        or k == last
        or sample.phase is not samples[k - 1].phase
        or sample.phase is not samples[k + 1].phase
    )
