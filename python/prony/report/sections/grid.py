"""One metric against the load: a table for each metric, where a study has many loads."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from prony.analysis.missing import Missing
from prony.analysis.summary import CellSummary, Estimate
from prony.metrics import METRICS, Unit
from prony.model import ClosedLoop, OpenLoop
from prony.reading.study import Group, Reading
from prony.report.document import Block, Cell, Column, Footnotes, Paragraph, Section, Table, Tone
from prony.report.scales import metric_scale
from prony.units import Scale, format_in, format_percent

__all__ = ["LEAST_LOADS", "detailed", "families", "grid"]

LEAST_LOADS = 3
"""With fewer loads there is no curve."""
_NOTE = Paragraph(
    "All figures of every load: --json, or --csv DIR. In bold: the best under a load, with those not told "
    "apart from it.",
    Tone.QUIET,
)
_CLOSED = ("ok_per_s", "service_ok_mean", "service_ok_p99", "error_ratio", "cpu_percent", "pss_end")
_OPEN = ("success_ratio", "response_ok_p50", "response_ok_p99", "cpu_percent", "pss_end")


def detailed(reading: Reading) -> tuple[Group, ...]:
    """Return the groups to be shown one by one: all that are in no grid, and of those that are in one the
    few that verdicts were planned for.
    """
    gridded = [group for groups in families(reading) if len(groups) >= LEAST_LOADS for group in groups]
    if not gridded:
        return reading.measured
    primary = [group for group in reading.groups if group.primary]
    few = primary if len(primary) < LEAST_LOADS else []
    return tuple(group for group in reading.measured if group in few or group not in gridded)


def grid(reading: Reading) -> Iterator[Section]:
    """Yield the tables of each metric over the loads that differ in one thing only."""
    for groups in families(reading):
        if len(groups) >= LEAST_LOADS:
            names = _OPEN if isinstance(groups[0].workload.loop, OpenLoop) else _CLOSED
            yield Section("", (_NOTE,))
            sections = (_section(groups, name) for name in names)
            yield from (section for section in sections if section is not None)


def families(reading: Reading) -> Iterable[list[Group]]:
    """Return the groups that share subjects, and all but the number of connections or the rate; the lightest
    load first.
    """
    alike: dict[object, list[Group]] = {}
    for group in (one for one in reading.groups if not one.of_generators):
        stop, kind = group.workload.stop, type(group.workload.loop)
        alike.setdefault((group.engine, group.sandbox, kind, stop), []).append(group)
    return [sorted(linked, key=_size) for groups in alike.values() for linked in _linked(groups)]


def _linked(groups: Iterable[Group]) -> list[list[Group]]:
    """Return the groups in lists of which no two have a subject in common."""
    found: list[list[Group]] = []
    for group in groups:
        near = [one for one in found if _subjects((group,)) & _subjects(one)]
        found = [one for one in found if one not in near] + [[*(two for one in near for two in one), group]]
    return found


def _subjects(groups: Iterable[Group]) -> set[str]:
    return {cell.name for group in groups for cell in group.cells}


def _size(group: Group) -> float:
    match group.workload.loop:
        case ClosedLoop(connections):
            return connections
        case OpenLoop(rate_per_s):
            return rate_per_s


def _section(groups: Sequence[Group], name: str) -> Section | None:
    metric, notes = METRICS[name], Footnotes()
    subjects = tuple(dict.fromkeys(cell.name for group in groups for cell in group.cells))
    by_load = [{cell.name: cell for cell in group.cells} for group in groups]
    scale = _scale(name, (cell for cells in by_load for cell in cells.values()))
    best = [_best(group, name) for group in groups]
    rows = []
    for subject in subjects:
        cells = [
            _figure(cells.get(subject), name, scale, notes, _tone(subject, first))
            for cells, first in zip(by_load, best, strict=True)
        ]
        rows.append((Cell(subject), *cells))
    if not any(_has(cell, name) for cells in by_load for cell in cells.values()):
        return None
    what = "connections" if isinstance(groups[0].workload.loop, ClosedLoop) else "requests a second"
    columns = (Column("subject", text=True), *(Column(f"{_size(group):,g}", what) for group in groups))
    blocks: tuple[Block, ...] = (Table(columns, tuple(rows)), notes.notes())
    title = metric.title[0].upper() + metric.title[1:]
    return Section(f"{title}{', ' + scale.unit if scale.unit else ''}, against {what}", blocks)


def _tone(subject: str, first: Collection[str]) -> Tone:
    return Tone.STRONG if subject in first else Tone.PLAIN


def _best(group: Group, name: str) -> tuple[str, ...]:
    return next((one.best for one in group.standings if one.metric == name and one.decided), ())


def _has(cell: CellSummary, name: str) -> bool:
    return isinstance(cell.metrics[name], Estimate)


def _scale(name: str, cells: Iterable[CellSummary]) -> Scale:
    found = [cell.metrics[name] for cell in cells]
    return metric_scale(name, [value.mean for value in found if isinstance(value, Estimate)])


def _figure(cell: CellSummary | None, name: str, scale: Scale, notes: Footnotes, tone: Tone) -> Cell:
    if cell is None:
        return Cell(f"—{notes.mark('not measured under this load')}", Tone.QUIET)
    value = cell.metrics[name]
    if isinstance(value, Missing):
        return Cell(f"—{notes.mark(value.reason)}", Tone.QUIET)
    speed = METRICS[name].unit in (Unit.RATE, Unit.DURATION)
    doubt = notes.mark("not qualified: its speed enters no comparison") if speed and cell.unqualified else ""
    if METRICS[name].unit is Unit.RATIO:
        text = format_percent(value.mean).removesuffix(" %")
    else:
        text = format_in(value.mean, scale, value.half_width)
    return Cell(text + doubt, tone)
