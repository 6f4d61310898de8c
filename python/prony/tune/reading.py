"""What a search for settings came to, as values: its JSON, of which the text and the page are made. Pure.

What is said of the gain and of what is carried is from fresh blocks; the rest is as the search saw it, and
what a search sees of its winner is too good by chance.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import expm1, floor, inf
from typing import NamedTuple

from prony.figures.statistics.all_pairs import all_pairs, pair_level
from prony.figures.statistics.effects import Effect, geometric_mean
from prony.figures.summary import Estimate, estimate_over
from prony.model.facts import FoundRate
from prony.tune.race import (
    Figures,
    Gain,
    Move,
    Recommendation,
    StageName,
    Trials,
    TuneWish,
    logs_of,
    stage_and_block,
)
from prony.tune.space import Candidate

# The first that all have: a percentile needs ten requests beyond it.
_LATENCIES = tuple(f"{kind}_all_p{p}" for p in ("99", "95", "50") for kind in ("response", "service"))
# Differences of less change nobody's mind.
_NOTHING = 0.05
_KNOBS = ("workers", "threads")
# Of all pairs of settings, and of all pairs of a number's values: what it does is looked for twice.
_LEVEL = 0.025


@dataclass(frozen=True, slots=True)
class About:
    """What the answer is of: the load in words, where the incumbent's settings are from, how to start what is
    chosen and in which other forms, what limits it, the highest rate that was found, remarks.
    """

    app: str
    load: str
    origin: str
    start: str
    forms: Mapping[str, str] = field(default_factory=dict)
    limits: str = ""
    carries: FoundRate | None = None
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RatioChange:
    """A ratio less 1, with the ends of its interval; they are null of one block."""

    value: float
    low: float | None
    high: float | None

    @property
    def ends(self) -> tuple[float, ...]:
        """The ends of its interval, where there is one."""
        return () if self.low is None or self.high is None else (self.low, self.high)


@dataclass(frozen=True, slots=True)
class FreshFigures:
    """A setting in fresh blocks; null: it has no such figure."""

    setting: str
    rate: Estimate | None
    """Requests/s with a valid reply."""
    latency: Estimate | None
    """Of `latency_metric`, in nanoseconds."""
    memory: Estimate | None
    """Bytes."""


@dataclass(frozen=True, slots=True)
class RaceTrial:
    """A trial of the search."""

    stage: int
    """The place of its stage in `stages`."""
    block: int
    """Of that stage, from 0."""
    value: float
    """The objective, in the unit of `metric`."""
    change: float | None
    """Against the incumbent in the same block, less 1; null where that has no trial there."""


@dataclass(frozen=True, slots=True)
class RacedSetting:
    """A setting as the search saw it."""

    setting: str
    trials: tuple[RaceTrial, ...]
    change: RatioChange | None
    """Its objective against the incumbent's, with bounds that hold for all pairs of settings together."""
    rate: float | None
    """`rate`, `latency`, `memory`: means, as in `fresh`."""
    latency: float | None
    memory: float | None
    beaten_after: int | None
    """The place of the stage after which another was shown to be better, or a condition to be broken."""
    on_front: bool
    """No other is at least as good in rate, latency and memory, and better in one."""


@dataclass(frozen=True, slots=True)
class RacedStage:
    """Blocks in which each of the settings ran once."""

    name: StageName
    settings: int
    blocks: int


@dataclass(frozen=True, slots=True)
class KnobEffect:
    """What one number did on the server that is used, where all else was the same.

    *Definition*: over all pairs of settings that differ in nothing else, with intervals that hold together
    (Tukey). Where none of these shows a change, on average over the other number: a block of each value of
    that is one of this one's. Both families hold at 97.5 %, so that together they do at 95 %. It did nothing
    where none of these intervals reaches beyond 5 %.
    """

    knob: str
    """`workers` or `threads`."""
    values: tuple[int, ...]
    """What was compared: where a change is shown, from which to which."""
    change: float | None
    """Of the objective, the largest that is shown; null: none is."""
    beside: str
    """Where, in words: at which other number, or on average over it; empty: there is no other."""
    within: float | None
    """No change is larger on average, either way: the end of an interval that is farthest from none; null
    where one is shown.
    """

    @property
    def nothing(self) -> bool:
        """Whether it is shown to have done nothing."""
        return self.within is not None and self.within <= _NOTHING


