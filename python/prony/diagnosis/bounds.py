"""The most that each resource of a subject allows, from how much of it is used: which limit comes next.

*Definition*: with X valid replies a second and a share U of a resource, its ceiling is X / U.
*Assumptions*: at a higher rate as large a share of requests fails, and each uses as much of it. CPU for a
request falls a little as servers take several requests at a time; what waits elsewhere is in flight too, so
the ceiling of slots is a lower bound. *Source*: Denning and Buzen, Computing Surveys 10 (1978), section 6:
bounds of bottlenecks.

>>> from prony.diagnosis.consumption import Consumption
>>> (bound,) = bounds_of([Consumption(500, 1000.0, 1000.0, 0.5, {Resource.CPU: 0.25})])
>>> bound.per_s, bound.times
(4000.0, 4.0)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from prony.analysis.summary import Estimate, estimate_mean
from prony.diagnosis.consumption import Consumption, Resource

# A smaller share of a window of seconds is a few ticks of the kernel's clock.
_LEAST_SHARE = 0.02
# Slots that are busy with the CPU are no limit of their own; what is in flight also waits elsewhere.
_OWN_LIMIT = 0.67
_BOUNDING = (Resource.CORES, Resource.CPU, Resource.SLOTS, Resource.POOL, Resource.GENERATOR)


@dataclass(frozen=True, slots=True)
class Bound:
    """The requests per second that a resource allows, as a mean over the trials."""

    resource: Resource
    per_s: float
    low: float | None
    """`low` and `high`: its 95 % interval, null for one trial."""
    high: float | None
    times: float
    """Over what was carried, with the interval `times_low` to `times_high`, null for one trial."""
    times_low: float | None = None
    times_high: float | None = None


def bounds_of(usages: Sequence[Consumption]) -> tuple[Bound, ...]:
    """Return the bound of each resource whose use is known in every trial, the nearest first."""
    found = {resource: _ceiling(usages, resource) for resource in _BOUNDING}
    known = {resource: one for resource, one in found.items() if one is not None}
    cpu, slots = known.get(Resource.CPU), known.get(Resource.SLOTS)
    if cpu is not None and slots is not None and slots.mean > _OWN_LIMIT * cpu.mean:
        del known[Resource.SLOTS]
    carried = fmean(one.carried_per_s for one in usages) if usages else 0.0
    bounds = (
        Bound(resource, one.mean, one.low, one.high, one.mean / carried, *_times(one, carried))
        for resource, one in known.items()
    )
    return tuple(sorted(bounds, key=lambda one: one.per_s))


def _times(found: Estimate, carried: float) -> tuple[float | None, float | None]:
    """Return between which multiples of what was carried a limit is; null of one trial."""
    if found.low is None or found.high is None:
        return None, None
    # A limit that was not passed is not below what was carried.
    return max(found.low / carried, 1.0), found.high / carried


def _ceiling(usages: Sequence[Consumption], resource: Resource) -> Estimate | None:
    shares = [one.shares.get(resource, 0.0) for one in usages]
    if not shares or min(shares) < _LEAST_SHARE or not any(one.carried_per_s for one in usages):
        return None
    return estimate_mean([one.carried_per_s / share for one, share in zip(usages, shares, strict=True)])
