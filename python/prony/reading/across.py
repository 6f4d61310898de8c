"""Sessions of one plan beside each other, from one archive or from several.

The sessions of a study: stretches of measuring on one machine, one day after the other.

What differs between sessions (the weather of a machine, its neighbours, its updates) is not in an interval
within one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from prony.core.units import DAY_NS, format_duration
from prony.figures.across_sessions import OverRow, over_rows
from prony.figures.answer import Answer, log_values, ranked_cells
from prony.figures.claim_parts import ClaimResult, ClaimVerdict
from prony.figures.drift import comparable, machine_key
from prony.figures.statistics.all_pairs import Pair
from prony.figures.statistics.compare import Comparison, Terms
from prony.figures.summary import CellSummary, Estimate, TrialFigures, means
from prony.model.claims import Claim
from prony.model.facts import Fingerprint
from prony.model.json_codec import INLINE, at
from prony.model.plan import Cell, Plan
from prony.model.shown import INTERNAL, shown, shown_as
from prony.model.trial import Run, SubjectRecord, TrialRecord
from prony.model.workload import ClosedLoop, OpenLoop, Workload
from prony.reading.groups import Group


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
    """Return the session of a trial: the stretch of runs on one machine and day, and the planned session; a
    study of a length of time may have more blocks than were planned.
    """
    planned = min(plan.design.sessions - 1, record.trial.block // plan.session_blocks)
    return stretch.get(record.run_id, 0), planned


_BESIDE = ("ok_per_s", "error_ratio", "cpu_ns_per_request", "pss_end")


@dataclass(frozen=True, slots=True)
class SameSubject:
    """A subject of several editions."""

    figures: tuple[Estimate | None, ...]
    change: float | None


@dataclass(frozen=True, slots=True)
class SameLoad:
    """A load of several editions. ``metric`` decides; ``cells``: by subject, one for each edition, null where
    that has none.
    """

    workload: Workload = field(metadata=at("load"))
    metric: str
    cells: Mapping[str, tuple[CellSummary | None, ...]] = field(metadata=INTERNAL)

    @shown
    def subjects(self) -> Mapping[str, SameSubject]:
        """The subjects that two have, in the deciding metric."""
        return {
            name: SameSubject(tuple(_estimate(cell, self.metric) for cell in row), change(row, self.metric))
            for name, row in self.cells.items()
        }

    @shown_as("metrics")
    def by_metric(self) -> Mapping[str, Mapping[str, tuple[Estimate | None, ...]]]:
        """The figures of all metrics that a page draws, by metric and subject."""
        return {metric: self.figures(metric) for metric in self.metrics}

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that are shown of it: the deciding one first, then tail, rate, errors and cost."""
        tail = "service_ok_p99" if isinstance(self.workload.loop, ClosedLoop) else "response_ok_p99"
        return tuple(dict.fromkeys((self.metric, tail, *_BESIDE)))

    def figures(self, metric: str) -> Mapping[str, tuple[Estimate | None, ...]]:
        """Return each subject's estimates, one for each edition; None where there is none."""
        return {name: tuple(_estimate(cell, metric) for cell in row) for name, row in self.cells.items()}


def _estimate(cell: CellSummary | None, metric: str) -> Estimate | None:
    return cell.known(metric) if cell else None


def same_load(groups: Mapping[int, Group], editions: int) -> SameLoad:
    """Return the cells of groups with one load, by edition; ``editions``: how many there are."""
    first = next(iter(groups.values()))
    cells: dict[str, list[CellSummary | None]] = {}
    for k, group in groups.items():
        for cell in group.cells:
            if cell.total:
                cells.setdefault(cell.name, [None] * editions)[k] = cell
    common = {name: tuple(row) for name, row in cells.items() if sum(one is not None for one in row) > 1}
    return SameLoad(first.workload, first.answer.metric or "ok_per_s", common)


def known(row: Iterable[CellSummary | None], metric: str) -> list[float]:
    """Return the means that a subject has, the oldest first."""
    return means(_estimate(one, metric) for one in row)


def change(row: Iterable[CellSummary | None], metric: str) -> float | None:
    """Return the last known mean of a subject over its first, less 1; None below two."""
    found = known(row, metric)
    return found[-1] / found[0] - 1 if len(found) > 1 and found[0] else None


