"""The sessions of a study: stretches of measuring on one machine, one day after the other.

What differs between sessions (the weather of a machine, its neighbours, its updates) is not in an interval
within one. Must not know words.
"""

from collections.abc import Sequence
from itertools import pairwise

from prony.analysis.fingerprints import comparable
from prony.model import Run
from prony.units import DAY_NS

__all__ = ["first_runs"]


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
