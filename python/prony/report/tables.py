"""The tables of a study's report: one row per subject, failures by kind, latency of both populations."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from prony.core.metrics import METRICS, PERCENTILES, Better
from prony.core.units import Scale, bytes_scale, duration_scale
from prony.figures.answer import mean_of
from prony.figures.missing import Missing
from prony.figures.summary import CellSummary, Estimate, cell_trimmed_mean, means
from prony.model.limit import LimitKind
from prony.model.workload import CountStop, OpenLoop
from prony.reading.failures import FailedRequests, failed_by_class
from prony.reading.groups import Group
from prony.reading.study import StudyResults
from prony.report.document import Column, Entry, Footnotes, Table, Tone, headed
from prony.report.forms import (
    byte_size,
    count,
    estimate,
    in_scale,
    mean_alone,
    metric_scale,
    of_percent,
    percent,
)
from prony.report.text import EMPTY, Figure, Name, Quote, Text, counted, pointer, text
from prony.report.words import bound_sign, ending_words

_PLAIN = Scale(1, "")
_OF_ALL = metric_scale("machine_memory_ratio", ())
_THEN = ": its speed is not compared"
_SHOWN = ("mean", "p50", "p95", "p99", "max")
_BOTH = ("mean", "p50", "p90", "p95", "p99", "p999", "max")


@dataclass(frozen=True, slots=True)
class Place:
    """A cell, and where the report's JSON has it."""

    cell: CellSummary
    at: str

    def metric(self, name: str) -> str:
        """Return where the JSON has a metric of the cell."""
        return self.at + pointer("metrics", name)


def _means(cells: Iterable[Place], names: Iterable[str]) -> list[float]:
    wanted = tuple(names)
    return means(one.cell.seen(name) for one in cells for name in wanted)


def dash(reason: str, at: str, notes: Footnotes) -> Entry:
    """Return a dash with the reason for the missing figure. ``at``: where the report's JSON has it."""
    return Entry(notes.marked("—", text("{}", Quote(reason, at))), Tone.QUIET)


def figure_entry(value: Estimate | Missing, scale: Scale, at: str, notes: Footnotes) -> Entry:
    """Return an estimate, or a dash with its reason; ``at``: where the report's JSON has it."""
    if isinstance(value, Missing):
        return dash(value.reason, at + pointer("missing"), notes)
    return Entry(estimate(value, scale, at))


def void_entry(one: Place, name: str, scale: Scale, notes: Footnotes) -> Entry | None:
    """Return a figure of a cell that does not count, in brackets, with its reason; None where it has none."""
    void, at = one.cell.void, one.at + pointer("void")
    if void is None or name not in void.metrics:
        return None
    figure = mean_alone(void.metrics[name], scale, at + pointer("metrics", name))
    trials = counted(Figure(void.trials, count, at + pointer("trials")), "trial")
    why = text("void, in no verdict: {}; of {}", Quote(void.reason, at + pointer("reason")), trials)
    return Entry(notes.marked(text("({}{})", bound_sign(one.cell, name), figure), why), Tone.QUIET)


def _figure(one: Place, name: str, scale: Scale, notes: Footnotes, tone: Tone = Tone.PLAIN) -> Entry:
    cell, value = one.cell, one.cell.metrics[name]
    void = void_entry(one, name, scale, notes)
    if void is not None or isinstance(value, Missing):
        return void or figure_entry(value, scale, one.metric(name), notes)
    shown = text("{}{}", bound_sign(cell, name), estimate(value, scale, one.metric(name)))
    if value.count == cell.ok:
        return Entry(shown, tone)
    few = text(
        "of {} of its {} trials",
        Figure(value.count, count, one.metric(name) + pointer("count")),
        Figure(cell.ok, count, one.at + pointer("trials_ok")),
    )
    return Entry(notes.marked(shown, few), tone)


