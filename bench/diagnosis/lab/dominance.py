"""Of two faults at once: which hurts more, and whether it is the one that is named first. Pure.

*Definition*: the dominant fault is the one whose twin is better by more: by a tenth at least, and by a tenth
more than that of the other; else neither is. A trial of both faults is right where a kind of finding of the
dominant one is named first.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lab.cause import Plant
from lab.doubles import Double
from lab.judge import JudgedPlant, Named
from lab.matrix import Share

_LEAST = 1.1


@dataclass(frozen=True, slots=True)
class JudgedDouble:
    """Two faults at once: the twins' gains without the ``first`` and without the ``second``, as ratios, and
    the trials with both. ``dominant``: the plant of the fault that hurts more; null: neither does.
    """

    double: Double
    first: float
    second: float
    dominant: Plant | None
    trials: tuple[Named, ...]

    @property
    def right(self) -> Share | None:
        """The trials in which the dominant fault was named first; None without one."""
        if self.dominant is None:
            return None
        named = self.dominant.cause.named
        return Share(sum(one.symptom in named for one in self.trials), len(self.trials))


def judge_doubles(doubles: Iterable[Double], judged: Sequence[JudgedPlant]) -> tuple[JudgedDouble, ...]:
    """Return what became of each double of which both plants have trials in pairs."""
    by_name = {one.plant.name: one for one in judged}
    found = (_judged(double, by_name) for double in doubles)
    return tuple(one for one in found if one is not None)


def _judged(double: Double, by_name: Mapping[str, JudgedPlant]) -> JudgedDouble | None:
    plants = (double.first, double.second)
    first, second = (by_name.get(plant.name) for plant in plants)
    if first is None or second is None or first.gain is None or second.gain is None:
        return None
    less, more = sorted((first.gain, second.gain))
    # One that does not hurt at all is not dominant, however much better it is than the other.
    if more < _LEAST * max(less, 1.0):
        dominant = None
    else:
        dominant = plants[0] if first.gain > second.gain else plants[1]
    return JudgedDouble(double, first.gain, second.gain, dominant, (*first.faulty, *second.faulty))


def share_of(judged: Iterable[JudgedDouble]) -> Share:
    """Return over all doubles in how many trials the dominant fault was named first."""
    known = [one.right for one in judged if one.right is not None]
    return Share(sum(one.count for one in known), sum(one.total for one in known))
