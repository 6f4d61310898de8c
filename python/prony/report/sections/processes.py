"""What the processes of each subject held: how many of each role, memory of each and in all."""

from collections.abc import Iterator, Mapping, Sequence

from prony.analysis.missing import Missing
from prony.analysis.resources import LEAST_UNSAMPLED_PERCENT
from prony.analysis.summary import CellSummary, Estimate
from prony.model import CountStop
from prony.reading.study import Reading
from prony.report.document import Cell, Column, Footnotes, Section, Table, Tone
from prony.report.words import group_words
from prony.units import Scale, bytes_scale, format_in

__all__ = ["processes"]

_PLAIN = Scale(1, "")
_UNSAMPLED = "cpu_unsampled_percent"
_WHY_UNSAMPLED = (
    "CPU of processes that lived between two samples, and of others after their last: it is counted for all "
    "together, and no sample says whose it was"
)
_EACH = {"rss_per_process": "RSS", "pss_per_process": "PSS", "vsz_per_process": "VSZ"}
_ALL = {"rss_peak": "RSS peak", "pss_end": "PSS", "vsz_peak": "VSZ peak"}
_Metrics = Mapping[str, Estimate | Missing]


def processes(reading: Reading) -> Iterator[Section]:
    """Yield the processes under each load that verdicts were planned for, where there are several roles."""
    for group in reading.groups:
        cells = [cell for cell in group.cells if cell.ok and cell.roles]
        several = any(len(cell.roles) > 1 or _has_unsampled(cell) for cell in cells)
        if (
            cells
            and group.primary
            and not group.of_generators
            and (several or isinstance(group.workload.stop, CountStop))
        ):
            where = f", {group_words(group)}" if len(reading.groups) > 1 else ""
            yield _section(f"Processes by role{where}", cells)


def _section(heading: str, cells: Sequence[CellSummary]) -> Section:
    notes = Footnotes()
    scale = _scale(cells)
    rows = tuple(row for cell in cells for row in _rows(cell, scale, notes))
    each, every = f"each at the end, {scale.unit}", f"together, {scale.unit}"
    columns = (
        *(Column("subject", text=True), Column("role", text=True), Column("most"), Column("CPU %")),
        *(Column(title, each) for title in _EACH.values()),
        *(Column(title, every) for title in _ALL.values()),
    )
    return Section(heading, (Table(columns, rows), notes.notes()))


def _rows(cell: CellSummary, scale: Scale, notes: Footnotes) -> Iterator[tuple[Cell, ...]]:
    named: dict[str, _Metrics] = dict(cell.roles)
    if len(named) > 1 or _has_unsampled(cell):
        named["in all"] = cell.metrics
    for number, (role, metrics) in enumerate(named.items()):
        if role == "in all" and _has_unsampled(cell):
            yield _unsampled(cell, notes)
        subject = Cell(cell.name if not number else "")
        figures = [_figure(metrics, name, _PLAIN, notes) for name in ("processes_max", "cpu_percent")]
        # The mean over master, workers and frontend is of nothing.
        each = [Cell("") if role == "in all" else _figure(metrics, name, scale, notes) for name in _EACH]
        every = [_figure(metrics, name, scale, notes) for name in _ALL]
        yield subject, Cell(role), *figures, *each, *every


def _has_unsampled(cell: CellSummary) -> bool:
    value = cell.metrics[_UNSAMPLED]
    return isinstance(value, Estimate) and value.mean >= LEAST_UNSAMPLED_PERCENT


def _unsampled(cell: CellSummary, notes: Footnotes) -> tuple[Cell, ...]:
    """Return the row of what no sample shows, which makes the roles add up."""
    cpu = _figure(cell.metrics, _UNSAMPLED, _PLAIN, notes).text + notes.mark(_WHY_UNSAMPLED)
    return Cell(""), Cell("between samples"), Cell(""), Cell(cpu), *(Cell("") for _ in (*_EACH, *_ALL))


def _scale(cells: Sequence[CellSummary]) -> Scale:
    found = [metrics.get("rss_per_process") for cell in cells for metrics in cell.roles.values()]
    return bytes_scale(value.mean for value in found if isinstance(value, Estimate))


def _figure(metrics: _Metrics, name: str, scale: Scale, notes: Footnotes) -> Cell:
    value = metrics.get(name, Missing("not measured by role"))
    if isinstance(value, Missing):
        return Cell(f"—{notes.mark(value.reason)}", Tone.QUIET)
    half = None if name == "processes_max" else value.half_width
    text = f"{value.max:g}" if name == "processes_max" else format_in(value.mean, scale, half)
    return Cell(text)
