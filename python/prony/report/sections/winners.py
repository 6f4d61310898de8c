"""The best in each measure, under each load; a tie is shown as a tie."""

from collections.abc import Iterator, Sequence

from prony.core.metrics import METRICS
from prony.figures.standings import Standing
from prony.figures.summary import CellSummary
from prony.reading.groups import Group
from prony.reading.study import StudyResults
from prony.report.document import Block, Column, Entry, Footnotes, Paragraph, Section, Table, Tone
from prony.report.forms import count, in_metric
from prony.report.text import Figure, Name, Quote, Text, joined, pointer, text
from prony.report.words import bound_sign, group_words

_COLUMNS = ("measure", "under", "best", "figure")
# Of two names on a line, in characters.
_WIDTH = 56


# The place of a group, the group, where the report's JSON has a standing of it, and that standing.
_Placed = tuple[int, Group, str, Standing]


def winners(reading: StudyResults) -> Section | None:
    """Return the best in each measure; None with fewer than two subjects that count."""
    groups = [
        (place, group)
        for place, group in enumerate(reading.groups)
        if len([cell for cell in group.cells if cell.ok]) > 1
    ]
    if not groups:
        return None
    notes = Footnotes()
    several = len(groups) > 1
    found = [
        (place, group, pointer("groups", place, "standings", k), one)
        for place, group in groups
        for k, one in enumerate(group.standings)
    ]
    rows = [
        row
        for measure in dict.fromkeys(one.measure for *_, one in found)
        for row in _rows(measure, [each for each in found if each[-1].measure == measure], notes)
    ]
    columns = [Column(title, text=True) for title in _COLUMNS if several or title != "under"]
    kept = [tuple(entry for k, entry in enumerate(row) if several or k != 1) for row in rows]
    blocks: tuple[Block, ...] = (Table(tuple(columns), tuple(kept)), notes.notes())
    if any(standing.best and not standing.decided for *_, standing in found):
        lead = Paragraph("Without enough blocks for a verdict, only the first is shown.", Tone.QUIET)
        blocks = (lead, *blocks)
    return Section("Best in each measure", blocks)


def _rows(title: str, found: Sequence[_Placed], notes: Footnotes) -> Iterator[tuple[Entry, ...]]:
    for index, (place, group, at, standing) in enumerate(found):
        name = Entry(title if not index else "", Tone.STRONG)
        under = Entry(group_words(group, place))
        if standing.metric is None or not standing.best:
            why = standing.reason
            reason = text("{}", Quote(why, at + pointer("reason"))) if why else "no subject qualifies"
            yield name, under, Entry(notes.marked("—", reason)), Entry("")
            continue
        first, *more = _best(standing, at, notes)
        yield name, under, first, Entry(_figure(place, group, standing))
        yield from ((Entry(""), Entry(""), entry, Entry("")) for entry in more)


def _best(standing: Standing, at: str, notes: Footnotes) -> list[Entry]:
    """Return the names of the best, two to a line, so that long ones fit beside the figures."""
    mark = notes.mark(text("{}", Name(METRICS[standing.metric or ""].title)))
    if standing.left_out:
        left_out = joined(map(Name, standing.left_out))
        mark += " " + notes.mark(text("not compared, too few trials count: {}", left_out))
    if standing.decided and len(standing.best) == len(standing.ranked) > 1:
        every = Figure(len(standing.best), count, at + pointer("best"))
        return [Entry(text("not separated: all {}{}", every, mark))]
    blocks = Figure(standing.blocks, count, at + pointer("blocks"))
    doubt = "" if standing.decided else text(" (n = {}: no verdict)", blocks)
    tone = Tone.PLAIN if standing.decided else Tone.QUIET
    lines = [joined(map(Name, pair)) for pair in _pairs(standing.best)]
    lines = [*(text("{},", line) for line in lines[:-1]), text("{}{}{}", lines[-1], doubt, mark)]
    return [Entry(line, tone) for line in lines]


def _pairs(names: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield names two by two, and long ones one by one."""
    at = 0
    while at < len(names):
        pair = names[at : at + 2]
        yield pair if sum(map(len, pair)) <= _WIDTH else pair[:1]
        at += 2 if sum(map(len, pair)) <= _WIDTH else 1


def _figure(place: int, group: Group, standing: Standing) -> Text:
    """Return the figure of the first, or the range of those that share the lead."""
    metric = standing.metric or ""
    shown = standing.best if standing.decided else standing.ranked[:1]

    def sign(cell: CellSummary) -> str:
        return bound_sign(cell, metric)

    values = [
        (value.mean, pointer("groups", place, "cells", number, "metrics", metric, "mean"), sign(cell))
        for number, cell in enumerate(group.cells)
        if cell.name in shown and (value := cell.known(metric))
    ]
    low, high = (
        text("{}{}", before, Figure(value, in_metric(metric), at))
        for value, at, before in (min(values), max(values))
    )
    return low if str(low) == str(high) else text("{} to {}", low, high)


def letters_note(group: Group) -> Text | None:
    """Return what the letters of a group's main table mean; None without letters."""
    found = deciding(group)
    if found is None or found.metric is None:
        return None
    return text(
        "group: subjects that share a letter are not separated in {} by more than the margin.",
        Name(METRICS[found.metric].title),
    )


def deciding(group: Group) -> Standing | None:
    """Return the standing in the measure that decides; None without letters."""
    own = (one for one in group.standings if one.metric == group.answer.metric and one.letters)
    return next(own, None)