def ranked(cells: Sequence[CellSummary], metric: str | None, at: str) -> list[Place]:
    """Return the cells with trials, best first: by ``metric`` as answers rank, the unqualified after them,
    and last those whose figures are void.

    ``at``: where the report's JSON has their group.
    """
    every = [Place(cell, at + pointer("cells", k)) for k, cell in enumerate(cells)]
    ran = [one for one in every if one.cell.total]
    if metric is None:
        return ran
    sign = -1 if METRICS[metric].better is Better.HIGHER else 1

    def place(one: Place) -> tuple[bool, bool, float]:
        value = None if one.cell.void else mean_of(one.cell, metric)
        is_left_out = one.cell.unqualified is not None or value is None
        return is_left_out, value is None, sign * (value or 0.0)

    return sorted(ran, key=place)


def counted_entry(one: Place) -> Entry:
    """Return the number of trials that count, of all that ran."""
    ok = Figure(one.cell.ok, count, one.at + pointer("trials_ok"))
    total = Figure(one.cell.total, count, one.at + pointer("trials"))
    return Entry(text("{}/{}", ok, total), Tone.PLAIN if one.cell.ok == one.cell.total else Tone.WARNING)


def share_entry(one: Place, notes: Footnotes, name: str, then: str = "") -> Entry:
    """Return the share of requests of this name in per cent, marked where the cell is not qualified.
    ``then``: what that means.
    """
    cell, ratio = one.cell, getattr(one.cell, name)
    if ratio is None:
        return Entry(notes.marked("—", "no trial counts" if not cell.ok else "nothing was sent"), Tone.QUIET)
    figure = Figure(ratio, of_percent, one.at + pointer(name))
    if cell.unqualified is None:
        return Entry.of(figure)
    reason = Quote(cell.unqualified, one.at + pointer("unqualified_reason"))
    return Entry(notes.marked(figure, text(f"not qualified, {{}}{then}", reason)), Tone.WARNING)


Maker = Callable[[Place], Entry]


def _latency_columns(cells: Sequence[Place], kind: str, notes: Footnotes) -> list[tuple[Column, Maker]]:
    names = {suffix: f"{kind}_ok_{suffix}" for suffix in _SHOWN}
    scale = duration_scale(_means(cells, names.values()))
    # A closed loop measures latency at saturation, not the latency of users at a given load.
    group = f"{'response' if kind == 'response' else 'service'} time of valid replies, {scale.unit}"
    return [
        (Column(suffix, group), partial(_figure, name=name, scale=scale, notes=notes))
        for suffix, name in names.items()
    ]


def _resource_columns(cells: Sequence[Place], marks: "Marks", notes: Footnotes) -> list[tuple[Column, Maker]]:
    scale = bytes_scale(_means(cells, ("pss_end", "rss_peak")))
    group = f"CPU; memory, {scale.unit}"
    shown = [
        (Column("CPU %", group), "cpu_percent", _PLAIN),
        (Column("PSS", group), "pss_end", scale),
        (Column("RSS peak", group), "rss_peak", scale),
    ]
    if marks.machine_memory:
        shown.append((Column("of the machine's, %"), "machine_memory_ratio", _OF_ALL))
    return [(column, partial(_figure, name=name, scale=unit, notes=notes)) for column, name, unit in shown]


@dataclass(frozen=True, slots=True)
class Marks:
    """What the main table shows of its rows beside figures: the best, the letters, the ratios to the first.

    ``trimmed``: show also the mean without the highest and the lowest trial; ``machine_memory``: and how much
    of the machine's memory is in use.
    """

    best: tuple[str, ...] = ()
    letters: Mapping[str, str] = field(default_factory=dict)
    ratios: Mapping[str, Text] = field(default_factory=dict)
    trimmed: bool = False
    machine_memory: bool = False


def _trimmed(one: Place, name: str, scale: Scale, notes: Footnotes) -> Entry:
    value = cell_trimmed_mean(one.cell, name)
    if isinstance(value, Missing):
        return Entry(notes.marked("—", text("{}", Name(value.reason))), Tone.QUIET)
    figure = Figure(value, in_scale(scale), one.at + pointer("trimmed_mean", name))
    return Entry.of(figure, Tone.QUIET)


