"""The answer in short, as values: the subjects under the one load that matters most, ranked, with what is
known to limit each.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from prony.core.metrics import METRICS, Better
from prony.diagnosis.kinds import Symptom
from prony.figures.answer import OF_GENERATORS, Answer, deciding_metrics, mean_of
from prony.figures.missing import Missing
from prony.figures.standings import Standing
from prony.figures.statistics.compare import HIDDEN, Comparison, few_sessions
from prony.figures.summary import CellSummary, Estimate, Estimated, Void, means
from prony.model.json_codec import INLINE, at
from prony.model.shown import INTERNAL, shown_as
from prony.model.subject import is_yours
from prony.model.workload import OpenLoop
from prony.reading.findings import SharedFinding
from prony.reading.groups import Group, load_size
from prony.reading.limits import Alike, alike_diagnoses
from prony.reading.study import StudyResults


def is_of_the_bench(kind: Symptom) -> bool:
    """Return whether a finding is about the generator or the machine, and not about a subject."""
    return kind.is_of_generator or kind.traits.of_machine


@dataclass(frozen=True, slots=True)
class Measures:
    """The metrics of a short answer: ``primary`` decides. ``latency`` is null where it is the primary."""

    primary: str
    latency: str | None
    cpu: str
    memory: str


@dataclass(frozen=True, slots=True)
class Ratio:
    """A subject's primary metric over the best one's; the interval at 1 - ``level`` is that of verdicts."""

    value: float
    low: float | None
    high: float | None
    level: float
    least: float | None = None
    """`least` and `most`: the range of single sessions, null where there is one."""
    most: float | None = None

    @property
    def ends(self) -> tuple[tuple[str, float], tuple[str, float]] | None:
        """The interval, or of too few sessions their range, by the names of its ends; None without both."""
        if self.low is not None and self.high is not None:
            return ("low", self.low), ("high", self.high)
        if self.least is not None and self.most is not None:
            return ("least", self.least), ("most", self.most)
        return None


@dataclass(frozen=True, slots=True)
class RowCounts:
    """A subject of the short answer: how its trials and requests ended."""

    name: str
    trials_ok: int
    trials: int
    qualified: bool
    at_least: bool
    error_ratio: float | None
    void: Void | None
    """As of its cell."""


@dataclass(frozen=True, slots=True)
class RowFigures:
    """The figures of a subject in the short answer, in its metrics."""

    primary: Estimated
    latency: Estimated | None
    cpu: Estimated
    memory: Estimated


@dataclass(frozen=True, slots=True)
class Ranked:
    """A subject under the main load."""

    place: int = field(metadata=at("cell"))
    """Among the cells of its group."""
    cell: CellSummary = field(metadata=INTERNAL)
    ratio: Ratio | None
    """Null for the best, and for what is not compared."""
    letters: str
    """Two that share one are not separated; empty without a verdict."""
    best: bool
    """It leads, or is not separated from what leads."""
    measures: Measures = field(metadata=INTERNAL)
    open: bool = False
    """`best` is all that is known, for the generator was its limit."""
    first: bool = False
    """Ratios are to it."""

    @shown_as("")
    def counts(self) -> RowCounts:
        """Return how its trials and requests ended."""
        cell = self.cell
        is_qualified = cell.unqualified is None
        counts = (cell.name, cell.ok, cell.total, is_qualified, cell.at_least, cell.error_ratio)
        return RowCounts(*counts, cell.void)

    @shown_as("")
    def figures(self) -> RowFigures:
        """Return its figures."""
        said = self.measures
        latency = None if said.latency is None else self.value(said.latency)
        return RowFigures(self.value(said.primary), latency, self.value(said.cpu), self.value(said.memory))

    def value(self, metric: str) -> Estimate | Missing:
        """Return one of its figures."""
        return self.cell.metrics[metric]


@dataclass(frozen=True, slots=True)
class Ahead:
    """A subject with a better figure than the leader's that is not ranked, and the ``reason``."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Other loads with the same answer: their ``groups``, as places in the results, and who leads."""

    groups: tuple[int, ...]
    leader: str | None
    ties: int
    """How many are not separated from the leader."""
    decided: bool
    reason: str | None
    alone: bool = False
    """Nobody was left to compare the leader with."""
    others_ran: bool = True
    """Though others have trials."""
    stalled: bool = False
    """Single trials of the leader were far worse than its others."""
    ahead: tuple[Ahead, ...] = ()
    """Those left out that have better figures."""


