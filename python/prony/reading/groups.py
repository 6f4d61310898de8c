"""The cells of a study that may be compared, and the best of them: a group for each load, generator and
sandbox.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from prony.core.metrics import METRICS, Better
from prony.diagnosis.conclusion import Diagnosis, Frequent
from prony.diagnosis.uneven_work import ALIKE, unequal_work
from prony.figures.account import QUALIFIED_ERROR_RATIO
from prony.figures.answer import OF_GENERATORS, Answer, answer, block_logs
from prony.figures.by_session import in_sessions
from prony.figures.drift import Stall, stalled
from prony.figures.rounds import Levels, apart, levels
from prony.figures.standings import GENERATOR_MEASURES, MEASURES, Standing, standings
from prony.figures.statistics.compare import Terms
from prony.figures.statistics.power import Sight, sight
from prony.figures.statistics.spending import Look
from prony.figures.summary import (
    CellSummary,
    TrialFigures,
    as_of_generator,
    judged_sessions,
    summarise_cell,
    without_unsteady,
)
from prony.model.exchange import Check, Request
from prony.model.plan import Cell, Plan
from prony.model.sandbox import SandboxChoice
from prony.model.shown import INTERNAL, json_of, shown, shown_as
from prony.model.workload import ClosedLoop, EngineChoice, OpenLoop, Workload
from prony.plan.factors import shared_sandbox
from prony.reading.cells import MeasuredCell, shown_paths
from prony.reading.failures import FailureTest, failure_tests


@dataclass(frozen=True, slots=True)
class Group:
    """The cells that share a load, generator and sandbox (but for limits that are factors), and the best of
    them. ``workload`` is that of the first: requests and expectations belong to the apps, and may differ
    between cells.
    """

    workload: Workload = field(metadata=INTERNAL)
    engine: EngineChoice
    """The generator that its cells share."""
    sandbox: SandboxChoice
    """The sandbox that they share."""
    cells: tuple[CellSummary, ...] = field(metadata=INTERNAL)
    answer: Answer
    """The best of them."""
    standings: tuple[Standing, ...]
    """The best in each measure."""
    primary: bool
    """The load that verdicts were planned for; others are a screening."""
    of_generators: bool
    """One server under several generators, which are compared under the same load, whatever their threads."""
    failures: tuple[FailureTest, ...]
    """Whether a subject's trials fail more often than those of the one that fails least."""
    power: Sight | None = None
    """What difference in the answer's metric these blocks could find; null without a verdict."""
    levels: Levels | None = None
    """How throughput scatters between starts of a server and within one; null without rounds of short windows
    that all its subjects share.
    """
    stalls: Mapping[str, Stall] = field(default_factory=dict)
    """The subjects of which single trials were far worse in that metric than the others."""
    asks: str | None = None
    """What the requests ask for, such as `GET /cart`, where another load differs in nothing else."""
    diagnoses: Mapping[int, Diagnosis] = field(default_factory=dict, metadata=INTERNAL)
    """What limits its subjects, by the ids of cells."""

    @shown
    def load(self) -> Mapping[str, object]:
        """The workload without request and expectations, which belong to the app."""
        return without_request(self.workload)

    @shown_as("cells")
    def measured_cells(self) -> tuple[MeasuredCell, ...]:
        """Its cells, with all that is known of them."""
        kept = shown_paths(self.cells) if self.workload.mix else frozenset()
        return tuple(MeasuredCell(one, self.diagnoses.get(one.cell.id), kept) for one in self.cells)

    @shown
    def most_per_s(self) -> float | None:
        """How many requests a second the connections of a closed loop make at most on a server that waits
        before each reply; None where it does not, or that is not known.
        """
        return self.cells[0].most_per_s


def without_request(workload: Workload) -> dict[str, object]:
    """Return a load as JSON has it: its request and what is expected of replies belong to the app."""
    return {key: value for key, value in json_of(workload).items() if key not in ("request", "expect")}


