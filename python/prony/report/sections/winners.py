"""The best in each measure, under each load: ties are shown as ties."""

from collections.abc import Iterator, Sequence

from prony.analysis.standings import Standing
from prony.analysis.summary import CellSummary, Estimate
from prony.metrics import METRICS, format_metric
from prony.reading.study import Group, Reading
from prony.report.document import Block, Cell, Column, Footnotes, Paragraph, Section, Table, Tone
from prony.report.words import group_words

__all__ = ["alike_note", "deciding", "winners"]

_COLUMNS = ("measure", "under", "best", "figure")


def winners(reading: Reading) -> Section | None:
    """Return who is best in what; null where there is nobody to be better than."""
    groups = [group for group in reading.groups if len([cell for cell in group.cells if cell.ok]) > 1]
    if not groups:
        return None
    notes = Footnotes()
    several = len(groups) > 1
    rows = [
        row
        for measure in dict.fromkeys(one.measure for group in groups for one in group.standings)
        for row in _rows(measure, _of(measure, groups), notes)
    ]
    columns = [Column(title, text=True) for title in _COLUMNS if several or title != "under"]
    kept = [tuple(cell for k, cell in enumerate(row) if several or k != 1) for row in rows]
    blocks: tuple[Block, ...] = (Table(tuple(columns), tuple(kept)), notes.notes())
    if not all(standing.decided for group in groups for standing in group.standings if standing.metric):
        lead = Paragraph(
            "Where there are too few blocks for a verdict, the first is shown alone.", Tone.QUIET
        )
        blocks = (lead, *blocks)
    return Section("Best in each measure", blocks)


def _of(measure: str, groups: Sequence[Group]) -> list[tuple[Group, Standing]]:
    return [(group, one) for group in groups for one in group.standings if one.measure == measure]


def _rows(
    title: str, found: Sequence[tuple[Group, Standing]], notes: Footnotes
) -> Iterator[tuple[Cell, ...]]:
    for index, (group, standing) in enumerate(found):
        name = Cell(title if not index else "", Tone.STRONG)
        under = Cell(group_words(group))
        if standing.metric is None or not standing.best:
            yield name, under, Cell(f"—{notes.mark(standing.reason or 'no subject qualifies')}"), Cell("")
            continue
        first, *more = _best(standing, notes)
        yield name, under, first, Cell(_figure(group.cells, standing))
        yield from ((Cell(""), Cell(""), cell, Cell("")) for cell in more)


def _best(standing: Standing, notes: Footnotes) -> list[Cell]:
    """Return the names of the best, two to a line, so that long ones fit beside the figures."""
    mark = notes.mark(METRICS[standing.metric or ""].title)
    if standing.left_out:
        mark += " " + notes.mark(f"too few trials that count to be compared: {', '.join(standing.left_out)}")
    if standing.decided and len(standing.best) == len(standing.ranked) > 1:
        return [Cell(f"not told apart: all {len(standing.best)}{mark}")]
    doubt = "" if standing.decided else f" (n = {standing.blocks}: no verdict)"
    tone = Tone.PLAIN if standing.decided else Tone.QUIET
    lines = [", ".join(pair) for pair in _pairs(standing.best)]
    lines = [*(f"{line}," for line in lines[:-1]), f"{lines[-1]}{doubt}{mark}"]
    return [Cell(line, tone) for line in lines]


def _pairs(names: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield names two by two."""
    yield from (names[at : at + 2] for at in range(0, len(names), 2))


def _figure(cells: Sequence[CellSummary], standing: Standing) -> str:
    """Return the figure of the first, or the range of those that share the lead."""
    metric = standing.metric or ""
    by_name = {cell.name: cell.metrics[metric] for cell in cells}
    values = [by_name[name] for name in (standing.best if standing.decided else standing.ranked[:1])]
    means = [value.mean for value in values if isinstance(value, Estimate)]
    low, high = format_metric(metric, min(means)), format_metric(metric, max(means))
    return low if low == high else f"{low} to {high}"


def alike_note(group: Group) -> str | None:
    """Return what the letters of a group's main table mean; null without letters."""
    found = deciding(group)
    if found is None or found.metric is None:
        return None
    return (
        f"alike: subjects that share a letter cannot be told apart in {METRICS[found.metric].title} "
        "by more than the margin."
    )


def deciding(group: Group) -> Standing | None:
    """Return the standing in the measure that decides, once it has letters."""
    own = (one for one in group.standings if one.metric == group.answer.metric and one.letters)
    return next(own, None)
