"""Whether the windows of a cell are steady, judged over its trials together: a window that is not describes
no server, but a mixture of what it was before and after.

A change that every trial shows at the same second is the server's; within one trial it cannot be separated
from noise. Trials are the replicates, so that noise within a trial may resemble itself as it likes. Must not
know why a server changes its pace.

>>> rising = [{"rate": [700 + k, 800, 880 - k, 940, 970, 990]} for k in range(5)]
>>> found = steadiness(rising, 0.02)
>>> found.kind, found.measure, round(found.bias, 2)
(<Kind.WARM_UP: 'warm-up'>, 'rate', -0.11)
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING

from prony.analysis.effects import Effect, paired, student_t
from prony.analysis.missing import Missing
from prony.analysis.steady_state import Kind, Paces

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["Steadiness", "steadiness"]

_LATENCY = "latency"

# Two trials have one difference: no change but a huge one would be shown. Shares of few requests are counts:
# three or four trials often have the same, and a spread of nearly 0 shows anything.
_LEAST_TRIALS = {"rate": 3, "latency": 3, "share": 5}

# The chance that any of the contrasts of a steady cell is taken for a change.
_LEVEL = 0.02
_POWER = 0.95
# More parts see no shorter ramp, and each one more costs level.
_MOST_PARTS = 12
# What the end of the window is, where it changes all the time.
_END = 6
_LONG_ENOUGH = 0.5


@dataclass(frozen=True, slots=True)
class Steadiness:
    """How the windows of ``trials`` trials of ``seconds`` developed.

    ``kind``: flat, or what was shown; ``measure``: in what. ``change``: from the first part of the window to
    the last, such as 0.2 for a fifth better. ``bias``: the mean of the window / what it was at its end - 1,
    in that measure; it is at least so far off where the change goes on; null: nothing was left at its end.
    ``visible``: the least change, steady from the first to the last second, that these trials would have
    shown in 95 of 100 studies.
    """

    kind: Kind
    measure: str
    change: float
    bias: float | None
    visible: float
    trials: int
    seconds: int

    @property
    def is_steady(self) -> bool:
        """Whether no change was shown."""
        return self.kind is Kind.FLAT


@dataclass(frozen=True, slots=True)
class _Contrast:
    """One way to change: ``after`` the first so many parts (null: all the time), and its effect."""

    measure: str
    after: int | None
    parts: int
    effect: Effect

    @property
    def explained(self) -> float:
        """The squares that it takes away from the mean window's, which the best description takes most of."""
        if self.after is None:
            return self.effect.centre**2 * self.parts * (self.parts + 1) / (self.parts - 1) / 12
        return self.effect.centre**2 * self.after * (self.parts - self.after) / self.parts

    def shown(self, margin: float) -> float:
        """Return the one-sided p-value of a change by more than the margin, in its direction."""
        return min(self.effect.p_above(margin), self.effect.mirrored().p_above(margin))


def steadiness(trials: Sequence[Paces | Missing], margin: float) -> Steadiness | Missing:
    """Return how the windows of a cell developed, from the paces of its trials by measure, or why that is
    unknown. Changes by less than ``margin`` are of no interest.

    *Definition*: of each measure, over the trials that have it: each trial's seconds, relative to its mean
    (higher is better), in at most 12 parts; of each trial the slope over the parts, and the difference of the
    means after and before each border between two. Each of these contrasts has the interval of
    ``effects.paired`` over the trials. Not steady: one of them exceeds the margin, at 2 % divided by two
    sides and the number of contrasts in all measures (Bonferroni). The kind is that of the shown contrast
    that explains the mean window best: warm-up, a rise; slowdown, a fall; no steady state, a step with less
    than half of the window after it. A measure that changes in no trial, as a share of valid replies without
    failures, counts as none.
    *Assumptions*: trials are independent, contrasts roughly normal over them; seconds within a trial may
    depend on each other. What changes at another second in each trial is noise.
    """
    known = _alike([one for one in trials if not isinstance(one, Missing)])
    profiles = {name: _relative(series) for name, series in _measured(known).items()}
    if not profiles:
        return _too_few(known, [one.reason for one in trials if isinstance(one, Missing)])
    spread = {name: parts for name, parts in profiles.items() if parts.any()}
    return _judged(spread or profiles, margin, len(next(iter(known[0].values()))))