def groups_of(
    plan: Plan,
    trials: Sequence[TrialFigures],
    agreed: Terms | None = None,
    *,
    takes_unsteady: bool = False,
) -> tuple[Group, ...]:
    """Return the plan's cells in groups, with the ``trials`` of its subjects. ``agreed``: the rules for
    comparisons, None for those of `agreed_terms`; ``takes_unsteady``: those whose pace was not steady enter
    verdicts too.
    """
    compares_generators = _compares_generators(plan)
    alike: dict[object, list[CellSummary]] = {}
    for cell in plan.cells:
        load = _load(cell.workload)
        users = (load.connection_requests, load.connection_age_ns, load.follow, load.groups)
        whole = (load.loop, load.streams, load.stop, load.mix, users)
        kind: object = whole if compares_generators else (load, cell.engine)
        kept = cell.workload.request.keep_alive
        name = generator_name(cell) if compares_generators else None
        found = summarise_cell(cell, trials, name, allowed_errors(plan), plan.design.margin)
        found = found if takes_unsteady else without_unsteady(found)
        own = as_of_generator(found) if compares_generators else found
        alike.setdefault((kind, kept, shared_sandbox(cell)), []).append(own)
    agreed = agreed or agreed_terms(plan, trials)
    return tuple(
        replace(_group(plan, cells, agreed), asks=asks)
        for found in alike.values()
        for asks, cells in _by_request(found)
    )


def agreed_terms(plan: Plan, trials: Sequence[TrialFigures]) -> Terms:
    """Return the rules for comparisons of a study with these ``trials`` of its subjects. Where they are of
    several sessions, these are counted, and no look at blocks was planned.
    """
    found = terms(plan, len({trial.block for trial in trials}))
    return replace(found, by_session=True, look=None) if len(judged_sessions(trials)) > 1 else found


def _by_request(cells: Sequence[CellSummary]) -> Iterator[tuple[str | None, list[CellSummary]]]:
    """Yield cells of one load, and what they ask for where several loads differ in that alone: each subject
    has a cell in each of these, in the same order.
    """
    found: list[dict[str, CellSummary]] = []
    for cell in cells:
        own = next((one for one in found if cell.name not in one), None)
        if own is None:
            found.append(own := {})
        own[cell.name] = cell
    for one in found:
        asked = {cell.cell.workload.describe_request() for cell in one.values()}
        yield (asked.pop() if len(found) > 1 and len(asked) == 1 else None), list(one.values())


def allowed_errors(plan: Plan) -> float:
    """Return the largest error ratio with which a plan compares speed: what was asked for, else the usual."""
    asked = plan.design.allow_errors
    return QUALIFIED_ERROR_RATIO if asked is None else asked


def _load(workload: Workload) -> Workload:
    """Return the load without the app's requests and expectations: two apps answer with different bodies.

    Kept connections are a load of their own too: the caller separates these.
    """
    return replace(workload.expecting(Check()), request=Request())


def _compares_generators(plan: Plan) -> bool:
    return len(plan.subjects()) == 1 and len({cell.engine.name for cell in plan.cells}) > 1


def generator_name(cell: Cell) -> str:
    """Return a generator with its threads and its load, such as ``wrk 2 × 80``."""
    match cell.workload.loop:
        case ClosedLoop(connections):
            load = f"{connections}"
        case OpenLoop(rate_per_s):
            load = f"{rate_per_s:g}/s"
    if cell.workload.streams > 1:
        load = f"{load} × {cell.workload.streams}"
    return f"{cell.engine.name} {cell.engine.threads} × {load}"


def _group(plan: Plan, found: Sequence[CellSummary], of_study: Terms) -> Group:
    # One whose speed is not compared takes no blocks from the others.
    over = [cell for cell in found if not cell.unqualified]
    cells = in_sessions(found, over) if of_study.by_session else found
    first = cells[0].cell
    of_generators = _compares_generators(plan)
    primary = first.is_under(plan.design.primary)
    agreed = replace(of_study, screens=not primary)
    best = answer(cells, agreed, OF_GENERATORS if of_generators else ())
    return Group(
        workload=first.workload,
        engine=first.engine,
        sandbox=shared_sandbox(first),
        cells=tuple(cells),
        answer=best,
        standings=standings(cells, agreed, GENERATOR_MEASURES if of_generators else MEASURES),
        primary=primary,
        of_generators=of_generators,
        failures=failure_tests(cells),
        power=_power(best, agreed),
        levels=_levels(over),
        stalls=dict(_stalls(cells, best.metric)),
    )


def _levels(cells: Sequence[CellSummary]) -> Levels | None:
    """Return the two levels of scatter of cells with a closed loop: the pace of an open one is given."""
    each = [{trial.block: trial.by_round for trial in cell.counted if trial.by_round} for cell in cells]
    if not each or not isinstance(cells[0].cell.workload.loop, ClosedLoop):
        return None
    found = levels([[one[block] for one in each] for block in sorted(set.intersection(*map(set, each)))])
    beside = {
        cell.name: [one.beside_window for one in cell.counted if one.beside_window is not None]
        for cell in cells
    }
    named, within = apart(beside)
    return found and replace(found, apart=named, agree_within=within)