@dataclass(frozen=True, slots=True)
class PartTrials:
    """The trials of a session's subjects, but for those that a later session of its archive repeated, with
    what judging them takes: the ids of its plan's cells in their order, what is known of the subjects, and
    whether those whose pace was not steady enter verdicts too.
    """

    figures: tuple[TrialFigures, ...]
    cell_ids: tuple[int, ...]
    subjects: Mapping[str, SubjectRecord]
    takes_unsteady: bool


@dataclass(frozen=True, slots=True)
class SessionPart:
    """One session: the ``archive`` that holds it (a name), when it began, its blocks, its groups and claims,
    judged within it alone.
    """

    archive: str
    """The file; empty within one archive."""
    started_unix_ns: int
    blocks: int
    groups: tuple[Group, ...] = field(metadata=INTERNAL)
    claims: tuple[tuple[Claim, ClaimResult], ...] = field(metadata=INTERNAL)
    versions: Mapping[str, str] = field(metadata=INTERNAL)
    """Of the servers, by subject."""
    trials: PartTrials = field(metadata=INTERNAL)
    """Of its subjects."""
    fingerprint: Fingerprint = field(metadata=INTERNAL)
    """Of its machine."""


@dataclass(frozen=True, slots=True)
class NumberedSession:
    """A session with its number, and that of its machine."""

    number: int
    part: SessionPart = field(metadata=INLINE)
    machine_number: int
    """Sessions on similar machines have the same."""


@dataclass(frozen=True, slots=True)
class LoadOver:
    """Subjects under one load over the sessions, in the metric that decides; ``place``: of the group in each
    session. ``group``: the cells over all sessions, each of which counts once. ``leaders``: of each session
    alone. ``bar``: a smaller difference is of no interest. ``same``: the cells of each session.
    """

    place: int = field(metadata=INTERNAL)
    group: Group = field(metadata=INTERNAL)
    metric: str
    rows: tuple[OverRow, ...]
    leaders: tuple[str | None, ...]
    """Of each session alone."""
    bar: float = field(metadata=INTERNAL)
    same: SameLoad = field(metadata=INTERNAL)

    @shown
    def load(self) -> Mapping[str, object]:
        """The workload without request and expectations."""
        return self.group.load

    @shown
    def answer(self) -> Answer:
        """The answer of the group over all sessions."""
        return self.group.answer

    @shown
    def metrics(self) -> Mapping[str, Mapping[str, tuple[Estimate | None, ...]]]:
        """For each metric that a page draws, by subject, the estimate of each session, or None."""
        return self.same.by_metric

    @property
    def leader_changes(self) -> bool:
        """Whether not all sessions have the same leader."""
        return len(set(self.leaders)) > 1


@dataclass(frozen=True, slots=True)
class ClaimOver:
    """A claim with its verdict in each session, and what all sessions together say of it (``over``)."""

    claim: Claim = field(metadata=INLINE)
    verdicts: tuple[ClaimVerdict, ...]
    """Of each session alone."""
    over: ClaimResult
    """What all sessions together say of it."""

    @shown
    def changes(self) -> bool:
        """Whether not all sessions say the same."""
        return len(set(self.verdicts)) > 1


@dataclass(frozen=True, slots=True)
class Sessions:
    """The sessions of one plan, in the order in which they began, and what they show together."""

    parts: tuple[SessionPart, ...] = field(metadata=INTERNAL)
    loads: tuple[LoadOver, ...]
    claims: tuple[ClaimOver, ...]

    @shown
    def sessions(self) -> tuple[NumberedSession, ...]:
        """The sessions, numbered from 1."""
        both = zip(self.parts, self.machines, strict=True)
        return tuple(NumberedSession(number, *one) for number, one in enumerate(both, 1))

    @shown_as("machines")
    def how_many_machines(self) -> int:
        """How many different machines the sessions were on; similar ones count as one."""
        return len(set(self.machines))

    @property
    def machines(self) -> tuple[int, ...]:
        """The machine of each session, numbered from 1 in the order in which they come up: similar ones
        count as the same.
        """
        keys = [machine_key(part.fingerprint) for part in self.parts]
        numbers = {key: number for number, key in enumerate(dict.fromkeys(keys), 1)}
        return tuple(numbers[key] for key in keys)

    @shown
    def versions(self) -> Mapping[str, tuple[str, ...]]:
        """The versions of those servers that are not the same in all sessions, by subject."""
        names = dict.fromkeys(name for part in self.parts for name in part.versions)
        found = {name: tuple(part.versions.get(name, "unknown") for part in self.parts) for name in names}
        return {name: versions for name, versions in found.items() if len(set(versions)) > 1}