@dataclass(frozen=True, slots=True)
class Otherwise:
    """Another ``metric`` that separates those that share the first place: the ``best`` of them, the
    ``letters`` of all, and the largest figure of them over the least (``times``).
    """

    metric: str
    best: tuple[str, ...]
    letters: Mapping[str, str]
    times: float


@dataclass(frozen=True, slots=True)
class Brief:
    """The short answer."""

    place: int = field(metadata=at("group"))
    """The place of the main load in `groups`: of those planned for verdicts the one under which most subjects
    qualify, and of these the heaviest.
    """
    group: Group = field(metadata=INTERNAL)
    measures: Measures = field(metadata=at("metrics"))
    """The metrics of its figures."""
    rows: tuple[Ranked, ...] = field(metadata=at("subjects"))
    """Best first, those that do not qualify last."""
    beside: Otherwise | None
    """Another measure that separates more of those that share the first place."""
    elsewhere: tuple[Elsewhere, ...]
    """Other loads with one answer."""
    diagnoses: tuple[Alike, ...] = field(metadata=INTERNAL)
    """What limits the subjects of these rows, those that are alike together."""
    limits: tuple[tuple[int, SharedFinding], ...] = field(metadata=INTERNAL)
    """The other findings about them. Those of the best come first."""

    @shown_as("")
    def answer(self) -> Answer:
        """Return the answer of its group."""
        return self.group.answer

    @shown_as("limits")
    def limiting(self) -> tuple[int, ...]:
        """Places in `shared_findings`: what limits these subjects, the best one's first."""
        return tuple(place for place, _ in self.limits)


@dataclass(frozen=True, slots=True)
class StudyReport:
    """The report of a study: the short answer, and all of what was read."""

    answer: Brief | None
    """The short report; null for a search, whose answer is `found_rates`."""
    reading: StudyResults = field(metadata=INLINE)


def brief_of(reading: StudyResults) -> Brief | None:
    """Return the short answer of a study; None for a plan without cells.

    *Definition*: the main load is one that verdicts were planned for; of several, the one under which most
    subjects qualify, and of these the heaviest.
    """
    if not reading.measured:
        return None
    group = max(reading.measured, key=_weight)
    rows = tuple(_rows(group))
    diagnoses = alike_diagnoses(reading, group, [row.place for row in rows if row.cell.ok])
    return Brief(
        place=reading.place(group),
        group=group,
        measures=_measures(group),
        rows=rows,
        beside=_beside(group),
        elsewhere=_elsewhere(reading, group),
        diagnoses=diagnoses,
        limits=_limits(reading, [row.cell.cell.subject.name for row in rows], diagnoses),
    )


# Of these one is said where the answer leaves a tie: what a request costs separates servers soonest.
_BESIDE = ("CPU/request", "mean latency")


def _beside(group: Group) -> Otherwise | None:
    """Return the first other measure that separates some of those that share the first place from its best of
    them.
    """
    tied = {group.answer.first, *group.answer.ties} if group.answer.ties else set()
    beside = {one.measure: one for one in group.standings if one.letters}
    shown = (_otherwise(group, beside[name], tied) for name in _BESIDE if name in beside)
    return next((one for one in shown if one is not None), None)


def _otherwise(group: Group, found: Standing, tied: Collection[str | None]) -> Otherwise | None:
    marks, metric = found.letters or {}, found.metric
    names = [name for name in found.ranked if name in tied]
    best = tuple(name for name in names if set(marks[name]) & set(marks[names[0]]))
    known = means(cell.metrics[metric] for cell in group.cells if metric and cell.name in names)
    if metric is None or len(best) == len(names) or min(known) <= 0:
        return None
    return Otherwise(metric, best, marks, max(known) / min(known))


def _weight(group: Group) -> tuple[bool, int, float]:
    qualified = sum(cell.ok > 0 and cell.unqualified is None for cell in group.cells)
    return group.primary, qualified, load_size(group)


def _measures(group: Group) -> Measures:
    first = group.cells[0].cell
    choices = OF_GENERATORS if group.of_generators else deciding_metrics(first)
    primary = group.answer.metric or choices[0]
    kind = "response" if isinstance(first.workload.loop, OpenLoop) else "service"
    latency = f"{kind}_ok_p99"
    own = group.of_generators
    return Measures(
        primary=primary,
        latency=None if primary == latency else latency,
        cpu="generator_cpu_ns_per_request" if own else "cpu_ns_per_request",
        memory="generator_rss_mean" if own else "pss_end",
    )