@dataclass(frozen=True, slots=True)
class TuneReading:
    """A search for settings: what to use, and what was seen on the way."""

    app: str
    load: str
    """In words."""
    advice: Move
    """To change to the challenger, to keep the incumbent, or that nothing meets all conditions."""
    incumbent: str
    """The settings that all others are compared with."""
    origin: str
    """Where they are from."""
    challenger: str | None
    """The best other; null: none gave a figure."""
    start: str
    """The command that starts what is to be used."""
    forms: Mapping[str, str]
    """The same settings in the forms in which people keep them, by name."""
    metric: str
    """The objective: one of METRICS."""
    higher_is_better: bool
    conditions: tuple[str, ...]
    broken: tuple[str, ...]
    """Conditions that the incumbent is not shown to meet."""
    unfit: tuple[str, ...]
    """Those that the challenger is not shown to meet."""
    gain: RatioChange | None
    """The challenger's objective against the incumbent's, in fresh blocks, with the 95 % interval."""
    pairs: int
    """How many fresh blocks have both."""
    latency_metric: str
    """The percentile that all settings have: one of METRICS."""
    fresh: tuple[FreshFigures, ...]
    carries: FoundRate | None
    """The highest rate at which it meets the conditions; null: it was not searched for."""
    limits: str
    """What limits it, in words; empty: not known."""
    searched: tuple[RacedSetting, ...]
    """The best first."""
    stages: tuple[RacedStage, ...]
    knobs: tuple[KnobEffect, ...]
    remarks: tuple[str, ...]

    @property
    def used(self) -> str | None:
        """The settings to use; None where nothing meets all conditions."""
        return {Move.CHANGE: self.challenger, Move.KEEP: self.incumbent, Move.NOTHING: None}[self.advice]


def tune_reading(answer: Recommendation, wish: TuneWish, about: About) -> TuneReading:
    """Return the answer as values."""
    latency = latency_metric([*answer.searched.values(), *answer.fresh.values()])
    gain = answer.gain
    return TuneReading(
        app=about.app,
        load=about.load,
        advice=answer.advice,
        incumbent=answer.incumbent.words,
        origin=about.origin,
        challenger=answer.challenger.words if answer.challenger else None,
        start=about.start,
        forms=about.forms,
        metric=wish.metric,
        higher_is_better=wish.higher_is_better,
        conditions=tuple(one.text for one in wish.conditions),
        broken=answer.broken,
        unfit=answer.unfit,
        gain=change_of_gain(gain, is_higher=wish.higher_is_better) if gain else None,
        pairs=gain.blocks if gain else 0,
        latency_metric=latency,
        fresh=tuple(_fresh(one, blocks, latency) for one, blocks in answer.fresh.items()),
        carries=about.carries,
        limits=about.limits,
        searched=_searched(answer, wish, latency),
        stages=tuple(RacedStage(one.name, len(one.candidates), one.blocks) for one in answer.stages),
        knobs=tuple(one for knob in _KNOBS if (one := knob_effect(answer, wish, knob))),
        remarks=about.remarks,
    )


def latency_metric(of_all: Iterable[Mapping[int, Figures]]) -> str:
    """Return the highest percentile of the latency that all trials have."""
    rows = [row for blocks in of_all for row in blocks.values() if "ok_per_s" in row]
    return next(
        (name for name in _LATENCIES if all(row.get(name, inf) < inf for row in rows)), _LATENCIES[-1]
    )