def differences_of_plans(first: Plan, other: Plan) -> tuple[str, ...]:
    """Return in words what keeps two archives from being sessions of one plan; seeds and numbers of blocks
    may differ.
    """
    found = []
    if first.name != other.name:
        found.append(f"the study: `{first.name}`, and `{other.name}`")
    subjects = [{one.name for one in plan.subjects()} for plan in (first, other)]
    for only, which in ((subjects[0] - subjects[1], "first"), (subjects[1] - subjects[0], "other")):
        if only:
            found.append(f"subjects of the {which} alone: {', '.join(sorted(only))}")
    loads = [{_load(cell) for cell in plan.cells} for plan in (first, other)]
    for only, which in ((loads[0] - loads[1], "first"), (loads[1] - loads[0], "other")):
        if only:
            found.append(f"loads of the {which} alone: {', '.join(sorted(only))}")
    if not found and list(map(_unseeded, first.cells)) != list(map(_unseeded, other.cells)):
        found.append("a subject, a load or a limit within cells of the same names")
    if first.design.margin != other.design.margin:
        found.append(f"the margin: {100 * first.design.margin:g} %, and {100 * other.design.margin:g} %")
    return (*found, *_claims_that_differ(first, other))


def _claims_that_differ(first: Plan, other: Plan) -> Iterator[str]:
    names = [[claim.name for claim in plan.claims] for plan in (first, other)]
    for own, others, which in ((names[0], names[1], "first"), (names[1], names[0], "other")):
        if only := [name for name in own if name not in others]:
            yield f"claims of the {which} alone: {', '.join(only)}"
    pairs = zip(first.claims, other.claims, strict=False)
    if set(names[0]) == set(names[1]) and any(one != same for one, same in pairs):
        yield "what claims of the same names say, or their order"


def _load(cell: Cell) -> str:
    return f"{cell.describe_load()}, warm-up {format_duration(cell.workload.warmup_ns)}"


def _unseeded(cell: Cell) -> Cell:
    """Return a cell without what differs between two plans of another seed."""
    loop = cell.workload.loop
    same = replace(loop, seed=0) if isinstance(loop, OpenLoop) else loop
    return replace(cell, id=0, workload=replace(cell.workload, loop=same))


def over_sessions(
    parts: Sequence[SessionPart], groups: Sequence[Group], margin: float, over: Sequence[ClaimResult]
) -> Sessions:
    """Return sessions beside each other, in the order in which they began; their groups and claims are those
    of one plan, in its order. ``groups``: over all sessions, numbered as ``parts``; ``over``: what they say
    of each claim together.
    """
    loads = (
        _over(place, group, [part.groups[place] for part in parts], margin)
        for place, group in enumerate(groups)
    )
    claims = zip(over, *(part.claims for part in parts), strict=True)
    return Sessions(
        tuple(parts),
        tuple(one for one in loads if one is not None),
        tuple(
            ClaimOver(found[0][0], tuple(result.verdict for _, result in found), result)
            for result, *found in claims
        ),
    )


def _over(place: int, group: Group, parts: Sequence[Group], margin: float) -> LoadOver | None:
    metric = group.answer.metric
    if metric is None:
        return None
    terms = Terms(margin=margin)
    letters = next((one.letters for one in group.standings if one.metric == metric and one.letters), {})
    sessions = [_pairs(part, metric, terms) for part in parts]
    rows = over_rows(group.answer, group.cells, sessions, letters)
    leaders = tuple(part.answer.leader for part in parts)
    same = replace(same_load(dict(enumerate(parts)), len(parts)), metric=metric)
    return LoadOver(place, group, metric, rows, leaders, margin, same)


def _pairs(group: Group, metric: str, terms: Terms) -> Mapping[Pair, Comparison]:
    known = [cell for cell in group.cells if cell.unqualified is None and log_values(cell, metric)]
    return ranked_cells(known, metric, terms).pairs if known else {}
