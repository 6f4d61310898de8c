"""What was measured in several stretches, side by side: the sessions of one plan, from one archive or from
several, or archives of different plans.

What differs between sessions (the weather of a machine, its neighbours, its updates) is not in an interval
within one. Between archives of different plans day, machine and versions may differ at once: their cells are
shown beside each other, and not judged.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import accumulate, pairwise

from prony.core.units import DAY_NS, format_duration
from prony.figures.across_sessions import OverRow, over_rows
from prony.figures.answer import Answer, log_values, ranked_cells
from prony.figures.claim_parts import ClaimResult, ClaimVerdict
from prony.figures.drift import comparable, machine_key
from prony.figures.statistics.all_pairs import Pair
from prony.figures.statistics.compare import Comparison, Terms
from prony.figures.summary import CellSummary, Estimate, TrialFigures, means
from prony.model.facts import Fingerprint
from prony.model.json_codec import INLINE
from prony.model.plan import Cell, Claim, Plan
from prony.model.shown import INTERNAL, shown, shown_as
from prony.model.trial import Run, SubjectRecord, TrialRecord
from prony.model.workload import ClosedLoop, OpenLoop
from prony.reading.groups import Group


def stretches(runs: Sequence[Run]) -> Mapping[int, int]:
    """Return the stretch that each run belongs to, by the run's id: one begins with the first run, and with
    each on another machine, or begun on another day (UTC), than the run before.
    """
    begins = (False, *(_is_other(before, run) for before, run in pairwise(runs)))
    return dict(zip((run.id for run in runs), accumulate(map(int, begins)), strict=False))


def _is_other(before: Run, run: Run) -> bool:
    days = {one.started_unix_ns // DAY_NS for one in (before, run)}
    return len(days) > 1 or bool(comparable(before.fingerprint, run.fingerprint))


def session_of(record: TrialRecord, plan: Plan, stretch: Mapping[int, int]) -> int:
    """Return the number of a trial's session, in their order: the stretch of runs on one machine and day
    times the planned sessions, and which of these it is. A study of a length of time may have more blocks
    than were planned.
    """
    sessions = max(1, plan.design.sessions)
    planned = min(sessions - 1, record.trial.block // plan.session_blocks)
    return stretch.get(record.run_id, 0) * sessions + planned


class SideKind(StrEnum):
    """What is put side by side: sessions of one plan, which are judged together, or archives."""

    SESSION = "session"
    ARCHIVE = "archive"


@dataclass(frozen=True, slots=True)
class Side:
    """A session, or all of an archive. ``groups`` and ``claims`` are judged within it alone; ``trials``:
    those of its subjects, but for those that a later session of its archive repeated; ``takes_unsteady``:
    whether subjects whose pace was not steady enter verdicts too.
    """

    archive: str
    """The file; empty within one archive."""
    started_unix_ns: int
    prony_version: str | None
    """With which Prony it was measured; null without a run."""
    blocks: int
    plan: Plan = field(metadata=INTERNAL)
    subjects: Mapping[str, SubjectRecord] = field(metadata=INTERNAL)
    groups: tuple[Group, ...] = field(metadata=INTERNAL)
    claims: tuple[tuple[Claim, ClaimResult], ...] = field(metadata=INTERNAL)
    trials: tuple[TrialFigures, ...] = field(metadata=INTERNAL)
    fingerprint: Fingerprint = field(metadata=INTERNAL)
    takes_unsteady: bool = field(metadata=INTERNAL)
    number: int = 0
    """From 1, the oldest first."""
    machine_number: int = 0
    """Sides on similar machines have the same."""

    @shown
    def versions(self) -> Mapping[str, str | None]:
        """The version of each subject's server; null where it is not known."""
        return {name: record.server_version for name, record in self.subjects.items()}


_BESIDE = ("ok_per_s", "error_ratio", "cpu_ns_per_request", "pss_end")


