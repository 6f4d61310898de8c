"""Keeps a very large trial within what a reader takes: what Prony measured it must be able to read.

Of samples every second one stays, third one, and so on: CPU times and switches are cumulative, so fewer
samples lose resolution, and no figure of the whole window. Of threads the busiest stay, of events the
first. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from heapq import nlargest
from math import ceil
from operator import attrgetter

from prony.archive.caps import MOST_ROWS_OF_A_TRIAL
from prony.model.observation import Sample
from prony.model.trial import Trial

# Room for the ends of the phases, and for samples with more processes than the usual.
_FILLED = 0.9


def thinned(trial: Trial, most: Mapping[str, int] = MOST_ROWS_OF_A_TRIAL) -> Trial:
    """Return a trial with as many samples, threads and events as fit; what is not kept stands in its facts.

    The first and the last sample of each phase are always kept.
    """
    return _with_fewer_samples(_with_fewer_rows(trial, most), most)


def _with_fewer_rows(trial: Trial, most: Mapping[str, int]) -> Trial:
    threads = trial.threads
    if len(threads) > most["thread"]:
        threads = tuple(nlargest(most["thread"], threads, key=attrgetter("cpu_ns")))
    events = trial.events[: most["event"]]
    left_out = {
        "threads_left_out": len(trial.threads) - len(threads),
        "events_left_out": len(trial.events) - len(events),
    }
    if not any(left_out.values()):
        return trial
    facts = replace(trial.facts, free={**trial.facts.free, **left_out})
    return replace(trial, threads=threads, events=events, facts=facts)


def _with_fewer_samples(trial: Trial, most: Mapping[str, int]) -> Trial:
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