def change_of_gain(gain: Gain, *, is_higher: bool) -> RatioChange:
    """Return the change of the figure itself: a gain counts what is better as more."""

    def turned(ratio: float) -> float:
        return ratio if is_higher else 1 / (1 + ratio) - 1

    if gain.low is None or gain.high is None:
        return RatioChange(turned(gain.effect), None, None)
    return RatioChange(turned(gain.effect), *sorted((turned(gain.low), turned(gain.high))))


def _fresh(one: Candidate, blocks: Mapping[int, Figures], latency: str) -> FreshFigures:
    rows = list(blocks.values())
    return FreshFigures(one.words, *(_estimate(rows, name) for name in ("ok_per_s", latency, "pss_end")))


def _estimate(rows: Sequence[Figures], name: str) -> Estimate | None:
    values = [row[name] for row in rows if row.get(name, inf) < inf]
    return estimate_over(values, name) if values else None


# --- the search -------------------------------------------------------------------------------------------


def _searched(answer: Recommendation, wish: TuneWish, latency: str) -> tuple[RacedSetting, ...]:
    names = ("ok_per_s", latency, "pss_end")
    means = {
        one: _Means(*(_mean(list(blocks.values()), name) for name in names))
        for one, blocks in answer.searched.items()
    }
    changes, best = _changes(wish, answer.searched), _front(means)
    found = [
        RacedSetting(
            setting=one.words,
            trials=tuple(_trials(answer, wish, one)),
            change=changes.get(one.words),
            rate=means[one].rate,
            latency=means[one].latency,
            memory=means[one].memory,
            beaten_after=answer.beaten.get(one),
            on_front=one in best,
        )
        for one in answer.searched
    ]
    side = 1 if wish.higher_is_better else -1
    return tuple(sorted(found, key=lambda one: -side * one.change.value if one.change else inf))


class _Means(NamedTuple):
    rate: float | None
    latency: float | None
    memory: float | None


def _front(means: Mapping[Candidate, _Means]) -> tuple[Candidate, ...]:
    """Return those of which rate, latency and memory are known, and that no other beats in all of them."""
    costs = {
        one: (-rate, latency, memory)
        for one, (rate, latency, memory) in means.items()
        if rate is not None and latency is not None and memory is not None
    }
    return tuple(
        one
        for one, own in costs.items()
        if not any(
            its != own and all(b <= a for a, b in zip(own, its, strict=True)) for its in costs.values()
        )
    )


def _mean(rows: Sequence[Figures], name: str) -> float | None:
    values = [row[name] for row in rows if row.get(name, inf) < inf]
    return geometric_mean(values) if values else None


def _trials(answer: Recommendation, wish: TuneWish, one: Candidate) -> Iterator[RaceTrial]:
    base = answer.searched.get(answer.incumbent, {})
    for block, figures in sorted(answer.searched[one].items()):
        value, its = figures.get(wish.metric), base.get(block, {}).get(wish.metric)
        if value is not None and value < inf:
            stage, place = stage_and_block(block)
            yield RaceTrial(stage, place, value, value / its - 1 if its and its < inf else None)


def _changes(wish: TuneWish, searched: Trials) -> dict[str, RatioChange]:
    """Return the change of each against the incumbent, with bounds that hold for all pairs together."""
    logs = {name: own for name, own in logs_of(wish, searched, searched).items() if own}
    base = wish.incumbent.words
    found = {base: RatioChange(0.0, None, None)} if base in logs else {}
    for (first, second), effect in all_pairs(logs).items():
        if base in (first, second):
            turned = effect if first == base else effect.mirrored()
            low, high = _bounds(turned, len(logs))
            gain = Gain(turned.count, expm1(turned.centre), expm1(low), expm1(high))
            found[second if first == base else first] = change_of_gain(gain, is_higher=wish.higher_is_better)
    return found


def _bounds(effect: Effect, settings: int, level: float = 0.05) -> tuple[float, float]:
    return effect.interval(pair_level(level, settings, max(1, floor(effect.freedom))))


