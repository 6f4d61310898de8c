"""A cell with all that a report says of it: its figures, and what they were derived from.

Must not know words.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from prony.analysis.displayed import cell_trimmed_mean
from prony.analysis.listeners import SharedAddress
from prony.analysis.missing import Missing, Value
from prony.analysis.steady_state import SteadyState
from prony.analysis.summary import CellSummary, TrialFigures
from prony.archive.secrets import masked
from prony.diagnosis import Diagnosis
from prony.metrics import METRICS
from prony.model.observation import ListenerUsage
from prony.model.shapes import INLINE
from prony.model.shown import shown
from prony.model.workload import Workload
from prony.reading.causes import Ended, ended
from prony.reading.failures import FailedAlike, FailedRequests, failed_alike, failed_by_class
from prony.reading.pace import fullest_addresses
from prony.reading.paths import CellPath, cell_paths


@dataclass(frozen=True, slots=True)
class Uncounted:
    """A trial that does not count."""

    block: int
    attempt: int
    ended: Ended = field(metadata=INLINE)
    log: str
    """Its last 32 KiB."""


@dataclass(frozen=True, slots=True)
class MeasuredCell:
    """One subject under one load."""

    summary: CellSummary = field(metadata=INLINE)
    diagnosis: Diagnosis | None
    """What limits the subject under this load; null where no trial says."""

    @shown
    def cell_id(self) -> int:
        """The number of the cell in the plan."""
        return self.summary.cell.id

    @shown
    def subject(self) -> str:
        """The subject's name."""
        return self.summary.cell.subject.name

    @shown
    def workload(self) -> Workload:
        """Its load, without the values of secret headers."""
        load = self.summary.cell.workload
        return replace(load, request=masked(load.request))

    @shown
    def by_block(self) -> Mapping[int, Mapping[str, float | None]]:
        """The value of each metric in each trial that counts, by block; null where missing."""
        return {
            block: {name: or_null(value) for name, value in metrics.items()}
            for block, metrics in self.summary.by_block.items()
        }

    @shown
    def trimmed_mean(self) -> Mapping[str, float | None]:
        """By metric: the mean without the highest and the lowest trial."""
        return {name: or_null(cell_trimmed_mean(self.summary, name)) for name in METRICS}

    @shown
    def failed_requests(self) -> tuple[FailedRequests, ...]:
        """The requests that failed, most first."""
        return failed_by_class(self.summary)

    @shown
    def failed_alike(self) -> tuple[FailedAlike, ...]:
        """Trials that do not count for the same reason."""
        return failed_alike(self.summary)

    @shown
    def pace(self) -> Mapping[int, SteadyState | Missing]:
        """By block: how the pace of a single trial developed."""
        return {trial.block: trial.steady for trial in self.summary.counted}

    @shown
    def listeners(self) -> Mapping[int, tuple[ListenerUsage, ...]]:
        """By block: each listening socket in its fullest state of the window."""
        return {trial.block: trial.listeners for trial in self.summary.counted}

    @shown
    def shared_addresses(self) -> tuple[SharedAddress, ...]:
        """Listeners at one address (SO_REUSEPORT), in the trial with the fullest queue."""
        return fullest_addresses(self.summary)

    @shown
    def uncounted(self) -> tuple[Uncounted, ...]:
        """Trials that do not count."""
        return tuple(map(_uncounted, self.summary.others))

    @shown
    def paths(self) -> tuple[CellPath, ...]:
        """Each path of a mix; empty for one path."""
        return cell_paths(self.summary) if self.summary.cell.workload.mix else ()


def or_null(value: Value) -> float | None:
    """Return a value; null where it is missing."""
    return None if isinstance(value, Missing) else value


def _uncounted(trial: TrialFigures) -> Uncounted:
    return Uncounted(trial.block, trial.attempt, ended(trial.outcome), trial.log.text)
