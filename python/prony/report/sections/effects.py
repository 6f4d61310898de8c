"""A comparison in words: its effect and its interval.

The best in each measure, under each load; a tie is shown as a tie.
"""

from collections.abc import Iterator, Mapping, Sequence

from prony.core.metrics import METRICS, Better
from prony.figures.standings import Standing
from prony.figures.statistics.compare import Comparison, Verdict
from prony.figures.summary import CellSummary
from prony.reading.groups import Group
from prony.reading.study import StudyResults
from prony.report.document import Block, Column, Entry, Footnotes, Paragraph, Section, Table, Tone
from prony.report.forms import confidence, count, in_metric, signed_percent
from prony.report.text import EMPTY, Figure, Name, Part, Quote, Text, framed, joined, pointer, text
from prony.report.words import bound_sign, group_words


def effect_words(found: Comparison, at: str) -> Text:
    """Return an effect with its interval and the interval's level. ``at``: where the report's JSON has it."""
    if found.effect is None:
        return text("not compared")
    effect = Figure(found.effect, signed_percent, at + pointer("effect"))
    bounds = bounds_words(found, at)
    if not bounds:
        spans = _range_words(found, at)
        return text("{}, single sessions {}", effect, spans) if spans else text("{}", effect)
    level = Figure(found.level, confidence, at + pointer("level"))
    return text("{}, {} interval {}", effect, level, bounds)


def bounds_words(found: Comparison, at: str) -> Text:
    """Return the ends of an interval; empty where it has none."""
    return _between(at, low=found.low, high=found.high)


def bounded_words(found: Comparison, at: str) -> Text:
    """Return an effect, with the ends of its interval in brackets where it has one."""
    return _with(found, bounds_words(found, at), at)


def _with(found: Comparison, bounds: Text, at: str) -> Text:
    if found.effect is None:
        return text("not compared")
    effect = Figure(found.effect, signed_percent, at + pointer("effect"))
    return text("{}{}", effect, framed(" (", bounds, ")"))


def _between(at: str, **ends: float | None) -> Text:
    """Return two ends, by their keys; empty where there are none."""
    known = [Figure(end, signed_percent, at + pointer(key)) for key, end in ends.items() if end is not None]
    return text("{} to {}", *known) if len(known) == 2 else EMPTY


def comparison_entries(
    metric: str, found: Comparison | None, at: str, why: Part | None = None
) -> tuple[Entry, Entry, Entry, Entry]:
    """Return the entries of a comparison in a table: effect, interval (or the range of single sessions,
    called that), verdict in the tone of what it says of the second, and how many blocks. ``why``: there is
    none.
    """
    dash, spread = Entry("—", Tone.QUIET), EMPTY
    if found is not None:
        spans = _range_words(found, at)
        spread = bounds_words(found, at) or (text("range {}", spans) if spans else spans)
    if found is None or found.effect is None or not spread:
        return dash, dash, Entry.of(why, Tone.QUIET) if why else dash, dash
    effect = text("{}", Figure(found.effect, signed_percent, at + pointer("effect")))
    number = text("{}", Figure(found.blocks, count, at + pointer("blocks")))
    verdict = Entry.of(found.verdict.value, _tone(metric, found.verdict))
    return Entry(effect), Entry(spread), verdict, Entry(number)


def _tone(metric: str, verdict: Verdict) -> Tone:
    if verdict not in (Verdict.HIGHER, Verdict.LOWER):
        return Tone.PLAIN
    better = Verdict.HIGHER if METRICS[metric].better is Better.HIGHER else Verdict.LOWER
    return Tone.GOOD if verdict is better else Tone.BAD


def ratios_to_first(group: Group, at: str) -> Mapping[str, Text]:
    """Return how each subject differs from the first in what decides, with the interval that verdicts use.

    ``at``: where the report's JSON has the group.
    """
    compared = group.answer.comparisons
    found = {name: (one, at + pointer("answer", "comparisons", name)) for name, one in compared.items()}
    return {
        name: _with(one, bounds_words(one, where) or _range_words(one, where), where)
        for name, (one, where) in found.items()
    }


def _range_words(found: Comparison, at: str) -> Text:
    """Return the range of an effect in single sessions; empty where there is one session."""
    return _between(at, least=found.least, most=found.most)


def ratio_note(group: Group) -> Text | None:
    """Return what the ratios of a group's main table are; None where there are none."""
    found = group.answer
    if found.metric is None or not found.comparisons:
        return None
    metric = Name(METRICS[found.metric].title)
    if found.by_session and not found.decided:
        words = "to the first: difference in {}, with the range of single sessions: so few have no interval."
        return text(words, metric)
    over = "over the sessions" if found.by_session else "within one session"
    return text(
        f"to the first: difference in {{}} within blocks, with its {{}} interval {over}. The intervals hold "
        "for all pairs together; verdicts follow from them, not from those of single figures.",
        *(metric, Name("95 %")),
    )


# --- the best in each measure -----------------------------------------------------------------------------


_BEST_COLUMNS = ("measure", "under", "best", "figure")
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
        for row in _best_rows(measure, [each for each in found if each[-1].measure == measure], notes)
    ]
    columns = [Column(title, text=True) for title in _BEST_COLUMNS if several or title != "under"]
    kept = [tuple(entry for k, entry in enumerate(row) if several or k != 1) for row in rows]
    blocks: tuple[Block, ...] = (Table(tuple(columns), tuple(kept)), notes.notes())
    if any(standing.best and not standing.decided for *_, standing in found):
        lead = Paragraph("Without enough blocks for a verdict, only the first is shown.", Tone.QUIET)
        blocks = (lead, *blocks)
    return Section("Best in each measure", blocks)


def _best_rows(title: str, found: Sequence[_Placed], notes: Footnotes) -> Iterator[tuple[Entry, ...]]:
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
