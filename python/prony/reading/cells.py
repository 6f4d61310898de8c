"""A cell with all that a report says of it: its figures, and what they were derived from.

What the windows of cells show beside their figures: whether they are steady, full queues, replacements.

The paths of a cell's mix, its groups of users, and the statuses of its replies, over its trials.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from prony.archive.codec import masked_load
from prony.core.metrics import METRICS
from prony.diagnosis.conclusion import Diagnosis
from prony.figures.accept_queue import SharedAddress
from prony.figures.account import Tally, together
from prony.figures.by_session import mean_of_sessions
from prony.figures.latency import LatencySummary, LoadPart, LoadStatus
from prony.figures.missing import Missing, Value
from prony.figures.steadiness import Steadiness
from prony.figures.steady_state import SteadyState
from prony.figures.summary import (
    CellSummary,
    Estimate,
    Estimated,
    TrialFigures,
    cell_trimmed_mean,
    estimate_over,
    lost_trials,
)
from prony.model.json_codec import INLINE
from prony.model.observation import ListenerUsage
from prony.model.shown import INTERNAL, shown
from prony.model.workload import OTHERS, OpenLoop, Workload
from prony.reading.failures import Ended, FailedAlike, FailedRequests, ended, failed_alike, failed_by_class

_SHOWN = ("50", "99")
_MOST_ROWS, _LEAST_PATHS = 20, 3


@dataclass(frozen=True, slots=True)
class CellPart:
    """A path, or a group of users, with the share that it was to have (``asked``), its requests, summed, and
    their ``share`` of all; null where there were none.
    """

    name: str
    weight: float
    asked: float
    share: float | None
    account: Tally = field(metadata=INLINE)
    body_received: int | None
    """Bytes of the bodies of replies to the window's own requests, summed; null where nobody counts them."""
    kind: str = field(metadata=INTERNAL)
    """Of these times, as in a `LoadPart`."""
    percentiles: dict[str, Estimated]
    """Of the times of all its requests, by name, or why there is none."""
    censored_from: float | None = None
    """The least percentile, over the trials, from which they are lower bounds."""

    @shown
    def of(self) -> str:
        """The times that the percentiles are of."""
        return f"{self.kind}_ns"


def cell_paths(cell: CellSummary) -> tuple[CellPart, ...]:
    """Return the paths of a cell over its trials that count, in the mix's order; none where it has no mix."""
    return _over(cell, [trial.paths for trial in cell.windows])


def cell_groups(cell: CellSummary) -> tuple[CellPart, ...]:
    """Return the groups of users of a cell over its trials that count; none where all users are alike."""
    return _over(cell, [trial.groups for trial in cell.windows])


@dataclass(frozen=True, slots=True)
class CellStatus:
    """The requests whose replies had one status, summed. All statuses together are the cell's requests."""

    status: str
    """A code; `others`, where there are too many to keep apart; `none`: no complete reply."""
    requests: int
    errors: int
    """All but `ok`."""
    share: float | None
    """Of all requests; null where there were none."""
    body_received: int
    """Bytes of the bodies of replies to the window's own requests."""
    kind: str = field(metadata=INTERNAL)
    percentiles: dict[str, Estimated]
    """Of the times of its complete replies, over the trials that had any, by name, or why there is none."""

    @shown
    def of(self) -> str:
        """The times that the percentiles are of."""
        return f"{self.kind}_ns"


def cell_statuses(cell: CellSummary) -> tuple[CellStatus, ...]:
    """Return the statuses of a cell over its trials that count; none where the generator does not report
    them. Percentiles are as those of a path.
    """
    found: dict[str, list[tuple[LoadStatus, int]]] = {}
    for trial in cell.counted:
        for one in trial.statuses:
            found.setdefault(one.status, []).append((one, trial.session))
    return tuple(_status(cell, found[name]) for name in sorted(found))


def _status(cell: CellSummary, found: Sequence[tuple[LoadStatus, int]]) -> CellStatus:
    every = [one for one, _ in found]
    kind = "response" if isinstance(cell.cell.workload.loop, OpenLoop) else "service"
    each = [(one.latency["all"][f"{kind}_ns"], session) for one, session in found]
    timed = [(times, session) for times, session in each if times is not None]
    times, sessions = [one for one, _ in timed], [session for _, session in timed]
    lost = lost_trials(cell.ok, cell.total) or (None if timed else "no reply was complete")
    by_session = None if cell.by_session is None else sessions
    requests, whole = sum(one.requests for one in every), cell.account.requests
    return CellStatus(
        status=every[0].status,
        requests=requests,
        errors=sum(one.errors for one in every),
        share=requests / whole if whole else None,
        body_received=sum(one.body_received for one in every),
        kind=kind,
        percentiles={
            name: Missing(lost) if lost else _estimate(times, kind, name, by_session) for name in _SHOWN
        },
    )


