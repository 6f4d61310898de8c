"""The highest rate of each subject that meets an objective, as the last search of a study found it."""

from collections.abc import Iterable
from dataclasses import dataclass

from prony.analysis.failure_rates import clopper_pearson
from prony.model import Json, Run

__all__ = ["Confirmed", "confirmed_rates"]


@dataclass(frozen=True, slots=True)
class Confirmed:
    """What a search found of one subject: ``rate_per_s`` null where no rate met the objective.

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
    steps: tuple[Json, ...]


def confirmed_rates(runs: Iterable[Run]) -> tuple[Confirmed, ...]:
    """Return what the last run that searched found, for each subject; empty without a search."""
    recorded = [run.facts.get("found_rates") for run in runs]
    found = next((one for one in reversed(recorded) if isinstance(one, list)), [])
    return tuple(_confirmed(one) for one in found if isinstance(one, dict))


def _confirmed(found: Json) -> Confirmed:
    rate, met, of = found.get("rate_per_s"), _count(found.get("met")), _count(found.get("of"))
    is_rate = isinstance(rate, (int, float))
    low, high = clopper_pearson(met, of) if is_rate and 0 < of >= met else (None, None)
    steps = found.get("steps")
    return Confirmed(
        subject=str(found.get("subject") or ""),
        rate_per_s=float(rate) if isinstance(rate, (int, float)) else None,
        met=met,
        of=of,
        low=low,
        high=high,
        stopped=str(found.get("stopped") or ""),
        steps=tuple(steps) if isinstance(steps, list) else (),
    )


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0
