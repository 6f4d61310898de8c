"""The figures that the experiment published, beside those measured here: context, never a claim."""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from prony.analysis.missing import Missing
from prony.analysis.summary import CellSummary, Estimate
from prony.metrics import METRICS
from prony.model import Original
from prony.reading.study import Group, Reading
from prony.report.document import Cell, Column, Footnotes, Paragraph, Section, Table, Tone
from prony.report.scales import metric_scale
from prony.report.words import group_words, joined
from prony.units import Scale, format_in

__all__ = ["Beside", "beside", "measured", "originals"]

_CONTEXT = (
    "Published figures come from another machine and older versions. They are context: no claim is held "
    "against an absolute figure."
)

# A published figure, and the cell that repeats it.
Beside = tuple[Original, CellSummary]


def beside(reading: Reading) -> tuple[Beside, ...]:
    """Return each published figure with each cell that repeats it, in the order of the plan."""
    return tuple(
        (original, cell)
        for cell in reading.cells
        for original in reading.plan.originals
        if _repeats(cell, original)
    )


def measured(original: Original, cell: CellSummary) -> Estimate | Missing:
    """Return the new figure of what a published one is of: all processes, or those of its role.

    What has no processes of that role has no such figure: that of all would be of something else.
    """
    if not original.role:
        return cell.metrics[original.metric]
    found = cell.roles.get(original.role, {})
    return found.get(original.metric, Missing(f"no process here has the role {original.role}"))


def _repeats(cell: CellSummary, original: Original) -> bool:
    return (
        fnmatchcase(cell.cell.subject.name, original.subject)
        and fnmatchcase(cell.cell.engine.name, original.engine)
        and cell.cell.is_under(original.load)
    )


def originals(reading: Reading) -> Iterator[Section]:
    """Yield a table for each metric that was published, with the loads that were measured here."""
    pairs = beside(reading)
    kinds = dict.fromkeys((original.metric, original.role) for original, _ in pairs)
    for number, (metric, role) in enumerate(kinds):
        lead = (Paragraph(_CONTEXT, Tone.QUIET),) if not number else ()
        notes = Footnotes()
        own = [pair for pair in pairs if (pair[0].metric, pair[0].role) == (metric, role)]
        title = f"As published, and here: {METRICS[metric].title}{f', role {role}' if role else ''}"
        yield Section(title, (*lead, _table(reading, own, notes), notes.notes()))
    if (left_out := _not_repeated(reading, pairs)) is not None:
        yield left_out


def _table(reading: Reading, pairs: Sequence[Beside], notes: Footnotes) -> Table:
    groups = [group for group in reading.groups if any(cell in group.cells for _, cell in pairs)]
    scale = _scale(pairs)
    names = dict.fromkeys(cell.name for _, cell in pairs)
    columns = [Column("generator" if groups[0].of_generators else "subject", text=True)]
    for group in groups:
        heading = ", ".join(part for part in (group_words(group), scale.unit) if part)
        columns += [Column("published", heading), Column("here", heading)]
    rows = tuple(
        (Cell(name), *(cell for group in groups for cell in _two(group, name, pairs, scale, notes)))
        for name in names
    )
    return Table(tuple(columns), rows)


def _two(
    group: Group, name: str, pairs: Sequence[Beside], scale: Scale, notes: Footnotes
) -> tuple[Cell, Cell]:
    own = [(one, cell) for one, cell in pairs if cell in group.cells and cell.name == name]
    if not own:
        return Cell(""), Cell("")
    published = [original for original, _ in own]
    marks = "".join(dict.fromkeys(notes.mark(one.note) for one in published if one.note))
    return Cell(_span([one.value for one in published], scale) + marks), _here(own[0], scale, notes)


def _span(values: Sequence[float], scale: Scale) -> str:
    low, high = format_in(min(values), scale), format_in(max(values), scale)
    return low if low == high else f"{low}–{high}"


def _here(pair: Beside, scale: Scale, notes: Footnotes) -> Cell:
    original, cell = pair
    value = measured(original, cell)
    if isinstance(value, Missing):
        return Cell(f"—{notes.mark(value.reason)}", Tone.QUIET)
    doubt = notes.mark(f"not qualified, {cell.unqualified}") if cell.unqualified else ""
    return Cell(format_in(value.mean, scale, value.half_width) + doubt, Tone.STRONG)


def _scale(pairs: Sequence[Beside]) -> Scale:
    """Return one unit for published figures and new ones, all in one metric."""
    found = [measured(original, cell) for original, cell in pairs]
    values = [value.mean for value in found if isinstance(value, Estimate)]
    return metric_scale(pairs[0][0].metric, values + [original.value for original, _ in pairs])


def _not_repeated(reading: Reading, pairs: Sequence[Beside]) -> Section | None:
    """Return who was published and is not among the subjects; loads that were left out go without saying."""
    repeated = {original.subject for original, _ in pairs}
    names = [one.subject for one in reading.plan.originals if one.subject not in repeated]
    if not names:
        return None
    text = f"Published, and not measured here: {joined(list(dict.fromkeys(names)), most=12)}."
    return Section("", (Paragraph(text, Tone.QUIET),))
