"""Whether the windows of a cell are steady, judged over its trials together: a window that is not describes
no server, but a mixture of what it was before and after.

A change that every trial shows at the same second is the server's; within one trial it cannot be separated
from noise. Trials are the replicates, so that noise within a trial may resemble itself as it likes. A stall
at another second of each trial is no change, however large.

>>> rising = [{"rate": [700 + k, 800, 880 - k, 940, 970, 990]} for k in range(5)]
>>> found = steadiness(rising, 0.02)
>>> found.kind, found.measure, round(found.bias, 2)
(<Kind.WARM_UP: 'warm-up'>, 'rate', -0.11)
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from typing import TYPE_CHECKING

from prony.figures.missing import Missing
from prony.figures.statistics.effects import Effect, paired, student_t
from prony.figures.steady_state import Kind, Paces

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_LATENCY = "latency"

# Two trials have one difference: no change but a huge one would be shown. Shares of few requests are counts:
# three or four trials often have the same, and a spread of nearly 0 shows anything.
_LEAST_TRIALS = {"rate": 3, "latency": 3, "share": 5}

# The chance that any of the contrasts of a steady cell is taken for a change.
_LEVEL = 0.02
_POWER = 0.95
# The chance that stalls at seconds of chance are taken for a change, over so many turns of the windows.
_CHANCE = 0.05
_TURNS = 999
# From here on a fifth of the trials on each side is left out: one may have stalled.
_LEAST_TRIMMED = 8
# Sums of the same numbers in another order.
_ALIKE = 1e-10
# More parts see no shorter ramp, and each one more costs level.
_MOST_PARTS = 12
# What the end of the window is, where it changes all the time.
_END = 6
_LONG_ENOUGH = 0.5


@dataclass(frozen=True, slots=True)
class Steadiness:
    """How the windows of ``trials`` trials of ``seconds`` developed."""

    kind: Kind
    """Flat, or what was shown."""
    measure: str
    """In what."""
    change: float
    """From the first part of the window to the last, such as 0.2 for a fifth better."""
    bias: float | None
    """The mean of the window / what it was at its end - 1, in that measure; it is at least so far off where
    the change goes on; null: nothing was left at its end.
    """
    visible: float
    """The least change, steady from the first to the last second, that these trials would have shown in 95 of
    100 studies.
    """
    trials: int
    seconds: int
    """Of the window."""

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
    means after and before each border between two. Each of these contrasts has an interval over the trials
    (``_over_trials``). Not steady: one of them exceeds the margin, at 2 % divided by two
    sides and the number of contrasts in all measures (Bonferroni). The kind is that of the shown contrast
    that explains the mean window best: warm-up, a rise; slowdown, a fall; no steady state, a step with less
    than half of the window after it. A measure that changes in no trial, as a share of valid replies without
    failures, counts as none. Where a contrast exceeds the margin, the windows must also be more alike than
    chance makes them (``_is_by_chance``): with one stall a trial, contrasts have few values, which are often
    all on one side.
    *Assumptions*: trials are independent, contrasts roughly normal over them but for stalls at seconds of
    chance; seconds within a trial may depend on each other.
    *Errors*: Missing with too few trials, or with so few trials of so few seconds that stalls at seconds of
    chance meet in one with a chance of more than 5 %.
    """
    known = _alike([one for one in trials if not isinstance(one, Missing)])
    series = {name: _relative(rows) for name, rows in _measured(known).items()}
    if not series:
        return _too_few(known, [one.reason for one in trials if isinstance(one, Missing)])
    return _judged({name: rows for name, rows in series.items() if rows.any()} or series, margin)


def _too_few(trials: Sequence[Paces], reasons: Sequence[str]) -> Missing:
    why = Counter(reasons).most_common(1)[0][0] if reasons else None
    if not trials:
        return Missing(why or "no trial counts")
    known = Counter(name for one in trials for name in one)
    measure = min(known, key=lambda name: _LEAST_TRIALS[name] - known[name])
    count, seconds = known[measure], len(trials[0][measure])
    if count >= _LEAST_TRIALS[measure]:
        return Missing(f"stalls of {count} trials of {seconds} seconds often meet in one second by chance")
    counted = f"{count} trial{'' if count == 1 else 's'} whose {measure} is known"
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
    return {
        name: series
        for name, series in found.items()
        if len(series) >= _LEAST_TRIALS[name] and _CHANCE * len(series[0]) ** (len(series) - 1) >= 1
    }


def _relative(series: Sequence[Sequence[float]]) -> "Floats":
    """Return the seconds of each trial, relative to its mean: trials x seconds."""
    import numpy as np

    rows = np.asarray(series, dtype=float)
    means = rows.mean(axis=1, keepdims=True)
    found: Floats = np.divide(rows, means, out=np.ones_like(rows), where=means > 0) - 1
    return found


def _in_parts(rows: "Floats") -> "Floats":
    """Return the means of each row's parts."""
    import numpy as np

    parts = np.array_split(rows, min(_MOST_PARTS, rows.shape[1]), axis=1)
    return np.stack([part.mean(axis=1) for part in parts], axis=1)


