"""Simulated studies of subjects in blocks: noise of several shapes, alike or different between subjects.

Values are logarithms. Subjects of a null study have equal means of logs.
"""

from dataclasses import replace

import numpy as np

from histograms import Histogram
from prony.core.metrics import Better
from prony.figures.answer import ranking
from prony.model.recording import Account, Distribution, Second
from recordings import recording_of

ALIKE = ("normal", "t3", "two peaks", "bad runs", "skewed")
"""Shapes that all subjects share: normal; Student's t with 3 degrees of freedom; two peaks; normal, with one
trial in twenty ten times as noisy; exponential. Standard deviation 1 but for the bad runs."""

UNLIKE = (
    *("one x3", "one x10", "half x2", "half x3", "half x10", "1 to 10"),
    *("half t3", "half two peaks", "half bad runs", "half skewed"),
)
"""How subjects may differ: standard deviations of one or half of them, or rising; or half a shape."""

MODES = tuple(f"{share} % slow, noise {noise} %" for share in (10, 20, 30, 50) for noise in (1, 5, 30))
"""Two modes: this share of trials is slower, and within a mode there is noise, both in parts of their
distance."""

STEPS = ("steps", "rare steps", "few steps")
"""Whole steps, as of memory: of four that come in half of the cases or in one of ten, and normal noise that
is rounded to steps of two and a half deviations."""

ONE_BAD = ("one: 10 % x10", "one: 30 % x10", "one: 10 % +3", "one: 30 % +3", "one block in ten x10")
"""Trials of one subject that are ten times as noisy, or later by three standard deviations; noisy blocks."""

LOST = ("10 % lost", "30 % lost", "slow ones lost", "one noisy lost")
"""Trials that are missing by chance, because they are among the slowest tenth, or all but five of a subject
that is three times as noisy as the others.
"""


def noise(rng, shape, size):
    """Return noise of one shape: studies x blocks x subjects."""
    match shape:
        case "normal":
            return rng.normal(size=size)
        case "t3":
            return rng.standard_t(3, size=size) / 3**0.5
        case "two peaks":
            return (rng.choice([-1.0, 1.0], size=size) + 0.25 * rng.normal(size=size)) / 1.0625**0.5
        case "bad runs":
            return rng.normal(size=size) * np.where(rng.random(size) < 0.05, 10, 1)
        case "skewed":
            return rng.exponential(size=size) - 1
        case "steps":
            return rng.binomial(4, 0.5, size=size) - 2.0
        case "rare steps":
            return rng.binomial(4, 0.1, size=size) - 0.4
        case "few steps":
            return np.round(0.4 * rng.normal(size=size)) + 0.0
    raise ValueError(shape)