def _too_few(trials: Sequence[Paces], reasons: Sequence[str]) -> Missing:
    why = Counter(reasons).most_common(1)[0][0] if reasons else None
    if not trials:
        return Missing(why or "no trial counts")
    known = Counter(name for one in trials for name in one)
    measure = min(known, key=lambda name: _LEAST_TRIALS[name] - known[name])
    counted = f"{known[measure]} trial{'' if known[measure] == 1 else 's'} whose {measure} is known"
    said = f"{counted}; expected {_LEAST_TRIALS[measure]}"
    return Missing(f"{said}; of others: {why}" if why else said)


def _alike(trials: Sequence[Paces]) -> list[Paces]:
    """Return the trials whose windows are as long as most are."""
    lengths = Counter(len(next(iter(one.values()))) for one in trials)
    if not lengths:
        return []
    ((length, _),) = lengths.most_common(1)
    return [one for one in trials if len(next(iter(one.values()))) == length]


def _measured(trials: Sequence[Paces]) -> dict[str, list[Sequence[float]]]:
    """Return what enough trials have of each measure: one without a reply in some second has no latency."""
    found = {name: [one[name] for one in trials if name in one] for name in _LEAST_TRIALS}
    return {name: series for name, series in found.items() if len(series) >= _LEAST_TRIALS[name]}


def _relative(series: Sequence[Sequence[float]]) -> "Floats":
    """Return the parts of each trial's window, relative to its mean: trials x parts."""
    import numpy as np

    rows = np.asarray(series, dtype=float)
    means = rows.mean(axis=1, keepdims=True)
    scaled = np.divide(rows, means, out=np.ones_like(rows), where=means > 0) - 1
    parts = np.array_split(scaled, min(_MOST_PARTS, rows.shape[1]), axis=1)
    return np.stack([part.mean(axis=1) for part in parts], axis=1)


def _contrasts(profiles: Mapping[str, "Floats"]) -> Iterator[_Contrast]:
    for measure, parts in profiles.items():
        many = parts.shape[1]
        yield _Contrast(measure, None, many, paired(_slopes(parts)))
        for after in range(1, many):
            steps = parts[:, after:].mean(axis=1) - parts[:, :after].mean(axis=1)
            yield _Contrast(measure, after, many, paired([float(step) for step in steps]))


def _slopes(parts: "Floats") -> list[float]:
    """Return the change of each trial from the first to the last part, by its least-squares line."""
    import numpy as np

    many = parts.shape[1]
    places = np.arange(many) - (many - 1) / 2
    return [float(one) for one in parts @ places / (places @ places) * (many - 1)]


def _judged(profiles: Mapping[str, "Floats"], margin: float, seconds: int) -> Steadiness:
    contrasts = list(_contrasts(profiles))
    level = _LEVEL / 2 / len(contrasts)
    shown = [one for one in contrasts if one.shown(margin) <= level]
    found = max(shown, key=lambda one: one.explained, default=contrasts[0])
    slope = next(one for one in contrasts if one.after is None and one.measure == found.measure)
    parts = profiles[found.measure]
    return Steadiness(
        kind=_kind(found) if shown else Kind.FLAT,
        measure=found.measure,
        change=found.effect.centre,
        bias=_bias(found, parts),
        visible=_visible(slope.effect, level, margin),
        trials=slope.effect.count,
        seconds=seconds,
    )


def _kind(found: _Contrast) -> Kind:
    if found.after is not None and found.parts - found.after < _LONG_ENOUGH * found.parts:
        return Kind.NONE
    return Kind.WARM_UP if found.effect.centre > 0 else Kind.SLOWDOWN


def _bias(found: _Contrast, parts: "Floats") -> float | None:
    """Return the window's mean / its end - 1: after the step, or in its last sixth; null where that is 0.
    Latency is 1 / pace.
    """
    many = parts.shape[1]
    last = found.after if found.after is not None else many - max(1, round(many / _END))
    profile = [float(value) for value in parts.mean(axis=0)]
    end: float = 1 + fsum(profile[last:]) / (many - last)
    if found.measure == _LATENCY:
        return end - 1
    return 1 / end - 1 if end > 0 else None


def _visible(slope: Effect, level: float, margin: float) -> float:
    quantiles = student_t(1 - level, slope.freedom) + student_t(_POWER, slope.freedom)
    return margin + quantiles * slope.error