def _is_by_chance(series: Mapping[str, "Floats"]) -> bool:
    """Return whether trials whose stalls, or other changes, are at seconds of chance look as alike as these.

    *Definition*: the squares of the mean window's parts, over the trials, against those of the same trials
    with each one's seconds turned (the last ones before the first) by a number of its own, drawn 998 times;
    of the measures, relative to the mean over the turns, the largest. By chance: more than 5 % of the turns,
    this one included, have as much.
    *Assumptions*: none on what happens at seconds of chance. That a trial's end is as if it went on at its
    begin does harm only to noise that resembles itself over the window, which contrasts over trials heed.
    *Source*: P. Good, "Permutation, Parametric and Bootstrap Tests of Hypotheses" (2005), section 3.2; the
    group here is that of the rotations of each trial.
    """
    import numpy as np

    squares = [_squares(rows) for rows in series.values()]
    found = np.max([one / (one.mean() or 1.0) for one in squares], axis=0)
    return bool((found >= found[0] * (1 - _ALIKE)).mean() > _CHANCE)


def _squares(rows: "Floats") -> "Floats":
    """Return the sum of squares of the mean window's parts, for each turn; the first turns nothing."""
    import numpy as np

    count, seconds = rows.shape
    # The same turns for all measures, whose stalls are the same.
    begins = np.random.default_rng(0).integers(0, seconds, (count, _TURNS))
    begins[:, 0] = 0
    turned = np.take_along_axis(_turned(rows), begins[:, :, None], axis=1)
    if count >= _LEAST_TRIMMED:
        cut = count // 5
        turned = np.sort(turned, axis=0)[cut : count - cut]
    middle = turned.mean(axis=0)
    found: Floats = (middle**2).sum(axis=1)
    return found


def _turned(rows: "Floats") -> "Floats":
    """Return the parts of each trial as if it began at each of its seconds: trials x seconds x parts."""
    import numpy as np

    count, seconds = rows.shape
    places = np.arange(seconds)
    every = rows[:, (places + places[:, None]) % seconds]
    return _in_parts(every.reshape(-1, seconds)).reshape(count, seconds, -1)


def _contrasts(profiles: Mapping[str, "Floats"]) -> Iterator[_Contrast]:
    for measure, parts in profiles.items():
        many = parts.shape[1]
        yield _Contrast(measure, None, many, _over_trials(_slopes(parts)))
        for after in range(1, many):
            steps = parts[:, after:].mean(axis=1) - parts[:, :after].mean(axis=1)
            yield _Contrast(measure, after, many, _over_trials([float(step) for step in steps]))


def _over_trials(values: Sequence[float]) -> Effect:
    """Return the mean of one contrast over the trials, which are independent, without the farthest ones.

    *Definition*: Student's below 8 trials; from 8 on Yuen's 20 % trimmed t: g = floor(0.2 n), h = n - 2 g,
    the mean of the h middle values with error sqrt(W / (h (h - 1))), W the sum of squares of the Winsorised
    values about their mean, and h - 1 degrees of freedom.
    *Source*: K. K. Yuen, "The two-sample trimmed t for unequal population variances", Biometrika 61 (1974).
    """
    count = len(values)
    if count < _LEAST_TRIMMED:
        return paired(values, widening=1.0)
    ranked, cut = sorted(values), count // 5
    kept, low, high = count - 2 * cut, ranked[cut], ranked[count - cut - 1]
    drawn = [min(max(value, low), high) for value in ranked]
    middle = fsum(drawn) / count
    squares = fsum((value - middle) ** 2 for value in drawn)
    centre = fsum(ranked[cut : count - cut]) / kept
    return Effect(count, centre, sqrt(squares / (kept * (kept - 1))), kept - 1, "Yuen, 20 % trimmed")


def _slopes(parts: "Floats") -> list[float]:
    """Return the change of each trial from the first to the last part, by its least-squares line."""
    import numpy as np

    many = parts.shape[1]
    places = np.arange(many) - (many - 1) / 2
    return [float(one) for one in parts @ places / (places @ places) * (many - 1)]


def _judged(series: Mapping[str, "Floats"], margin: float) -> Steadiness:
    profiles = {name: _in_parts(rows) for name, rows in series.items()}
    contrasts = list(_contrasts(profiles))
    level = _LEVEL / 2 / len(contrasts)
    shown = [one for one in contrasts if one.shown(margin) <= level]
    if shown and _is_by_chance(series):
        shown = []
    found = max(shown, key=lambda one: one.explained, default=contrasts[0])
    slope = next(one for one in contrasts if one.after is None and one.measure == found.measure)
    return Steadiness(
        kind=_kind(found) if shown else Kind.FLAT,
        measure=found.measure,
        change=found.effect.centre,
        bias=_bias(found, profiles[found.measure]),
        visible=_visible(slope.effect, level, margin),
        trials=slope.effect.count,
        seconds=series[found.measure].shape[1],
    )


def _kind(found: _Contrast) -> Kind:
    if found.after is not None and found.parts - found.after < _LONG_ENOUGH * found.parts:
        return Kind.NONE
    return Kind.WARM_UP if found.effect.centre > 0 else Kind.SLOWDOWN


def _bias(found: _Contrast, parts: "Floats") -> float | None:
    """Return the window's mean / its end - 1: after the step, or in its last sixth; None where that is 0.
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