@dataclass(frozen=True, slots=True)
class LoadOver:
    """Subjects under one load on several sides, in the metric that decides. ``cells``: by subject, one for
    each side, None where that has none. ``group``: of sessions, the cells over all of them, each of which
    counts once; of archives that of the first. ``bar``: a smaller difference is of no interest.
    """

    metric: str
    """What decides."""
    group: Group = field(metadata=INTERNAL)
    cells: Mapping[str, tuple[CellSummary | None, ...]] = field(metadata=INTERNAL)
    answer: Answer | None = None
    """Of the group over all sessions; null of archives, as all that follows is empty."""
    rows: tuple[OverRow, ...] = ()
    """The subjects over the sessions, the first one first."""
    leaders: tuple[str | None, ...] = ()
    """Of each session alone."""
    bar: float = field(default=0.0, metadata=INTERNAL)

    @shown
    def load(self) -> Mapping[str, object]:
        """The workload without request and expectations."""
        return self.group.load

    @shown_as("metrics")
    def by_metric(self) -> Mapping[str, Mapping[str, tuple[Estimate | None, ...]]]:
        """For each metric that a page draws, by subject, the estimate of each side, or null."""
        return {metric: self.figures(metric) for metric in self.metrics}

    @shown
    def last_to_first(self) -> Mapping[str, float | None]:
        """By subject, the last known mean in the deciding metric over the first, less 1; null below two."""
        found = {name: means(row) for name, row in self.figures(self.metric).items()}
        return {
            name: row[-1] / row[0] - 1 if len(row) > 1 and row[0] else None for name, row in found.items()
        }

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that are shown of it: the deciding one first, then tail, rate, errors and cost."""
        tail = "service_ok_p99" if isinstance(self.group.workload.loop, ClosedLoop) else "response_ok_p99"
        return tuple(dict.fromkeys((self.metric, tail, *_BESIDE)))

    def figures(self, metric: str) -> Mapping[str, tuple[Estimate | None, ...]]:
        """Return each subject's estimates, one for each side; None where there is none."""
        return {
            name: tuple(None if cell is None else cell.known(metric) for cell in row)
            for name, row in self.cells.items()
        }


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
class Across:
    """Sessions of one plan, or archives of different plans, and what they show together."""

    kind: SideKind
    """`session`: of one plan, judged together; `archive`: of different plans, beside each other."""
    title: str
    """Of the plan; empty where there are several."""
    sides: tuple[Side, ...]
    """In the order in which they began."""
    loads: tuple[LoadOver, ...]
    """Those that at least two sides have."""
    claims: tuple[ClaimOver, ...] = ()
    """Of one plan."""

    @shown
    def machines(self) -> int:
        """How many different machines the sides were on; similar ones count as one."""
        return max(side.machine_number for side in self.sides)

    @shown
    def versions(self) -> Mapping[str, tuple[str, ...]]:
        """The versions of those servers of which some sides have different ones, by subject."""
        names = dict.fromkeys(name for one in self.loads for name in one.cells)
        found = {name: [side.versions.get(name) for side in self.sides] for name in names}
        return {
            name: tuple(one or "unknown" for one in versions)
            for name, versions in found.items()
            if len({one for one in versions if one}) > 1
        }


def in_their_order(sides: Iterable[Side]) -> tuple[Side, ...]:
    """Return sides with their numbers, the oldest first, and those of their machines."""
    found = sorted(sides, key=lambda one: one.started_unix_ns)
    keys = [machine_key(one.fingerprint) for one in found]
    known = list(dict.fromkeys(keys))
    return tuple(
        replace(one, number=k + 1, machine_number=known.index(keys[k]) + 1) for k, one in enumerate(found)
    )


def over_archives(sides: Iterable[Side]) -> Across:
    """Return what archives have in common. Cells are the same if loop, streams, end and generator of their
    load are, and their subject's name.
    """
    found: dict[object, dict[int, Group]] = {}
    numbered = in_their_order(sides)
    for k, side in enumerate(numbered):
        for group in (one for one in side.groups if any(cell.total for cell in one.cells)):
            load = group.workload.loop, group.workload.streams, group.workload.stop, group.asks
            found.setdefault((load, group.engine.name, group.of_generators), {})[k] = group
    loads = (_beside(groups, len(numbered)) for groups in found.values())
    return Across(SideKind.ARCHIVE, "", numbered, tuple(one for one in loads if one.cells))