def _over(cell: CellSummary, trials: Sequence[Sequence[LoadPart]]) -> tuple[CellPart, ...]:
    """Return the parts of a cell over its trials.

    *Definition*: percentiles of trials are replicates: the mean of them, never a percentile of all trials'
    requests. Where failures make one infinite in any trial, there is none, and none if too few trials count.
    """
    lost = lost_trials(cell.ok, cell.total)
    sessions = None if cell.by_session is None else [trial.session for trial in cell.windows]
    return tuple(_over_trials(same, cell.account, lost, sessions) for same in zip(*trials, strict=False))


@dataclass(frozen=True, slots=True)
class OtherPaths:
    """How many of the paths of a cell tables leave out, and these together, as a `CellPart`."""

    paths: int
    asked: float
    share: float | None
    account: Tally = field(metadata=INLINE)
    body_received: int | None


def shown_paths(cells: Sequence[CellSummary]) -> frozenset[int]:
    """Return which paths tables show of each of these cells, by their place in the mix: all, if that makes a
    short table; else those that fail most, at most as many as half, and those of the highest medians, in any
    of the cells. None where no path failed and each has too few requests for a median.
    """
    each = [paths for cell in cells if (paths := cell_paths(cell))]
    places = range(max(map(len, each), default=0))
    if len(each) * len(places) <= _MOST_ROWS:
        return frozenset(places)
    # What a file has beyond its first hundred paths is a sum already.
    alone = [k for k in places if each[0][k].name != OTHERS]
    room = max(_LEAST_PATHS, _MOST_ROWS // len(each) - 1)
    lost = {k: max(paths[k].account.lost for paths in each) for k in alone}
    slow = {k: max(_median(paths[k]) for paths in each) for k in alone}
    failing = sorted((k for k in alone if lost[k]), key=lambda k: -lost[k])[: (room + 1) // 2]
    timed = (k for k in alone if k not in failing and slow[k])
    slowest = sorted(timed, key=lambda k: slow[k], reverse=True)
    return frozenset([*failing, *slowest][:room])


def _median(path: CellPart) -> float:
    found = path.percentiles["50"]
    return found.mean if isinstance(found, Estimate) else 0.0


def other_paths(found: Sequence[CellPart], kept: Collection[int]) -> OtherPaths | None:
    """Return the paths of a cell that are not shown; None: all are."""
    left = [path for place, path in enumerate(found) if place not in kept]
    if not left:
        return None
    shares = [path.share for path in left if path.share is not None]
    return OtherPaths(
        paths=len(left),
        asked=sum(path.asked for path in left),
        share=sum(shares) if shares else None,
        account=together(path.account for path in left),
        body_received=_summed(path.body_received for path in left),
    )


def _summed(found: Iterable[int | None]) -> int | None:
    """Return the sum; None where nobody counts one of them."""
    each = list(found)
    return None if None in each else sum(filter(None, each))


def _over_trials(
    same: Sequence[LoadPart], of: Tally, lost: str | None, sessions: Sequence[int] | None
) -> CellPart:
    first, account = same[0], together(one.account for one in same)
    times = [one.all for one in same]
    return CellPart(
        name=first.name,
        weight=first.weight,
        asked=first.asked,
        share=account.requests / of.requests if of.requests else None,
        account=account,
        body_received=_summed(one.bytes.body_received for one in same),
        kind=first.kind,
        percentiles={
            name: Missing(lost) if lost else _estimate(times, first.kind, name, sessions) for name in _SHOWN
        },
        censored_from=min((at for one in times if (at := one.censored_from) is not None), default=None),
    )


def _estimate(
    times: Sequence[LatencySummary], kind: str, name: str, sessions: Sequence[int] | None
) -> Estimated:
    found = [one.percentiles[name] for one in times]
    known = [value for value in found if value is not None]
    if len(known) == len(found):
        estimate = estimate_over(known, f"{kind}_")
        return estimate if sessions is None else mean_of_sessions(estimate, f"{kind}_", _in(sessions, known))
    is_infinite = any(one.percentiles[name] is None and one.infinite_from is not None for one in times)
    few = "fewer than 10 requests lie above it"
    why = "requests failed, which counts as infinite" if is_infinite else few
    return Missing(f"{why} (in {len(found) - len(known)} of {len(found)} trials)")


def _in(sessions: Sequence[int], values: Sequence[float]) -> list[list[float]]:
    """Return values by session."""
    found: dict[int, list[float]] = {}
    for session, value in zip(sessions, values, strict=True):
        found.setdefault(session, []).append(value)
    return list(found.values())


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
