"""The confusion matrix of planted causes: recall and precision, with exact intervals. Pure.

*Definition*: a trial counts where its fault hurt. Recall of a cause: the share of its trials in which it is
named first. Precision of a cause: of all trials in which it is named first, healthy ones included, the share
in which it was planted. Macro: the mean over causes. Intervals of a share are Clopper and Pearson's; of a
macro mean, the 2.5 and 97.5 % quantiles over plants that are drawn again, since trials of one plant are
alike; it has none while more than half of the causes have one plant each, which drawn again is itself.
*Source*: Clopper and Pearson, Biometrika 26 (1934); Efron, "Bootstrap Methods", Ann. Statist. 7 (1979).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean

from lab.cause import PlanPart, PlantedCause
from lab.judge import JudgedPlant, Named
from prony.diagnosis.kinds import Symptom
from prony.figures.statistics.failure_rates import clopper_pearson

HEALTHY = "nothing"
"""The class of trials in which nothing is wrong, or named."""

_DRAWS = 1000
_SEED = 1


@dataclass(frozen=True, slots=True)
class Share:
    """``count`` of ``total``, with the exact 95 % interval of the share."""

    count: int
    total: int

    @property
    def value(self) -> float | None:
        """The share; None of nothing."""
        return self.count / self.total if self.total else None

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of the share."""
        return clopper_pearson(self.count, self.total) if self.total else (0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Macro:
    """A mean over causes, with its 95 % interval; null without any, or with too few plants for one."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class CauseRow:
    """One cause: what was named of its trials, by class. ``plants``: those that hurt, of ``tried``."""

    cause: PlantedCause
    plants: int
    tried: int
    named: Mapping[str, int]
    recall: Share
    precision: Share


@dataclass(frozen=True, slots=True)
class Matrix:
    """The table of one part of the plan. ``healthy``: what was named of trials without a fault;
    ``false_certain``: those of them with a finding that is called certain.
    """

    rows: tuple[CauseRow, ...]
    healthy: Mapping[str, int]
    false_certain: Share
    recall: Macro
    precision: Macro
    disturbed: int


def matrix_of(
    judged: Sequence[JudgedPlant], causes: Sequence[PlantedCause], part: PlanPart | None = None
) -> Matrix:
    """Return the matrix of one part of the plan; None: of all of it."""
    own = [one for one in judged if part in (None, one.plant.part) and one.plant.part is not PlanPart.DOUBLE]
    hurting = [one for one in own if one.hurt]
    healthy = [trial for one in own for trial in one.healthy]
    classes = _classes(causes)
    rows = tuple(
        _row(cause, own, hurting, healthy, classes)
        for cause in causes
        if cause.named and any(one.plant.cause is cause for one in own)
    )
    recall, precision = _macros(hurting, healthy, causes)
    return Matrix(
        rows,
        dict(Counter(_class_of(one, classes) for one in healthy)),
        Share(sum(bool(one.certain) for one in healthy), len(healthy)),
        recall,
        precision,
        sum(one.disturbed for one in own),
    )


def _classes(causes: Sequence[PlantedCause]) -> Mapping[Symptom, str]:
    """Return the class of each kind of finding: the first cause that it names."""
    found: dict[Symptom, str] = {}
    for cause in causes:
        for kind in cause.named:
            found.setdefault(kind, cause.name)
    return found


def _class_of(one: Named, classes: Mapping[Symptom, str], cause: PlantedCause | None = None) -> str:
    """Return the class that is named; causes that share a kind of finding are each other's."""
    if one.symptom is None:
        return HEALTHY
    if cause is not None and one.symptom in cause.named:
        return cause.name
    return classes.get(one.symptom, one.symptom.value)


def _row(
    cause: PlantedCause,
    own: Sequence[JudgedPlant],
    hurting: Sequence[JudgedPlant],
    healthy: Sequence[Named],
    classes: Mapping[Symptom, str],
) -> CauseRow:
    mine = [one for one in hurting if one.plant.cause is cause]
    trials = [trial for one in mine for trial in one.faulty]
    right, named = _counts(cause, hurting, healthy)
    return CauseRow(
        cause,
        len(mine),
        sum(one.plant.cause is cause for one in own),
        dict(Counter(_class_of(trial, classes, cause) for trial in trials)),
        Share(sum(len(one.right) for one in mine), len(trials)),
        Share(right, named),
    )


def _counts(cause: PlantedCause, hurting: Sequence[JudgedPlant], healthy: Sequence[Named]) -> tuple[int, int]:
    """Return in how many trials a cause was rightly named, and in how many it was named."""
    named = [(one, trial) for one in hurting for trial in one.faulty if trial.symptom in cause.named]
    right = sum(trial.symptom in one.plant.cause.named for one, trial in named)
    return right, len(named) + sum(trial.symptom in cause.named for trial in healthy)


@dataclass(frozen=True, slots=True)
class _Tally:
    """One plant that hurt: the place of its cause, its trials, those that were right; and for each cause the
    trials in which it was ``named``, and in how many of these ``rightly``: causes may share a kind of
    finding.
    """

    cause: int
    trials: int
    right: int
    named: tuple[int, ...]
    rightly: tuple[int, ...]


def _macros(
    hurting: Sequence[JudgedPlant], healthy: Sequence[Named], causes: Sequence[PlantedCause]
) -> tuple[Macro, Macro]:
    tallies = [_tally(one, causes) for one in hurting]
    alarms = [sum(trial.symptom in cause.named for trial in healthy) for cause in causes]
    by_cause = [[one for one in tallies if one.cause == place] for place in range(len(causes))]
    planted = [own for own in by_cause if own]
    has_spread = 2 * sum(len(own) > 1 for own in planted) >= len(planted) > 0
    draw = Random(_SEED)  # noqa: S311 - a bootstrap, not a secret
    drawn = [
        _means([one for own in planted for one in draw.choices(own, k=len(own))], alarms)
        for _ in range(_DRAWS if has_spread else 0)
    ]
    recall, precision = _means(tallies, alarms)
    recalls = [one for one, _ in drawn if one is not None]
    precisions = [one for _, one in drawn if one is not None]
    return _macro(recall, recalls), _macro(precision, precisions)


def _tally(one: JudgedPlant, causes: Sequence[PlantedCause]) -> _Tally:
    named = tuple(sum(trial.symptom in cause.named for trial in one.faulty) for cause in causes)
    rightly = tuple(sum(trial.symptom in cause.named for trial in one.right) for cause in causes)
    return _Tally(causes.index(one.plant.cause), len(one.faulty), len(one.right), named, rightly)


def _means(tallies: Sequence[_Tally], alarms: Sequence[int]) -> tuple[float | None, float | None]:
    """Return macro recall and precision; ``alarms``: by cause, healthy trials in which it was named."""
    trials, right, named = [0] * len(alarms), [0] * len(alarms), list(alarms)
    rightly = [0] * len(alarms)
    for one in tallies:
        trials[one.cause] += one.trials
        right[one.cause] += one.right
        for place, (all_, right_ones) in enumerate(zip(one.named, one.rightly, strict=True)):
            named[place] += all_
            rightly[place] += right_ones
    known = [place for place, count in enumerate(trials) if count]
    recalls = [right[place] / trials[place] for place in known]
    precisions = [rightly[place] / named[place] for place in known if named[place]]
    return (fmean(recalls) if recalls else None), (fmean(precisions) if precisions else None)


def _macro(value: float | None, drawn: Sequence[float]) -> Macro:
    if value is None or not drawn:
        return Macro(value)
    ranked = sorted(drawn)
    return Macro(value, ranked[int(0.025 * len(ranked))], ranked[int(0.975 * len(ranked))])