# --- the table --------------------------------------------------------------------------------------------


def _rows(group: Group) -> Iterator[Ranked]:
    found = group.answer
    of_metric = (one for one in group.standings if one.metric == found.metric)
    letters, measures = next((one.letters for one in of_metric if one.letters), {}), _measures(group)
    best = {found.leader, *found.ties} if len(group.cells) > 1 and found.decided else {found.leader}
    for place, cell in _ranked(group):
        compared = found.comparisons.get(cell.name)
        limited = compared is not None and compared.verdict in HIDDEN
        own = (letters or {}).get(cell.name, "")
        yield Ranked(
            *(place, cell, _ratio(compared), own, cell.name in best, measures, limited),
            first=cell.name == found.first,
        )


def _ranked(group: Group) -> list[tuple[int, CellSummary]]:
    """Return the cells with trials: what runs today, then the others as the answer ranks them, then those
    that it leaves out, best first, and last those whose figures are void.
    """
    found = group.answer
    order = [name for name in (found.first, *found.comparisons) if name is not None]
    metric = _measures(group).primary
    sign = -1 if METRICS[metric].better is Better.HIGHER else 1

    def rank(one: tuple[int, CellSummary]) -> tuple[bool, int, bool, float]:
        _, cell = one
        value = None if cell.void else mean_of(cell, metric)
        own = order.index(cell.name) if cell.name in order else len(order)
        return not is_yours(cell.cell.subject.server), own, value is None, sign * (value or 0.0)

    return sorted(((k, cell) for k, cell in enumerate(group.cells) if cell.total), key=rank)


def _ratio(found: Comparison | None) -> Ratio | None:
    if found is None or found.effect is None:
        return None
    ends = (found.low, found.high, found.least, found.most)
    low, high, least, most = (None if bound is None else 1 + bound for bound in ends)
    return Ratio(1 + found.effect, low, high, found.level, least, most)


# --- beside it --------------------------------------------------------------------------------------------


def _elsewhere(reading: StudyResults, main: Group) -> tuple[Elsewhere, ...]:
    together: dict[Elsewhere, list[int]] = {}
    for group in reading.measured:
        if group is not main:
            together.setdefault(_answered(group), []).append(reading.place(group))
    return tuple(replace(one, groups=tuple(places)) for one, places in together.items())


def _answered(group: Group) -> Elsewhere:
    """Return the answer of a group, without its place."""
    found = group.answer
    return Elsewhere(
        groups=(),
        leader=found.leader,
        ties=len(found.ties),
        decided=found.decided,
        reason=found.reason,
        alone=found.alone,
        others_ran=sum(cell.total > 0 for cell in group.cells) > 1,
        stalled=found.leader in group.stalls,
        ahead=tuple(_ahead(group)),
    )


def _ahead(group: Group) -> Iterator[Ahead]:
    """Yield who is not ranked, and would lead by its figure, the best first."""
    found = group.answer
    if found.metric is None:
        return
    sign = -1 if METRICS[found.metric].better is Better.HIGHER else 1
    figures = {cell.name: mean_of(cell, found.metric) for cell in group.cells}
    known = {name: sign * value for name, value in figures.items() if value}
    lead = known.get(found.leader or "")
    for cell in sorted(group.cells, key=lambda cell: known.get(cell.name, 0.0)):
        is_ranked = cell.name == found.leader or cell.name in found.comparisons
        if lead is not None and not is_ranked and known.get(cell.name, lead) < lead:
            yield Ahead(cell.name, cell.unqualified or _too_few(cell))


def _too_few(cell: CellSummary) -> str:
    """Return that a cell has too few units for a verdict."""
    if cell.by_session is not None:
        return few_sessions(len(cell.units))
    return f"only {len(cell.by_block)} of its trials count"


def _limits(
    reading: StudyResults, ranked: Sequence[str], diagnoses: Iterable[Alike]
) -> tuple[tuple[int, SharedFinding], ...]:
    named = {one.diagnoses[0].cause_kind: set(one.subjects) for one in diagnoses}
    own = [
        (place, one)
        for place, one in enumerate(reading.shared_findings)
        if not is_of_the_bench(one.finding.kind)
        and set(one.subjects) & set(ranked) - named.get(one.finding.kind, set())
    ]
    return tuple(sorted(own, key=lambda pair: min(map(ranked.index, set(pair[1].subjects) & set(ranked)))))
