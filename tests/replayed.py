"""Recorded noise of other programs, played over simulated studies of two servers on CPU 0 of two.

The product waits for quiet, judges trials, repeats them and reads the study; simulated are the clock, and
that who is ready on a CPU has a fair share of it. ``bench/noise`` holds the recordings.
"""

import csv
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import null_studies
from cells import cell_of
from golden import build
from prony.figures.statistics.compare import Verdict
from prony.figures.validity import Circumstances, judge
from prony.machine.activity import Activity
from prony.model.facts import Fingerprint, RunFacts
from prony.model.plan import Plan
from prony.model.sandbox import Placement
from prony.model.trial import Invalid, Run, TrialRecord
from prony.model.workload import ClosedLoop
from prony.reading.study import read
from prony.study.bench import Patience
from prony.study.task import MOST_RETRIES

FOLDER = Path(__file__).resolve().parent.parent / "bench" / "noise"
NOISE = 0.02
BLOCKS, WINDOW_S, BETWEEN_S = 5, null_studies.SECONDS, 3.0
_HERTZ = 10
_GENERATOR, _PLACED = 0.2, Placement((0,), (1,))


@dataclass(frozen=True)
class Noise:
    """Shares of CPU 0 that programs want and the hypervisor takes, and the latter of CPU 1, ten times a
    second.
    """

    wanted: np.ndarray
    stolen: np.ndarray
    stolen_beside: np.ndarray

    def taken(self):
        """Return what programs get of CPU 0 beside a server that never sleeps: at most half of it."""
        return np.minimum(self.wanted, 0.5 * (1 - self.stolen))


def recorded(name, steal=None):
    """Return a recording; ``steal``: its stolen time scaled to this mean."""
    with (FOLDER / f"{name}.csv").open() as file:
        wanted, *stolen = np.array([list(map(float, row)) for row in list(csv.reader(file))[1:]]).T
    scaled = [
        np.clip(one * (1 if steal is None else steal / max(one.mean(), 1e-3)), 0, 0.9) for one in stolen
    ]
    return Noise(wanted, *scaled)


class Clock:
    """Where a study is in a recording, which begins again at its end."""

    def __init__(self, noise, at_s):
        self.noise, self.at_s = noise, at_s

    def means(self, length_s):
        """Return what programs took of CPU 0 and the hypervisor of both, over a time that passes."""
        places = (int(self.at_s * _HERTZ) + np.arange(int(length_s * _HERTZ) or 1)) % len(self.noise.wanted)
        self.at_s += length_s
        of = (self.noise.taken(), self.noise.stolen, self.noise.stolen_beside)
        return [float(one[places].mean()) for one in of]

    def look(self, length_s):
        """Return what the product sees between trials, when programs have what they want."""
        start = int(self.at_s * _HERTZ)
        places = (start + np.arange(int(length_s * _HERTZ) or 1)) % len(self.noise.wanted)
        self.at_s += length_s
        return Activity({"busy": float(self.noise.wanted[places].mean()) / 2}, {}, 0)


class _Listener:
    def paused(self, left_s, words):
        """Hear that nothing is measured."""


def reading_of(noise, effect, rng):
    """Return the results of a study whose first server is faster by ``effect``."""
    cells = [cell_of(f"s{k}+hello", ClosedLoop(10), seconds=WINDOW_S, number=k + 1) for k in range(2)]
    plan = Plan("noise", "Noise", "", "full", tuple(cells), BLOCKS, 1)
    run = Run(1, "1.0", 0, 1, build.RunStatus.FINISHED, Fingerprint(), RunFacts())
    clock = Clock(noise, rng.uniform(0, len(noise.wanted) / _HERTZ))
    return read(plan, (run,), {}, list(_records(cells, clock, effect, rng)))


def _records(cells, clock, effect, rng):
    patience, number = Patience(look=clock.look), 0
    for block in range(BLOCKS):
        now = [cells[k] for k in rng.permutation(2)]
        for attempt in range(1 + MOST_RETRIES):
            trials = [_trial(cell, clock, patience, effect, rng) for cell in now]
            for trial in trials:
                yield TrialRecord(number := number + 1, 1, replace(trial, block=block, attempt=attempt))
            now = [cell for cell, one in zip(now, trials, strict=True) if isinstance(one.outcome, Invalid)]


def _trial(cell, clock, patience, effect, rng):
    """Return a trial beside what is recorded there, as the product judges it."""
    patience.wait(cell.workload, _Listener())
    clock.at_s += BETWEEN_S
    others, stolen, beside = clock.means(WINDOW_S)
    left = max(0.01, 1 - others - stolen)
    faster = np.log1p(effect) if cell.subject.name == "s0+hello" else 0.0
    found = null_studies._trial(cell, rng, faster + np.log(left) + NOISE * rng.normal(), 0.0, 0.0, 0.0)
    second_ns = WINDOW_S * build.SECOND
    counters = {
        "cpus.busy_ns": round((left + others + _GENERATOR) * second_ns),
        "cpus.steal_ns": round((stolen + beside) * second_ns),
        "cpus.idle_ns": round(max(0.0, 1 - _GENERATOR - beside) * second_ns),
        "cpus.interrupts_ns": 0,
        "generator_cpus.busy_ns": round(_GENERATOR * second_ns),
        "subject.cpu_ns": round(left * second_ns),
        "prony.cpu_ns": round(_GENERATOR * second_ns),
    }
    return judge(replace(found, counters=counters, placement=_PLACED), Circumstances())


def said(noise, effect, studies, seed):
    """Return the shares of studies that call the first server faster, slower, and neither; and of subjects
    without a figure.
    """
    rng, counts = np.random.default_rng(seed), dict.fromkeys(("faster", "slower", "neither", "without"), 0.0)
    for _ in range(studies):
        (group,) = reading_of(noise, effect, rng).groups
        counts[_said(group.answer)] += 1
        counts["without"] += without_a_figure(group) / len(group.cells)
    return {name: count / studies for name, count in counts.items()}


def without_a_figure(group):
    """Return how many subjects have no throughput."""
    return sum(cell.known("ok_per_s") is None for cell in group.cells)


def _said(answer):
    """Return what a report says of the first server against the second."""
    found = next(iter(answer.comparisons.values()), None)
    if found is None or found.verdict not in (Verdict.HIGHER, Verdict.LOWER, Verdict.TRIVIAL):
        return "neither"
    is_first = answer.first == "s0+hello"
    return "faster" if is_first is (found.verdict is Verdict.LOWER or (found.effect or 0) < 0) else "slower"