def _stalls(cells: Sequence[CellSummary], metric: str | None) -> Iterator[tuple[str, Stall]]:
    """Yield by subject the trials that stalled."""
    if metric is None:
        return
    is_higher_better = METRICS[metric].better is Better.HIGHER
    figures = {cell.name: block_logs(cell, metric) for cell in cells}
    found = [stalled(logs, is_higher_better=is_higher_better) for logs in figures.values()]
    shared = _of_most([one.blocks if one else () for one in found])
    for name, logs in figures.items():
        own = {block: value for block, value in logs.items() if block not in shared}
        if one := stalled(own, is_higher_better=is_higher_better):
            yield name, one


def _of_most(found: Sequence[Collection[int]]) -> set[int]:
    """Return the blocks in which most of several subjects stalled: the machine did, so pairs are as ever."""
    counts = Counter(block for blocks in found for block in blocks)
    return {block for block, count in counts.items() if len(found) > 1 and count > len(found) / 2}


def _power(found: Answer, agreed: Terms) -> Sight | None:
    """Return what the blocks could find, by the intervals that they gave."""
    known = list(found.comparisons.values()) if found.decided else []
    return sight(known, found.blocks, agreed.margin)


def terms(plan: Plan, blocks: int) -> Terms:
    """Return the rules for comparisons after ``blocks``, fixed before the run."""
    precision = plan.design.precision
    look = Look(blocks, precision.looks) if precision else None
    return Terms(margin=plan.design.margin, look=look)


# --- loads that differ in one quantity --------------------------------------------------------------------


def load_size(group: Group) -> float:
    """Return the size of a load, in which its family differs: connections, or requests per second."""
    match group.workload.loop:
        case ClosedLoop(connections):
            return connections
        case OpenLoop(rate_per_s):
            return rate_per_s


def families(groups: Iterable[Group]) -> list[list[Group]]:
    """Return the groups that share subjects, and all but the number of connections or the rate; the lightest
    load first.
    """
    alike: dict[object, list[Group]] = {}
    for group in (one for one in groups if not one.of_generators):
        load, kept = group.workload, group.workload.request.keep_alive
        limits = (load.connection_requests, load.connection_age_ns, load.follow, load.groups)
        own = (type(load.loop), load.streams, load.stop, load.mix, kept, limits, group.asks)
        same = (group.engine, group.sandbox, *own)
        alike.setdefault(same, []).append(group)
    return [sorted(linked, key=load_size) for groups in alike.values() for linked in _linked(groups)]


def _linked(groups: Iterable[Group]) -> list[list[Group]]:
    """Return the groups in lists of which no two have a subject in common."""
    found: list[list[Group]] = []
    for group in groups:
        near = [one for one in found if _subjects((group,)) & _subjects(one)]
        found = [one for one in found if one not in near] + [[*(two for one in near for two in one), group]]
    return found


def _subjects(groups: Iterable[Group]) -> set[str]:
    return {cell.name for group in groups for cell in group.cells}


@dataclass(frozen=True, slots=True)
class Replies:
    """How large the replies of a cell are, on average."""

    cell: CellSummary
    mean_bytes: float


@dataclass(frozen=True, slots=True)
class UnequalReplies:
    """The smallest and the largest replies of cells that are compared."""

    smallest: Replies
    largest: Replies


# D32 of the causes: a note of the report for each load, and beside the limit of each subject.
def unequal_replies(cells: Iterable[CellSummary]) -> UnequalReplies | None:
    """Return the two of them that differ most; None where none is more than a tenth larger than another."""
    sizes = _sizes(cells)
    if not sizes:
        return None
    ordered = sorted(sizes, key=lambda one: (one.mean_bytes, one.cell.name))
    smallest, largest = ordered[0], ordered[-1]
    return UnequalReplies(smallest, largest) if largest.mean_bytes > ALIKE * smallest.mean_bytes else None


def with_unequal_work(groups: Iterable[Group], diagnoses: Mapping[int, Diagnosis]) -> dict[int, Diagnosis]:
    """Return the diagnoses, by the id of a cell, of which those of unequal work say so beside the limit."""
    found = dict(diagnoses)
    for group in groups:
        sizes = [] if group.of_generators else _sizes(group.cells)
        for one in sizes:
            others = {other.cell.name: other.mean_bytes for other in sizes if other is not one}
            number, finding = one.cell.cell.id, unequal_work(one.mean_bytes, others)
            if finding is not None and number in found:
                known = found[number]
                beside = (*known.beside, Frequent(finding, known.trials))
                found[number] = replace(known, beside=beside)
    return found


def _sizes(cells: Iterable[CellSummary]) -> list[Replies]:
    return [Replies(cell, found.mean) for cell in cells if (found := cell.known("reply_bytes"))]