def _pace_columns(cells: Sequence[Place], marks: Marks, notes: Footnotes) -> list[tuple[Column, Maker]]:
    """Return the columns that decide in a closed loop: throughput, or the time of a request."""
    columns: list[tuple[Column, Maker]] = []
    if isinstance(cells[0].cell.cell.workload.stop, CountStop):
        each = duration_scale(_means(cells, ("duration_ns_per_request",)))
        shown = partial(_figure, name="duration_ns_per_request", scale=each, notes=notes, tone=Tone.STRONG)
        columns.append((Column(f"{each.unit}/request"), shown))
    pace = partial(_figure, name="ok_per_s", scale=_PLAIN, notes=notes, tone=Tone.STRONG)
    columns.append((Column("ok/s"), pace))
    if marks.trimmed:
        columns.append((Column("trimmed"), partial(_trimmed, name="ok_per_s", scale=_PLAIN, notes=notes)))
    return columns


def subjects_table(cells: Sequence[Place], marks: Marks, notes: Footnotes) -> Table:
    """Return the main table: one row for each of ``cells``, which share a workload."""
    opened = isinstance(cells[0].cell.cell.workload.loop, OpenLoop)
    makers: list[tuple[Column, Maker]] = [
        (Column("n"), counted_entry),
        (Column("success %"), partial(share_entry, notes=notes, name="success_ratio", then=_THEN)),
    ]
    if marks.letters:
        letters = marks.letters
        makers.append((Column("group", text=True), lambda one: Entry(letters.get(one.cell.name, ""))))
    if not opened:
        makers += _pace_columns(cells, marks, notes)
    if marks.ratios:
        ratios = marks.ratios
        makers.append(
            (Column("to the first", text=True), lambda one: Entry(ratios.get(one.cell.name, EMPTY)))
        )
    makers += _latency_columns(cells, "response" if opened else "service", notes)
    makers += _resource_columns(cells, marks, notes)
    rows = []
    for one in cells:
        tone = Tone.STRONG if one.cell.name in marks.best else Tone.PLAIN
        rows.append((Entry(_named(one.cell, notes), tone), *(make(one) for _, make in makers)))
    return Table((Column("subject", text=True), *(column for column, _ in makers)), tuple(rows))


_CLOSED = "its limit of requests in flight bound: a closed loop from then on"


def _named(cell: CellSummary, notes: Footnotes) -> Text:
    """Return the name of a cell, marked where its open loop did not stay one."""
    bounds = (trial.limited.kind for trial in cell.counted if trial.limited is not None)
    is_closed = LimitKind.IN_FLIGHT in bounds
    return notes.marked(Name(cell.name), _CLOSED) if is_closed else text("{}", Name(cell.name))


Labelled = tuple[Text, Place]


def failures_table(cells: Sequence[Labelled]) -> Table | None:
    """Return the failed requests by subject and kind, most first; None if there are none.

    Each cell comes with its load; a load that all share is not shown, nor requests that were carried in where
    none of these failed.
    """
    rows = [row for label, one in cells for row in _kinds(label, one)]
    if not rows:
        return None
    titles = ("subject", "under", "requests", "share", "carried in", "kind")
    columns = headed(*titles, words=("subject", "under", "kind"))
    carried = any(one.cell.account.carried_failed for _, one in cells)
    left_out = {1: len({str(label) for label, _ in cells}) == 1, 4: not carried}
    keep = [k for k in range(len(columns)) if not left_out.get(k)]
    return Table(tuple(columns[k] for k in keep), tuple(tuple(row[k] for k in keep) for row in rows))


def _kinds(label: Text, one: Place) -> Iterable[tuple[Entry, ...]]:
    for k, found in enumerate(failed_by_class(one.cell)):
        at = one.at + pointer("failed_requests", k)
        first = (Entry.of(Name(one.cell.name)), Entry(label)) if not k else (Entry(""), Entry(""))
        requests = text("{}", Figure(found.requests, count, at + pointer("requests")))
        share = text("{}", Figure(found.share, percent, at + pointer("share")))
        known = found.carried_in
        carried = "" if known is None else text("{}", Figure(known, count, at + pointer("carried_in")))
        yield *first, Entry(requests), Entry(share), Entry(carried), Entry(kind_words(found, at))


