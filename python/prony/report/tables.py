"""The tables of a study's report: one row per subject, failures by kind, latency of both populations."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from prony.analysis.answer import geometric_mean
from prony.analysis.displayed import cell_trimmed_mean
from prony.analysis.missing import Missing
from prony.analysis.summary import CellSummary, Estimate
from prony.metrics import METRICS, PERCENTILES, Better
from prony.model import CountStop, OpenLoop
from prony.report.document import Cell, Column, Footnotes, Table, Tone
from prony.report.words import class_words
from prony.units import Scale, bytes_scale, duration_scale, format_count, format_in, format_percent

__all__ = ["Marks", "failures_table", "populations_table", "ranked", "subjects_table"]

_PLAIN = Scale(1, "")
_SHOWN = ("mean", "p50", "p95", "p99", "max")
_MOST_KINDS = 3
_BOTH = ("mean", "p50", "p90", "p95", "p99", "p999", "max")


def _means(cells: Iterable[CellSummary], names: Iterable[str]) -> list[float]:
    wanted = tuple(names)
    found = [cell.metrics[name] for cell in cells for name in wanted]
    return [value.mean for value in found if isinstance(value, Estimate)]


def _figure(cell: CellSummary, name: str, scale: Scale, notes: Footnotes, tone: Tone = Tone.PLAIN) -> Cell:
    value = cell.metrics[name]
    if isinstance(value, Missing):
        return Cell(f"—{notes.mark(value.reason)}", Tone.QUIET)
    few = notes.mark(f"of {value.count} of its {cell.ok} trials") if value.count < cell.ok else ""
    return Cell(format_in(value.mean, scale, value.half_width) + few, tone)


def ranked(cells: Sequence[CellSummary], metric: str | None) -> list[CellSummary]:
    """Return the cells with trials, best first: by ``metric`` as answers rank, the unqualified after them."""
    ran = [cell for cell in cells if cell.total]
    if metric is None:
        return ran
    sign = -1 if METRICS[metric].better is Better.HIGHER else 1

    def place(cell: CellSummary) -> tuple[bool, float]:
        value = geometric_mean(cell, metric)
        return cell.unqualified is not None or value is None, sign * (value or 0.0)

    return sorted(ran, key=place)


def _count(cell: CellSummary) -> Cell:
    return Cell(f"{cell.ok}/{cell.total}", Tone.PLAIN if cell.ok == cell.total else Tone.WARNING)


def _success(cell: CellSummary, notes: Footnotes) -> Cell:
    if cell.error_ratio is None:
        return Cell(f"—{notes.mark('no trial counts' if not cell.ok else 'nothing was sent')}", Tone.QUIET)
    # The number carries no unit: the column does.
    text = format_percent(1 - cell.error_ratio).removesuffix(" %")
    if cell.unqualified is None:
        return Cell(text)
    mark = notes.mark(f"not qualified, {cell.unqualified}: its speed enters no comparison")
    return Cell(text + mark, Tone.WARNING)


Maker = Callable[[CellSummary], Cell]


def _latency_columns(cells: Sequence[CellSummary], kind: str, notes: Footnotes) -> list[tuple[Column, Maker]]:
    names = {suffix: f"{kind}_ok_{suffix}" for suffix in _SHOWN}
    scale = duration_scale(_means(cells, names.values()))
    # A closed loop's latency is the server's at saturation: it must not read as what users of a given load
    # get.
    group = f"{'response' if kind == 'response' else 'service'} time of valid replies, {scale.unit}"
    return [
        (Column(suffix, group), partial(_figure, name=name, scale=scale, notes=notes))
        for suffix, name in names.items()
    ]


def _resource_columns(cells: Sequence[CellSummary], notes: Footnotes) -> list[tuple[Column, Maker]]:
    scale = bytes_scale(_means(cells, ("pss_end", "rss_peak")))
    group = f"CPU; memory, {scale.unit}"
    shown = (
        (Column("CPU %", group), "cpu_percent", _PLAIN),
        (Column("PSS", group), "pss_end", scale),
        (Column("RSS peak", group), "rss_peak", scale),
    )
    return [(column, partial(_figure, name=name, scale=unit, notes=notes)) for column, name, unit in shown]


@dataclass(frozen=True, slots=True)
class Marks:
    """What the main table says of its rows beside figures: who is best, who shares which letters.

    ``trimmed``: show the mean without the highest and the lowest trial too.
    """

    best: tuple[str, ...] = ()
    letters: Mapping[str, str] = field(default_factory=dict)
    trimmed: bool = False


def _trimmed(cell: CellSummary, name: str, scale: Scale, notes: Footnotes) -> Cell:
    value = cell_trimmed_mean(cell, name)
    if isinstance(value, Missing):
        return Cell(f"—{notes.mark(value.reason)}", Tone.QUIET)
    return Cell(format_in(value, scale), Tone.QUIET)


def _letters(cell: CellSummary, marks: Marks) -> Cell:
    return Cell(marks.letters.get(cell.name, ""))


def _pace_columns(cells: Sequence[CellSummary], marks: Marks, notes: Footnotes) -> list[tuple[Column, Maker]]:
    """Return the columns of what a closed loop decides: throughput, or the time that a request takes."""
    name, scale, title = "ok_per_s", _PLAIN, "ok/s"
    columns: list[tuple[Column, Maker]] = []
    if isinstance(cells[0].cell.workload.stop, CountStop):
        each = duration_scale(_means(cells, ("duration_ns_per_request",)))
        shown = partial(_figure, name="duration_ns_per_request", scale=each, notes=notes, tone=Tone.STRONG)
        columns.append((Column(f"{each.unit}/request"), shown))
    columns.append((Column(title), partial(_figure, name=name, scale=scale, notes=notes, tone=Tone.STRONG)))
    if marks.trimmed:
        columns.append((Column("trimmed"), partial(_trimmed, name=name, scale=scale, notes=notes)))
    return columns


def subjects_table(cells: Sequence[CellSummary], marks: Marks, notes: Footnotes) -> Table:
    """Return the main table: one row for each of ``cells``, which share a workload."""
    opened = isinstance(cells[0].cell.workload.loop, OpenLoop)
    makers: list[tuple[Column, Maker]] = [
        (Column("n"), _count),
        (Column("success %"), partial(_success, notes=notes)),
    ]
    if marks.letters:
        makers.append((Column("alike", text=True), partial(_letters, marks=marks)))
    if not opened:
        makers += _pace_columns(cells, marks, notes)
    makers += _latency_columns(cells, "response" if opened else "service", notes)
    makers += _resource_columns(cells, notes)
    rows = []
    for cell in cells:
        name = cell.name
        title = Cell(name, Tone.STRONG if name in marks.best else Tone.PLAIN)
        rows.append((title, *(make(cell) for _, make in makers)))
    return Table((Column("subject", text=True), *(column for column, _ in makers)), tuple(rows))


Labelled = tuple[str, CellSummary]


def failures_table(cells: Sequence[Labelled]) -> Table | None:
    """Return the failed requests by subject and kind, most first; null if there are none.

    Each cell comes with its load; one that all share is not shown.
    """
    rows = [row for label, cell in cells for row in _kinds(label, cell)]
    if not rows:
        return None
    columns = (
        *(Column("subject", text=True), Column("under", text=True)),
        *(Column("requests"), Column("share"), Column("kind", text=True)),
    )
    keep = [k for k in range(len(columns)) if k != 1 or len({label for label, _ in cells}) > 1]
    return Table(tuple(columns[k] for k in keep), tuple(tuple(row[k] for k in keep) for row in rows))


def _kinds(label: str, cell: CellSummary) -> Iterable[tuple[Cell, ...]]:
    scheduled = cell.account.get("scheduled", 0)
    found = [(count, name) for name, count in cell.account.items() if name not in ("scheduled", "ok")]
    kinds = sorted(found, key=lambda kind: (-kind[0], kind[1]))
    shown = [(count, class_words(name)) for count, name in kinds]
    if len(shown) > _MOST_KINDS + 1:
        rest = shown[_MOST_KINDS:]
        shown = [*shown[:_MOST_KINDS], (sum(count for count, _ in rest), f"{len(rest)} other kinds")]
    for index, (count, words) in enumerate(shown):
        names = (Cell(cell.name), Cell(label)) if not index else (Cell(""), Cell(""))
        yield *names, Cell(format_count(count)), Cell(format_percent(count / scheduled)), Cell(words)


def _bound(cell: CellSummary, suffix: str, text: Cell) -> Cell:
    percentile = PERCENTILES.get(suffix, "100")
    bound = cell.censored_from is not None and (suffix == "mean" or float(percentile) > cell.censored_from)
    return Cell(f"≥ {text.text}", text.tone) if bound and not text.text.startswith("—") else text


def populations_table(cells: Sequence[CellSummary], notes: Footnotes) -> Table | None:
    """Return latencies of valid replies and of all requests, for subjects with errors; null if there are
    none.
    """
    failing = [cell for cell in cells if cell.error_ratio]
    if not failing:
        return None
    kind = "response" if isinstance(cells[0].cell.workload.loop, OpenLoop) else "service"
    typical = [f"{kind}_{of}_{suffix}" for of in ("ok", "all") for suffix in ("mean", "p50", "max")]
    scale = duration_scale(_means(failing, typical))
    group = f"{kind} time, {scale.unit}"
    rows = []
    for cell in failing:
        ok = [_figure(cell, f"{kind}_ok_{suffix}", scale, notes) for suffix in _BOTH]
        every = [
            _bound(cell, suffix, _figure(cell, f"{kind}_all_{suffix}", scale, notes)) for suffix in _BOTH
        ]
        rows.append((Cell(cell.name), Cell("valid replies"), *ok))
        rows.append((Cell(""), Cell("all requests"), *every))
    labels = [Column({"p999": "p99.9"}.get(suffix, suffix), group) for suffix in _BOTH]
    return Table((Column("subject", text=True), Column("of", text=True), *labels), tuple(rows))
