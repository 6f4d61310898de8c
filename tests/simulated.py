"""Simulated studies of subjects in blocks: noise of several shapes, alike or different between subjects.

Values are logarithms. Every kind of noise has mean 0: subjects of a null study have equal means of logs.
"""

import numpy as np

from prony.analysis.answer import ranking
from prony.metrics import Better

ALIKE = ("normal", "t3", "two peaks", "bad runs")
"""Shapes that all subjects share: normal; Student's t with 3 degrees of freedom; two peaks; normal, with one
trial in twenty ten times as noisy. Standard deviation 1 but for the last."""

UNLIKE = (
    *("one x3", "one x10", "half x2", "half x3", "half x10", "1 to 10"),
    *("half t3", "half two peaks", "half bad runs", "half skewed"),
)
"""How subjects may differ: standard deviations of one or half of them, or rising; or half a shape."""


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
    raise ValueError(shape)


def studies(rng, shape, count, blocks, subjects):
    """Return so many studies of equal subjects: studies x blocks x subjects."""
    if shape in ALIKE:
        return noise(rng, shape, (count, blocks, subjects))
    found = noise(rng, "normal", (count, blocks, subjects))
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


def depends(rng, count, blocks, subjects, correlation):
    """Return studies in which each subject's noise resembles that of the block before."""
    found = rng.normal(size=(count, blocks, subjects))
    for block in range(1, blocks):
        fresh = found[:, block] * (1 - correlation**2) ** 0.5
        found[:, block] = correlation * found[:, block - 1] + fresh
    return found


def logs_of(study):
    """Return one study as logarithms by subject and block."""
    names = [f"s{k}" for k in range(study.shape[1])]
    return {name: dict(enumerate(study[:, k].tolist())) for k, name in enumerate(names)}


def ranked(study, terms):
    """Return the ranking that a report would make of one study, in throughput."""
    logs = logs_of(study)
    means = {name: float(np.exp(np.mean(list(values.values())))) for name, values in logs.items()}
    return ranking(logs, means, Better.HIGHER, terms)
