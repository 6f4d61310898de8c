"""The highest rate of each subject that meets an objective, as the last search of a study found it."""

from collections.abc import Sequence
from dataclasses import dataclass

from prony.analysis.failure_rates import clopper_pearson
from prony.model import Run
from prony.model.facts import FoundRate, RateStep

__all__ = ["Confirmed", "confirmed_rates"]


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The result of a search for one subject: ``rate_per_s`` null where no rate met the objective.

    ``met`` of ``of`` fresh trials at that rate met it; ``low`` and ``high``: the exact 95 % interval of that
    share, null without one. ``stopped``: what ended the search, ``steps``: the rates that were tried.
    """

    subject: str
    rate_per_s: float | None
    met: int
    of: int
    low: float | None
    high: float | None
    stopped: str
    steps: tuple[RateStep, ...]


def confirmed_rates(runs: Sequence[Run]) -> tuple[Confirmed, ...]:
    """Return what the last run that searched found, for each subject; empty without a search."""
    found = next((run.facts.found_rates for run in reversed(runs) if run.facts.found_rates), ())
    return tuple(map(_confirmed, found))


def _confirmed(found: FoundRate) -> Confirmed:
    is_share = found.rate_per_s is not None and 0 < found.of >= found.met
    low, high = clopper_pearson(found.met, found.of) if is_share else (None, None)
    return Confirmed(
        found.subject, found.rate_per_s, found.met, found.of, low, high, found.stopped, found.steps
    )
