"""Generators as what is measured: what each makes of one server, and what it takes."""

from collections.abc import Iterator, Mapping, Sequence

from prony.analysis.missing import Missing
from prony.analysis.summary import CellSummary, Estimate
from prony.model import CountStop, DurationStop
from prony.reading.study import Group
from prony.report.document import Block, Cell, Column, Footnotes, Notes, Paragraph, Section, Table, Tone
from prony.report.scales import metric_scale
from prony.report.sections.winners import alike_note, deciding
from prony.report.tables import ranked
from prony.units import Scale, format_in, format_percent

__all__ = ["generator_heading", "generator_section"]

_COLUMNS = {
    "ok_per_s": "ok/s",
    "generator_cpu_percent": "CPU %",
    "generator_cpu_ns_per_request": "CPU/request, {unit}",
    "generator_memory_ratio": "memory %",
    "generator_rss_mean": "RSS, {unit}",
    "service_ok_p50": "p50, {unit}",
    "service_ok_p99": "p99, {unit}",
}
_LEAD = (
    "One server, and each generator with threads (or processes) × connections in all. CPU and memory are the "
    "generator's own; service times are as it counts them."
)


def generator_heading(group: Group) -> str:
    """Return what all generators of a group have in common."""
    match group.workload.stop:
        case DurationStop(duration_ns):
            stop = f"{duration_ns / 1e9:g} s"
        case CountStop(requests):
            stop = f"{requests:,} requests"
    return f"Generators against {group.cells[0].cell.subject.name}, {stop}"


def generator_section(group: Group) -> Section:
    """Return one row for each generator; what it does not measure is a dash with its reason."""
    cells = ranked(group.cells, group.answer.metric)
    if not any(cell.ok for cell in cells):
        return Section(generator_heading(group), (Paragraph("No trial counts.", Tone.BAD),))
    notes, standing = Footnotes(), deciding(group)
    letters = (standing.letters if standing else None) or {}
    best = {group.answer.leader, *group.answer.ties}
    scales = {name: metric_scale(name, _means(cells, name)) for name in _COLUMNS}
    titles = [Column(title.format(unit=scales[name].unit)) for name, title in _COLUMNS.items()]
    columns = (
        *(Column("generator", text=True), Column("n"), Column("errors %"), Column("alike", text=True)),
        *titles,
    )
    rows = tuple(
        (
            Cell(cell.name, Tone.STRONG if cell.name in best else Tone.PLAIN),
            Cell(f"{cell.ok}/{cell.total}", Tone.PLAIN if cell.ok == cell.total else Tone.WARNING),
            _errors(cell, notes),
            Cell(letters.get(cell.name, "")),
            *(_figure(cell, name, notes, scales) for name in _COLUMNS),
        )
        for cell in cells
    )
    remarks = [text for text in (alike_note(group), *_caveats(cells)) if text]
    blocks: tuple[Block, ...] = (
        *(Paragraph(_LEAD, Tone.QUIET), Table(columns, rows), notes.notes()),
        Notes(tuple(("", text) for text in remarks)),
    )
    return Section(generator_heading(group), blocks)


def _means(cells: Sequence[CellSummary], name: str) -> list[float]:
    found = [cell.metrics[name] for cell in cells]
    return [value.mean for value in found if isinstance(value, Estimate)]


def _errors(cell: CellSummary, notes: Footnotes) -> Cell:
    if cell.error_ratio is None:
        return Cell(f"—{notes.mark('no trial counts' if not cell.ok else 'nothing was sent')}", Tone.QUIET)
    text = format_percent(cell.error_ratio).removesuffix(" %")
    mark = notes.mark(f"not qualified, {cell.unqualified}") if cell.unqualified else ""
    return Cell(text + mark, Tone.WARNING if mark else Tone.PLAIN)


def _figure(cell: CellSummary, name: str, notes: Footnotes, scales: Mapping[str, Scale]) -> Cell:
    value = cell.metrics[name]
    if isinstance(value, Missing):
        return Cell(f"—{notes.mark(value.reason)}", Tone.QUIET)
    return Cell(format_in(value.mean, scales[name], value.half_width))


def _caveats(cells: Sequence[CellSummary]) -> Iterator[str]:
    """Yield what each generator does in its own way, a sentence for each generator."""
    told: dict[str, dict[str, None]] = {}
    for cell in cells:
        own = told.setdefault(cell.cell.engine.name, {})
        for trial in cell.counted:
            own |= dict.fromkeys(trial.engine.caveats if trial.engine else ())
    for name, texts in told.items():
        if texts:
            first, *more = texts
            yield "; ".join([first, *(text.removeprefix(f"{name} ") for text in more)]) + "."
