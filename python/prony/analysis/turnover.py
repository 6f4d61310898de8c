"""Processes that were started and that ended while the window was open, by role.

*Source*: the sampler: a process is its number and the clock tick in which it was started.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from prony.analysis.missing import Missing, Value
from prony.model.observation import Sample

_Identity = tuple[int, int]
_NAMES = ("processes_started", "processes_ended", "restarts")


@dataclass(frozen=True, slots=True)
class Turnover:
    """How many processes of a role were started, how many ended, and how many of these were replaced.

    ``lost``: ended without being replaced. ``lasting``: of those that were started. A process that lives for
    one request is none of these.
    """

    started: int
    ended: int
    restarts: int = 0
    lost: int = 0
    lasting: int = 0


def turnover(window: Sequence[Sample]) -> dict[str, Turnover]:
    """Return the processes that started and ended between the window's first sample and its last, by role.

    *Definition*: started: seen, but not in the first sample; ended: seen, but not in the last. A process is
    lasting when it was seen more than once. A restart is one that ended and one that was started, of which at
    least one is lasting: servers that fork for each request restart nothing.
    *Assumptions*: a process that lives for less than the time between two samples may not be seen.
    """
    if len(window) < 2:
        return {}
    seen = Counter(one for sample in window for one in _roles(sample))
    roles = {one: role for sample in window for one, role in _roles(sample).items()}
    first, last = _roles(window[0]), _roles(window[-1])
    found = {}
    for role in sorted(set(roles.values())):
        own = [one for one in seen if roles[one] == role]
        started = [one for one in own if one not in first]
        ended = [one for one in own if one not in last]
        found[role] = _turnover(started, ended, seen)
    return found


def _turnover(started: Sequence[_Identity], ended: Sequence[_Identity], seen: Counter[_Identity]) -> Turnover:
    lasting_started = sum(seen[one] > 1 for one in started)
    lasting_ended = sum(seen[one] > 1 for one in ended)
    restarts = max(min(lasting_started, len(ended)), min(len(started), lasting_ended))
    return Turnover(len(started), len(ended), restarts, max(0, lasting_ended - restarts), lasting_started)


def turnover_metrics(window: Sequence[Sample], role: str | None = None) -> dict[str, Value]:
    """Return the counts by metric name, over all roles or of one; restarts are counted role by role."""
    if len(window) < 2:
        return dict.fromkeys(_NAMES, Missing("fewer than two samples of the processes in the window"))
    counted = [one for name, one in turnover(window).items() if role in (None, name)]
    sums = (
        sum(one.started for one in counted),
        sum(one.ended for one in counted),
        sum(one.restarts for one in counted),
    )
    return {name: float(value) for name, value in zip(_NAMES, sums, strict=True)}


def _roles(sample: Sample) -> dict[_Identity, str]:
    return {(one.pid, one.start_time_ticks): one.role for one in sample.processes}
