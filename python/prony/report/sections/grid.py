"""One metric against the load: a table for each metric, where a study has many loads.

Where each subject saturates: the knee of its throughput over connections or rates.
"""

from collections.abc import Collection, Iterator, Sequence

from prony.core.metrics import METRICS, Unit
from prony.core.units import Scale
from prony.figures.missing import Missing
from prony.figures.summary import CellSummary, means
from prony.model.workload import ClosedLoop, OpenLoop
from prony.reading.groups import Group, load_size
from prony.reading.saturation import LEAST_LOADS, Curve, Point, Saturation
from prony.reading.study import StudyResults
from prony.report.document import Block, Column, Entry, Footnotes, Paragraph, Section, Table, Tone
from prony.report.forms import estimate, in_metric, load_number, metric_scale, of_percent
from prony.report.tables import Place, cell_at, figure_entry, group_at, void_entry
from prony.report.text import Figure, Name, Text, pointer, text
from prony.report.words import bound_sign, heading

_NOTE = Paragraph(
    "All figures of every load: --json, or --csv DIR. In bold: the best under a load, and those "
    "not separated from it.",
    Tone.QUIET,
)
_CLOSED = ("ok_per_s", "service_ok_mean", "service_ok_p99", "error_ratio", "cpu_percent", "pss_end")
_OPEN = ("success_ratio", "response_ok_p50", "response_ok_p99", "cpu_percent", "pss_end")


def detailed(reading: StudyResults) -> tuple[Group, ...]:
    """Return the groups that get a table of their own: those outside of grids, and those of a grid that
    verdicts were planned for.
    """
    gridded = [group for curve in reading.curves for group in curve.groups]
    if not gridded:
        return reading.measured
    primary = [group for group in reading.groups if group.primary]
    few = primary if len(primary) < LEAST_LOADS else []
    return tuple(group for group in reading.measured if group in few or group not in gridded)


def grid(reading: StudyResults) -> Iterator[Section]:
    """Yield a table for each metric, over the loads that differ in one quantity only."""
    for curve in reading.curves:
        names = _OPEN if isinstance(curve.groups[0].workload.loop, OpenLoop) else _CLOSED
        yield Section("", (_NOTE,))
        sections = (_section(reading, curve.groups, name) for name in names)
        yield from (section for section in sections if section is not None)


def over_words(group: Group) -> str:
    """Return the quantity in which the loads of a family differ."""
    return "connections" if isinstance(group.workload.loop, ClosedLoop) else "requests a second"


def load_figure(reading: StudyResults, group: Group) -> Text:
    """Return this load's value of the quantity in which its family differs."""
    name = "connections" if isinstance(group.workload.loop, ClosedLoop) else "rate_per_s"
    at = group_at(reading, group) + pointer("load", "loop", name)
    return text("{}", Figure(load_size(group), load_number, at))


def _section(reading: StudyResults, groups: Sequence[Group], name: str) -> Section | None:
    metric, notes = METRICS[name], Footnotes()
    subjects = tuple(dict.fromkeys(cell.name for group in groups for cell in group.cells))
    by_load = [{cell.name: cell for cell in group.cells} for group in groups]
    values = [cell.seen(name) for cells in by_load for cell in cells.values()]
    scale = metric_scale(name, means(values))
    best = [_best(group, name) for group in groups]
    rows = []
    for subject in subjects:
        entries = [
            _figure(reading, cells.get(subject), name, scale, notes, _tone(subject, first))
            for cells, first in zip(by_load, best, strict=True)
        ]
        rows.append((Entry.of(Name(subject)), *entries))
    if not means(values):
        return None
    what = over_words(groups[0])
    columns = (
        Column("subject", text=True),
        *(Column(load_figure(reading, group), what) for group in groups),
    )
    blocks: tuple[Block, ...] = (Table(columns, tuple(rows)), notes.notes())
    title = heading(metric.title)
    return Section(f"{title}{', ' + scale.unit if scale.unit else ''}, against {what}", blocks)


def _tone(subject: str, first: Collection[str]) -> Tone:
    return Tone.STRONG if subject in first else Tone.PLAIN


def _best(group: Group, name: str) -> tuple[str, ...]:
    return next((one.best for one in group.standings if one.metric == name and one.decided), ())


def _figure(  # noqa: PLR0913, PLR0917 - a table's cell
    reading: StudyResults, cell: CellSummary | None, name: str, scale: Scale, notes: Footnotes, tone: Tone
) -> Entry:
    if cell is None:
        return Entry(notes.marked("—", "not measured under this load"), Tone.QUIET)
    one = Place(cell, cell_at(reading, cell))
    value, at = cell.metrics[name], one.metric(name)
    void = void_entry(one, name, scale, notes)
    if void is not None or isinstance(value, Missing):
        return void or figure_entry(value, scale, at, notes)
    words = text("{}{}", bound_sign(cell, name), estimate(value, scale, at))
    if METRICS[name].unit is Unit.RATIO:
        words = text("{}", Figure(value.mean, of_percent, at + pointer("mean")))
    speed = METRICS[name].unit in (Unit.RATE, Unit.DURATION)
    if speed and cell.unqualified:
        words = notes.marked(words, "not qualified: its speed is not compared")
    return Entry(words, tone)


_MEANING = Paragraph(
    text(
        "Knee: the smallest load with at least {} of the subject's highest throughput; in brackets "
        "a smaller load that may be the knee.",
        Name("95 %"),
    ),
    Tone.QUIET,
)


def saturations(reading: StudyResults) -> Iterator[Section]:
    """Yield a table for the loads that differ in one quantity only, where they make a curve."""
    for k, curve in enumerate(reading.curves):
        if curve.subjects:
            heading = f"Saturation, over {over_words(curve.groups[0])}"
            yield Section(heading, (_table(curve, pointer("curves", k)), _MEANING))


def _table(curve: Curve, at: str) -> Table:
    titles = ("knee", "throughput there", "p99 there", "highest throughput", "at")
    rows = tuple(
        _row(curve, name, found, at + pointer("subjects", name)) for name, found in curve.subjects.items()
    )
    return Table((Column("subject", text=True), *(Column(title) for title in titles)), rows)


def _row(curve: Curve, name: str, found: Saturation, at: str) -> tuple[Entry, ...]:
    knee, highest = at + pointer("knee"), at + pointer("highest")
    tail = Entry("—")
    if found.knee.latency_ns is not None:
        latency = Figure(found.knee.latency_ns, in_metric(curve.latency), knee + pointer("latency_ns"))
        tail = Entry.of(latency)
    return (
        Entry.of(Name(name)),
        _knee(found, at),
        Entry.of(_speed(found.knee, knee)),
        tail,
        Entry.of(_speed(found.highest, highest)),
        Entry.of(_load(found.highest, highest)),
    )


def _speed(point: Point, at: str) -> Figure:
    return Figure(point.throughput, in_metric("ok_per_s"), at + pointer("throughput"))


def _load(point: Point, at: str) -> Figure:
    return Figure(point.load, load_number, at + pointer("load"))


def _knee(found: Saturation, at: str) -> Entry:
    knee = _load(found.knee, at + pointer("knee"))
    if not found.saturated:
        return Entry(text("not up to {}", knee), Tone.QUIET)
    if found.earliest.load < found.knee.load:
        earliest = _load(found.earliest, at + pointer("earliest"))
        return Entry(text("{} ({})", knee, earliest), Tone.STRONG)
    return Entry.of(knee, Tone.STRONG)