def kind_words(found: FailedRequests, at: str) -> Text:
    """Return how requests failed: by which kind, or by how many. ``at``: where the report's JSON has it."""
    if len(found.endings) == 1:
        return text("{}", Name(ending_words(found.endings[0])))
    return text("{} other kinds", Figure(len(found.endings), count, at + pointer("classes")))


def _bound(one: Place, suffix: str, entry: Entry) -> Entry:
    cell, percentile = one.cell, PERCENTILES.get(suffix, "100")
    bound = cell.censored_from is not None and (suffix == "mean" or float(percentile) > cell.censored_from)
    return Entry(text("≥ {}", entry.text), entry.tone) if bound else entry


def populations_table(cells: Sequence[Place], notes: Footnotes) -> Table | None:
    """Return latencies of valid replies and of all requests, for subjects with errors; None if there are
    none.
    """
    failing = [one for one in cells if one.cell.error_ratio]
    if not failing:
        return None
    kind = "response" if isinstance(cells[0].cell.cell.workload.loop, OpenLoop) else "service"
    typical = [f"{kind}_{of}_{suffix}" for of in ("ok", "all") for suffix in ("mean", "p50", "max")]
    scale = duration_scale(_means(failing, typical))
    rows = []
    for one in failing:
        ok = [_figure(one, f"{kind}_ok_{suffix}", scale, notes) for suffix in _BOTH]
        every = [_of_all(one, f"{kind}_all", suffix, scale, notes) for suffix in _BOTH]
        rows.append((Entry.of(Name(one.cell.name)), Entry("valid replies"), *ok))
        rows.append((Entry(""), Entry("all requests"), *every))
    group = f"{kind} time, {scale.unit}"
    labels = [Column({"p999": "p99.9"}.get(suffix, suffix), group) for suffix in _BOTH]
    return Table((Column("subject", text=True), Column("of", text=True), *labels), tuple(rows))


def _of_all(one: Place, prefix: str, suffix: str, scale: Scale, notes: Footnotes) -> Entry:
    name = f"{prefix}_{suffix}"
    entry = _figure(one, name, scale, notes)
    return entry if isinstance(one.cell.metrics[name], Missing) else _bound(one, suffix, entry)


def group_at(reading: StudyResults, group: Group) -> str:
    """Return the JSON pointer of a group."""
    return pointer("groups", reading.place(group))


def cell_at(reading: StudyResults, cell: CellSummary) -> str:
    """Return the JSON pointer of one of the plan's cells.

    *Errors*: StopIteration for a cell that is in no group.
    """
    places = (
        pointer("groups", k, "cells", number)
        for k, group in enumerate(reading.groups)
        for number, one in enumerate(group.cells)
        if one.cell.id == cell.cell.id
    )
    return next(places)


# --- the parts of a load: paths, groups of users, statuses of replies -------------------------------------


PARTS = ("requests", "share", "errors", "bodies")
"""The columns of `part_entries`."""


def part_entries(
    at: str, requests: int, share: float | None, errors: int, bodies: tuple[int | None, str]
) -> tuple[Entry, ...]:
    """Return what a part of a load has of it; ``bodies``: their bytes, and where the JSON has them, below
    ``at``.
    """
    received, place = bodies
    return (
        Entry.of(Figure(requests, count, at + pointer("requests"))),
        Entry("—" if share is None else text("{}", Figure(share, percent, at + pointer("share")))),
        Entry.of(Figure(errors, count, at + pointer("errors")), Tone.BAD if errors else Tone.PLAIN),
        Entry("—" if received is None else text("{}", Figure(received, byte_size, at + place))),
    )


_STATUSES = {"none": "no whole reply", "others": "other statuses"}


def status_entry(status: str) -> Entry:
    """Return a status as tables name it."""
    return Entry.of(Name(_STATUSES.get(status, status)))