# --- what the settings do ---------------------------------------------------------------------------------


def knob_effect(answer: Recommendation, wish: TuneWish, knob: str) -> KnobEffect | None:
    """Return what one number did on the server that is used; None where it was not varied alone."""
    server = (answer.chosen or answer.incumbent).server
    own = {one.words: one for one in answer.searched if one.server == server}
    logs = logs_of(wish, answer.searched, own.values())
    found = [one for one in _between(logs) if _differs_alone(own[one.first], own[one.second], knob)]
    if not found:
        return None
    shown = max((one for one in found if one.is_shown), key=_Between.size, default=None)
    if shown is not None:
        a, b = sorted((own[shown.first], own[shown.second]), key=lambda one: getattr(one, knob))
        values = (getattr(a, knob), getattr(b, knob))
        return KnobEffect(knob, values, shown.change(wish, a.words), _beside(a, knob), within=None)
    several = len({getattr(one, _rest(knob)) for one in own.values()}) > 1
    return _on_average(_by_value(own, logs, knob), wish, knob, "on average" if several else "")


@dataclass(frozen=True, slots=True)
class _Between:
    """The effect second / first of two settings, or values, and its bounds, which hold for all together."""

    first: str
    second: str
    centre: float
    low: float
    high: float

    @property
    def is_shown(self) -> bool:
        return self.low > 0 or self.high < 0

    def size(self) -> float:
        return abs(self.centre)

    def change(self, wish: TuneWish, base: str) -> float:
        """Return the change of the objective itself, from ``base`` to the other."""
        turned = self.centre if base == self.first else -self.centre
        gain = Gain(1, expm1(turned), None, None)
        return change_of_gain(gain, is_higher=wish.higher_is_better).value


def _between(logs: Mapping[str, Mapping[int, float]]) -> list[_Between]:
    return [
        _Between(first, second, effect.centre, *_bounds(effect, len(logs), _LEVEL))
        for (first, second), effect in all_pairs(logs).items()
    ]


def _by_value(
    own: Mapping[str, Candidate], logs: Mapping[str, Mapping[int, float]], knob: str
) -> dict[str, dict[int, float]]:
    """Return the logarithms by the values of a knob: those beside each value of the other have blocks of
    their own.
    """
    places = dict[tuple[int | None, int], int]()
    found = dict[str, dict[int, float]]()
    for words, one in own.items():
        if getattr(one, knob) is not None:
            row = found.setdefault(str(getattr(one, knob)), {})
            for block, value in logs[words].items():
                row[places.setdefault((getattr(one, _rest(knob)), block), len(places))] = value
    return found


def _on_average(
    logs: Mapping[str, Mapping[int, float]], wish: TuneWish, knob: str, beside: str
) -> KnobEffect:
    """Return what the values of a knob did on average."""
    found = _between(logs)
    values = sorted(map(int, {name for one in found for name in (one.first, one.second)}))
    shown = max((one for one in found if one.is_shown), key=_Between.size, default=None)
    if shown is None:
        most = max((max(-one.low, one.high) for one in found), default=inf)
        return KnobEffect(knob, tuple(values), None, beside, expm1(most) if most < inf else None)
    low, high = sorted((int(shown.first), int(shown.second)))
    return KnobEffect(knob, (low, high), shown.change(wish, str(low)), beside, within=None)


def _differs_alone(one: Candidate, other: Candidate, knob: str) -> bool:
    rest = _rest(knob)
    return getattr(one, rest) == getattr(other, rest) and None not in (
        getattr(one, knob),
        getattr(other, knob),
    )


def _rest(knob: str) -> str:
    return next(one for one in _KNOBS if one != knob)


def _beside(one: Candidate, knob: str) -> str:
    rest = _rest(knob)
    count = getattr(one, rest)
    return "" if count is None else f"at {count} {rest if count != 1 else rest[:-1]}"