def studies(rng, shape, count, blocks, subjects):
    """Return so many studies of equal subjects: studies x blocks x subjects. What is missing is NaN."""
    size = (count, blocks, subjects)
    if shape in (*ALIKE, *STEPS):
        return noise(rng, shape, size)
    if shape in MODES:
        share, _, _, _, within, _ = shape.split()
        slow = rng.random(size) < float(share) / 100
        return float(within) / 100 * rng.normal(size=size) + slow - float(share) / 100
    found = noise(rng, "normal", size)
    if shape in ONE_BAD:
        return _one_bad(rng, shape, found)
    if shape == "one noisy lost":
        found[:, :, 0] *= 3
        found[:, 5:, 0] = np.nan
        return found
    if shape in LOST:
        lost = found > 1.2816 if "slow" in shape else rng.random(size) < float(shape.split()[0]) / 100
        return np.where(lost, np.nan, found)
    half = max(1, subjects // 2)
    kind, _, which = shape.partition(" ")
    match kind, which:
        case "one", _:
            found[:, :, 0] *= float(which[1:])
        case "half", str() if which[0] == "x":
            found[:, :, :half] *= float(which[1:])
        case "1", _:
            found *= 10 ** (np.arange(subjects) / max(1, subjects - 1))
        case _:
            found[:, :, :half] = noise(rng, which, (count, blocks, half))
    return found


def _one_bad(rng, shape, found):
    if "block" in shape:
        return found * np.where(rng.random((*found.shape[:2], 1)) < 0.1, 10, 1)
    _, share, _, what = shape.split()
    hit = rng.random(found.shape[:2]) < float(share) / 100
    if what == "x10":
        found[:, :, 0] *= np.where(hit, 10, 1)
    else:
        found[:, :, 0] += 3 * (hit - float(share) / 100)
    return found


def depends(rng, count, blocks, subjects, correlation):
    """Return studies in which each subject's noise resembles that of the block before."""
    found = rng.normal(size=(count, blocks, subjects))
    for block in range(1, blocks):
        fresh = found[:, block] * (1 - correlation**2) ** 0.5
        found[:, block] = correlation * found[:, block - 1] + fresh
    return found


def logs_of(study):
    """Return one study as logarithms by subject and block; a value that is NaN is missing."""
    return {
        f"s{k}": {block: value for block, value in enumerate(study[:, k].tolist()) if value == value}
        for k in range(study.shape[1])
    }


def ranked(study, terms, columns=None):
    """Return the ranking that a report would make of one study, in throughput; of all subjects, or some."""
    logs = logs_of(study)
    if columns is not None:
        logs = {f"s{k}": logs[f"s{k}"] for k in columns}
    means = {name: float(np.exp(np.mean(list(values.values())))) for name, values in logs.items()}
    return ranking(logs, means, Better.HIGHER, terms)


LATENCIES = (
    *("log-normal 30 %", "log-normal 60 %", "gamma 30 %", "gamma 60 %", "normal 10 %"),
    "one in ten stalls",
)
"""Shapes of a latency over trials, with the standard deviation in percent of the mean. Stalls: log-normal,
and one trial in ten is ten times as slow."""


def latencies(rng, shape, count, trials):
    """Return latencies of one cell whose mean is 1: studies x trials."""
    kind, _, words = shape.partition(" ")
    if kind == "one":
        usual = latencies(rng, "log-normal 30 %", count, trials)
        return usual * np.where(rng.random(usual.shape) < 0.1, 10, 1) / 1.9
    variation, size = float(words.removesuffix(" %")) / 100, (count, trials)
    match kind:
        case "log-normal":
            square = np.log1p(variation**2)
            return np.exp(square**0.5 * rng.normal(size=size) - square / 2)
        case "gamma":
            return rng.gamma(variation**-2, size=size) * variation**2
        case "normal":
            return 1 + variation * rng.normal(size=size)
    raise ValueError(shape)


PACES = ("flat", "by the margin", "tau 5 s", "tau 10 s", "step at 2 s", "step at 4 s")
"""How a pace develops after a warm-up of 2 s: from half of it, made good with this time constant; a step up
by 30 % so long after the window's opening; a ramp by the margin over the window. With "latency" before it,
only the latency's does, as in an open loop: the rate is flat."""


def _pace(case, seconds):
    at = np.arange(seconds)
    match case.split():
        case ["tau", constant, _]:
            return 1 - 0.5 * np.exp(-(2.5 + at) / float(constant))
        case ["step", _, begin, _]:
            return np.where(at >= int(begin), 1.3, 1.0)
        case ["by", *_]:
            return 1 + 0.02 * (at / (seconds - 1) - 0.5)
    return np.ones(seconds)


def paced(rng, case, trials, seconds, correlation=0.0):
    """Return the paces of a cell's trials: 3 % of noise in a second, which may resemble that of the second
    before, and 5 % between trials. Latency follows the rate but for 1 %, or has a pace and noise of its own.
    """
    alone = case.startswith("latency ")
    rate = _shaken(rng, "flat" if alone else case, trials, seconds, correlation)
    if alone:
        latency = _shaken(rng, case.removeprefix("latency "), trials, seconds, correlation)
    else:
        latency = rate * np.exp(0.01 * rng.normal(size=rate.shape))
    return [{"rate": list(a), "latency": list(b)} for a, b in zip(rate, latency, strict=True)]


STALLS = ("one, 15 %", "one, 30 %", "one, 50 %", "Poisson 1, 50 %", "Poisson 2, 50 %")
"""How many stalls a trial has, at seconds of chance, and what each costs of its second."""


def stalling(rng, case, trials, seconds, noise=0.01):
    """Return the paces of a steady cell's trials, with stalls at seconds of chance."""
    many, cost = case.removesuffix(" %").split(", ")
    rate = 1000 * np.exp(noise * rng.normal(size=(trials, seconds)))
    counts = np.ones(trials, int) if many == "one" else rng.poisson(float(many.split()[1]), trials)
    for trial, count in enumerate(counts):
        for at in rng.integers(0, seconds, count):
            rate[trial, at] *= 1 - float(cost) / 100
    return [{"rate": list(one)} for one in rate]


def _shaken(rng, case, trials, seconds, correlation):
    noise = 0.03 * depends(rng, trials, seconds, 1, correlation)[:, :, 0]
    return 1000 * _pace(case, seconds) * np.exp(noise + 0.05 * rng.normal(size=(trials, 1)))


OPEN = (
    *("valid", "10 % fail", "no warm-up", "slow", "odd", "stages", "by the margin"),
    *("a ramp", "33 % fail", "33 % hang"),
)
"""How the replies of an open loop with a flat latency develop: all are valid, or one in ten is not; a loop
that begins with the window; replies after 3 s; constant arrivals of 10.5/s; a rate that grows ninefold over
the window; a share that falls by the margin, or by a fifth, over the window; a third that fails, or is never
answered, in its second half."""

# Before the window, where a loop has a warm-up: longer than nearly all replies take.
_WARM_UP_S = 20


def open_loops(rng, case, trials, seconds, per_s=500):
    """Return the Recordings of a cell's trials: Poisson arrivals, and latencies about 0.1 s, log-normal, with
    5 % of noise between trials.
    """
    return [_open_loop(rng, case, seconds, per_s) for _ in range(trials)]


def _open_loop(rng, case, seconds, per_s):
    due = _due(rng, case, seconds, per_s)
    latency = (3 if case == "slow" else 0.1) * np.exp(0.05 * rng.normal() + 0.5 * rng.normal(size=due.size))
    end = due + latency
    lost = rng.random(due.size) < _lost(case, due / seconds)
    ended = ~lost if "hang" in case else np.ones_like(lost)
    is_own = due >= 0
    counts = [_by_second(at, seconds) for at in (due, end[~lost], end[ended & lost], due[is_own & ~lost])]
    rows = [
        Second(
            *(second, int(counts[0][second]), int(counts[1][second]), int(counts[2][second]), 0),
            latency=_with_median(np.sort(latency[~lost & (np.floor(end) == second)])),
            due_ok=int(counts[3][second]),
        )
        for second in range(seconds + 1)
    ]
    return replace(
        recording_of(loop="open", window={"open_ns": 0, "close_ns": seconds * 10**9, "interrupted": False}),
        account=Account(
            scheduled=int(is_own.sum()),
            ok=int((is_own & ~lost).sum()),
            bad_status={"503": int((is_own & lost & ended).sum())},
            others={"timed_out": int((is_own & ~ended).sum())},
        ),
        series=tuple(rows),
    )


def _due(rng, case, seconds, per_s):
    """Return when requests are due, in seconds from the opening of the window."""
    before = 0 if case == "no warm-up" else _WARM_UP_S
    length = before + seconds
    if case == "odd":
        return np.arange(0, length, 1 / 10.5) - before
    at = rng.random(rng.poisson(per_s * length)) * length - before
    if case != "stages":
        return at
    # In the window the rate grows from a fifth of its mean to nine fifths.
    return at[rng.random(at.size) < np.where(at < 0, 1 / 9, (1 + 8 * at / seconds) / 9)]


def _lost(case, at):
    """Return the share of requests without a valid reply, by the share of the window that has passed."""
    match case:
        case "10 % fail":
            return np.full_like(at, 0.1)
        case "half fail":
            return np.full_like(at, 0.5)
        case "by the margin":
            return np.clip(0.02 * at, 0, 1)
        case "a ramp":
            return np.clip(0.2 * at, 0, 1)
        case "33 % fail" | "33 % hang":
            return np.where(at >= 0.5, 1 / 3, 0.0)
    return np.zeros_like(at)


def _by_second(at, seconds):
    """Return how many moments lie in each second of a window, and in the first one after it."""
    return np.histogram(at, np.arange(seconds + 2))[0]


def _with_median(latencies):
    """Return a distribution of so many sorted latencies with their median alone: all that is read of it."""
    if not latencies.size:
        return None
    middle = latencies[(latencies.size - 1) // 2], latencies[latencies.size // 2]
    histogram, median = Histogram(), int(1e9 * (sum(middle) / 2))
    histogram.record(median, latencies.size)
    return Distribution(latencies.size, median, median, median * latencies.size, histogram.encode())
