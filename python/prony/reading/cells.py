"""A cell with all that a report says of it: its figures, and what they were derived from.

What the windows of cells show beside their figures: whether they are steady, full queues, replacements.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf

from prony.archive.codec import masked_load
from prony.core.metrics import METRICS
from prony.diagnosis.conclusion import Diagnosis
from prony.figures.accept_queue import SharedAddress
from prony.figures.missing import Missing, Value
from prony.figures.steadiness import Steadiness
from prony.figures.steady_state import SteadyState
from prony.figures.summary import CellSummary, TrialFigures, cell_trimmed_mean
from prony.model.json_codec import INLINE
from prony.model.observation import ListenerUsage
from prony.model.shown import INTERNAL, shown
from prony.model.workload import Workload
from prony.reading.failures import Ended, FailedAlike, FailedRequests, ended, failed_alike, failed_by_class
from prony.reading.paths import (
    CellPart,
    CellStatus,
    OtherPaths,
    cell_groups,
    cell_paths,
    cell_statuses,
    other_paths,
)

# From here on a burst of connections no longer fits.
_NEARLY_FULL = 0.9


def coarsest(cells: Iterable[CellSummary], below_s: float = inf) -> tuple[CellSummary, Steadiness] | None:
    """Return, of the steady cells with windows of fewer seconds, the one that might hide the largest change;
    None without any.
    """
    found = [(cell, cell.steadiness) for cell in cells if not isinstance(cell.steadiness, Missing)]
    steady = [(cell, one) for cell, one in found if one.is_steady and one.seconds < below_s]
    return max(steady, key=lambda pair: pair[1].visible, default=None)


def unknown_pace(cells: Iterable[CellSummary]) -> str | None:
    """Return why it is not known of any cell whether it was steady, the most frequent reason; None where it
    is known of some cell.
    """
    states = [cell.steadiness for cell in cells if cell.ok]
    unknown = Counter(state.reason for state in states if isinstance(state, Missing))
    return unknown.most_common(1)[0][0] if unknown and unknown.total() == len(states) else None


def most(cell: CellSummary, metric: str) -> float:
    """Return the highest value of a metric over the trials of a cell; 0 where it has none."""
    found = cell.known(metric)
    return found.max if found else 0.0


def is_nearly_full(cell: CellSummary) -> bool:
    """Return whether an accept queue of the cell was full or nearly full in some trial."""
    return most(cell, "accept_queue_peak") >= _NEARLY_FULL


def fullest_addresses(cell: CellSummary) -> tuple[SharedAddress, ...]:
    """Return the listeners that share an address, by process, from the trial with the fullest queue."""
    fullest: dict[str, SharedAddress] = {}
    for one in (shared for trial in cell.counted for shared in trial.shared_addresses):
        known = fullest.get(one.process)
        if known is None or one.filled > known.filled:
            fullest[one.process] = one
    return tuple(fullest.values())


def followed(cell: CellSummary) -> Mapping[str, int]:
    """Return how many redirects the requests of a cell followed, by status."""
    return dict(sum((Counter(trial.followed) for trial in cell.counted), Counter()))


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
    shown_paths: frozenset[int] = field(default=frozenset(), metadata=INTERNAL)
    """The paths of a mix that tables show, by their place in it."""

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
        return masked_load(self.summary.cell.workload)

    @shown
    def by_block(self) -> Mapping[int, Mapping[str, float | None]]:
        """The value of each metric in each trial that counts, by block; None where missing."""
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
        return {trial.block: trial.steady for trial in self.summary.windows}

    @shown
    def listeners(self) -> Mapping[int, tuple[ListenerUsage, ...]]:
        """By block: each listening socket in its fullest state of the window."""
        return {trial.block: trial.listeners for trial in self.summary.windows}

    @shown
    def shared_addresses(self) -> tuple[SharedAddress, ...]:
        """Listeners at one address (SO_REUSEPORT), in the trial with the fullest queue."""
        return fullest_addresses(self.summary)

    @shown
    def uncounted(self) -> tuple[Uncounted, ...]:
        """Trials that do not count."""
        return tuple(map(_uncounted, self.summary.others))

    @shown
    def followed(self) -> Mapping[str, int]:
        """Redirects that requests followed, by status, summed; they are no requests of the account."""
        return followed(self.summary)

    @shown
    def paths(self) -> tuple[CellPart, ...]:
        """Each path of a mix; empty for one path."""
        return cell_paths(self.summary) if self.summary.cell.workload.mix else ()

    @shown
    def groups(self) -> tuple[CellPart, ...]:
        """Each group of users; empty where all are alike."""
        return cell_groups(self.summary) if self.summary.cell.workload.groups else ()

    @shown
    def statuses(self) -> tuple[CellStatus, ...]:
        """The requests by the status of their reply; empty where the generator does not report them."""
        return cell_statuses(self.summary)

    @shown
    def other_paths(self) -> OtherPaths | None:
        """The paths that the table of paths leaves out, together; None: it has all."""
        return other_paths(self.paths, self.shown_paths)


def or_null(value: Value) -> float | None:
    """Return a value; None where it is missing."""
    return None if isinstance(value, Missing) else value


def _uncounted(trial: TrialFigures) -> Uncounted:
    return Uncounted(trial.block, trial.attempt, ended(trial.outcome), trial.log.text)
