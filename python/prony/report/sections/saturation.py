"""Where each subject saturates: the knee of its throughput over connections or rates."""

from collections.abc import Iterator, Sequence

from prony.analysis.knee import Saturation, points, saturation
from prony.analysis.missing import Missing
from prony.metrics import format_metric
from prony.model import ClosedLoop
from prony.reading.study import Group, Reading
from prony.report.document import Cell, Column, Paragraph, Section, Table, Tone
from prony.report.sections.grid import LEAST_LOADS, families

__all__ = ["saturations"]

_MEANING = Paragraph(
    "Knee: the least load with at least 95 % of the subject's highest throughput; in brackets a smaller one "
    "that may be it.",
    Tone.QUIET,
)


def saturations(reading: Reading) -> Iterator[Section]:
    """Yield a table for the loads that differ in one thing only, where they make a curve."""
    for groups in families(reading):
        if len(groups) < LEAST_LOADS:
            continue
        rows = [row for name in _names(groups) if (row := _row(groups, name)) is not None]
        if rows:
            yield Section(f"Saturation, over {_what(groups)}", (_table(groups, rows), _MEANING))


def _names(groups: Sequence[Group]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(cell.name for group in groups for cell in group.cells))


def _is_closed(groups: Sequence[Group]) -> bool:
    return isinstance(groups[0].workload.loop, ClosedLoop)


def _what(groups: Sequence[Group]) -> str:
    return "connections" if _is_closed(groups) else "requests a second"


def _latency(groups: Sequence[Group]) -> str:
    return "service_ok_p99" if _is_closed(groups) else "response_ok_p99"


def _table(groups: Sequence[Group], rows: Sequence[tuple[Cell, ...]]) -> Table:
    titles = ("knee", "throughput there", "p99 there", "highest throughput", "at")
    return Table((Column("subject", text=True), *(Column(title) for title in titles)), tuple(rows))


def _row(groups: Sequence[Group], name: str) -> tuple[Cell, ...] | None:
    latency = _latency(groups)
    curve = points([cell for group in groups for cell in group.cells if cell.name == name], latency)
    found = saturation(curve)
    if isinstance(found, Missing):
        return None
    tail = "—" if found.knee.latency_ns is None else format_metric(latency, found.knee.latency_ns)
    speeds = [format_metric("ok_per_s", point.throughput) for point in (found.knee, found.highest)]
    return (
        Cell(name),
        _knee(found),
        Cell(speeds[0]),
        Cell(tail),
        Cell(speeds[1]),
        Cell(f"{found.highest.load:,g}"),
    )


def _knee(found: Saturation) -> Cell:
    if not found.saturated:
        return Cell(f"not up to {found.knee.load:,g}", Tone.QUIET)
    perhaps = f" ({found.earliest.load:,g})" if found.earliest.load < found.knee.load else ""
    return Cell(f"{found.knee.load:,g}{perhaps}", Tone.STRONG)