def _beside(groups: Mapping[int, Group], sides: int) -> LoadOver:
    first = next(iter(groups.values()))
    return LoadOver(first.answer.metric or "ok_per_s", first, _cells(groups, sides))


def _cells(groups: Mapping[int, Group], sides: int) -> dict[str, tuple[CellSummary | None, ...]]:
    """Return the cells that two sides have, by subject, from the group of each side."""
    found: dict[str, list[CellSummary | None]] = {}
    for k, group in groups.items():
        for cell in group.cells:
            if cell.total:
                found.setdefault(cell.name, [None] * sides)[k] = cell
    return {name: tuple(row) for name, row in found.items() if sum(one is not None for one in row) > 1}


def over_sessions(
    plan: Plan, sides: Sequence[Side], groups: Sequence[Group], over: Sequence[ClaimResult]
) -> Across:
    """Return sessions beside each other, in the order in which they began. ``groups``: of the plan over all
    of them; ``over``: what they say of each claim together.
    """
    loads = (
        _over(group, [side.groups[place] for side in sides], Terms(margin=plan.design.margin))
        for place, group in enumerate(groups)
        if group.answer.metric is not None
    )
    claims = (
        ClaimOver(claim, tuple(side.claims[k][1].verdict for side in sides), result)
        for k, (claim, result) in enumerate(zip(plan.claims, over, strict=True))
    )
    return Across(SideKind.SESSION, plan.title or plan.name, tuple(sides), tuple(loads), tuple(claims))


def _over(group: Group, parts: Sequence[Group], terms: Terms) -> LoadOver:
    answer, metric = group.answer, group.answer.metric or ""
    letters = next((one.letters for one in group.standings if one.metric == metric and one.letters), {})
    return LoadOver(
        metric=metric,
        group=group,
        cells=_cells(dict(enumerate(parts)), len(parts)),
        answer=answer,
        rows=over_rows(answer, group.cells, [_pairs(part, metric, terms) for part in parts], letters),
        leaders=tuple(part.answer.leader for part in parts),
        bar=terms.margin,
    )


def _pairs(group: Group, metric: str, terms: Terms) -> Mapping[Pair, Comparison]:
    known = [cell for cell in group.cells if cell.unqualified is None and log_values(cell, metric)]
    return ranked_cells(known, metric, terms).pairs if known else {}


# --- whether archives are sessions of one plan ------------------------------------------------------------


def differences_of_plans(first: Plan, other: Plan) -> tuple[str, ...]:
    """Return in words what keeps two archives from being sessions of one plan; seeds and numbers of blocks
    may differ.
    """
    plans = first, other
    found = [f"the study: `{first.name}`, and `{other.name}`"] if first.name != other.name else []
    found += _of_one_alone("subjects", [[one.name for one in plan.subjects()] for plan in plans])
    found += _of_one_alone("loads", [list(dict.fromkeys(map(_load, plan.cells))) for plan in plans])
    if not found and list(map(_unseeded, first.cells)) != list(map(_unseeded, other.cells)):
        found.append("a subject, a load or a limit within cells of the same names")
    if first.design.margin != other.design.margin:
        found.append(f"the margin: {100 * first.design.margin:g} %, and {100 * other.design.margin:g} %")
    claims = list(_of_one_alone("claims", [[one.name for one in plan.claims] for plan in plans]))
    if not claims and first.claims != other.claims:
        claims = ["what claims of the same names say, or their order"]
    return (*found, *claims)


def _of_one_alone(what: str, names: Sequence[Sequence[str]]) -> Iterator[str]:
    for own, others, which in ((*names, "first"), (*reversed(names), "other")):
        if only := [name for name in own if name not in others]:
            yield f"{what} of the {which} alone: {', '.join(only)}"


def _load(cell: Cell) -> str:
    return f"{cell.describe_load()}, warm-up {format_duration(cell.workload.warmup_ns)}"


def _unseeded(cell: Cell) -> Cell:
    """Return a cell without what differs between two plans of another seed."""
    loop = cell.workload.loop
    same = replace(loop, seed=0) if isinstance(loop, OpenLoop) else loop
    return replace(cell, id=0, workload=replace(cell.workload, loop=same))
