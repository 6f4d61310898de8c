"""The sessions of a study: stretches of measuring on one machine, one day after the other.

What differs between sessions (the weather of a machine, its neighbours, its updates) is not in an interval
within one. Must not know words.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from prony.analysis.fingerprints import comparable
from prony.model.plan import Plan
from prony.model.records import Run, TrialRecord
from prony.units import DAY_NS


def first_runs(runs: Sequence[Run]) -> tuple[int, ...]:
    """Return the places of the runs that begin a session: the first, and each on another machine, or begun on
    another day (UTC), than the run before.
    """
    new = (k for k, (before, run) in enumerate(pairwise(runs), 1) if _is_other(before, run))
    return (0, *new) if runs else ()


def _is_other(before: Run, run: Run) -> bool:
    return _day(before) != _day(run) or bool(comparable(before.fingerprint, run.fingerprint))


def _day(run: Run) -> int:
    return run.started_unix_ns // DAY_NS


def stretches(runs: Sequence[Run]) -> Mapping[int, int]:
    """Return the stretch that each run belongs to, by the run's id."""
    first = set(first_runs(runs))
    found, stretch = {}, -1
    for k, run in enumerate(runs):
        stretch += k in first
        found[run.id] = stretch
    return found


def session_of(record: TrialRecord, plan: Plan, stretch: Mapping[int, int]) -> tuple[int, int]:
    """Return the session of a trial: the stretch of runs on one machine and day, and the planned session."""
    return stretch.get(record.run_id, 0), record.trial.block // plan.session_blocks
