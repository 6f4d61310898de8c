"""Published figures beside those measured here: context, never a claim."""

from collections.abc import Iterator, Sequence

from prony.analysis.missing import Missing
from prony.analysis.summary import means
from prony.metrics import METRICS, Unit
from prony.reading.checks import Beside
from prony.reading.groups import Group
from prony.reading.study import Reading
from prony.report.document import Column, Entry, Footnotes, Paragraph, Section, Table, Tone
from prony.report.forms import in_scale, metric_scale
from prony.report.tables import cell_at, figure_entry
from prony.report.text import Figure, Name, Quote, Text, joined, listed, pointer, text
from prony.report.words import group_words
from prony.units import KIB, MIB, Scale

_CONTEXT = (
    "Published figures come from another machine and older versions. They are context: a claim is tested on "
    "an absolute figure only where it states one."
)

# A published figure beside the new one, and where the report's JSON has both.
Located = tuple[str, Beside]


def originals(reading: Reading) -> Iterator[Section]:
    """Yield a table for each published metric, with the loads that were measured here."""
    pairs = [(pointer("originals", k), one) for k, one in enumerate(reading.originals)]
    kinds = dict.fromkeys(_kind(one) for _, one in pairs)
    for number, (metric, role) in enumerate(kinds):
        lead = (Paragraph(_CONTEXT, Tone.QUIET),) if not number else ()
        notes = Footnotes()
        own = [pair for pair in pairs if _kind(pair[1]) == (metric, role)]
        of = text(", role {}", Name(role)) if role else ""
        title = text("As published, and here: {}{}", Name(METRICS[metric].title), of)
        yield Section(title, (*lead, _table(reading, own, notes), notes.notes()))
    if (left_out := _not_repeated(reading)) is not None:
        yield left_out


def _kind(one: Beside) -> tuple[str, str]:
    return one.original.metric, one.original.role


def _table(reading: Reading, pairs: Sequence[Located], notes: Footnotes) -> Table:
    groups = [group for group in reading.groups if any(one.cell in group.cells for _, one in pairs)]
    scale = _scale(pairs)
    names = dict.fromkeys(one.cell.name for _, one in pairs)
    columns = [Column("generator" if groups[0].of_generators else "subject", text=True)]
    for group in groups:
        load = group_words(group, reading.place(group))
        heading = joined(part for part in (load, scale.unit) if part)
        columns += [Column("published", heading), Column("here", heading)]
    rows = tuple(
        (
            Entry.of(Name(name)),
            *(entry for group in groups for entry in _two(reading, group, name, pairs, scale, notes)),
        )
        for name in names
    )
    return Table(tuple(columns), rows)


def _two(  # noqa: PLR0913, PLR0917 - two cells of a table
    reading: Reading, group: Group, name: str, pairs: Sequence[Located], scale: Scale, notes: Footnotes
) -> tuple[Entry, Entry]:
    own = [(at, one) for at, one in pairs if one.cell in group.cells and one.cell.name == name]
    if not own:
        return Entry(""), Entry("")
    marks = dict.fromkeys(
        notes.mark(text("{}", Quote(one.original.note, at + pointer("note"))))
        for at, one in own
        if one.original.note
    )
    return Entry(text("{}{}", _span(own, scale), "".join(marks))), _here(reading, own[0], scale, notes)


def _span(pairs: Sequence[Located], scale: Scale) -> Text:
    ordered = sorted(pairs, key=lambda pair: pair[1].original.value)
    ends = [(at, one.original.value) for at, one in (ordered[0], ordered[-1])]
    low, high = (Figure(value, in_scale(scale), at + pointer("published")) for at, value in ends)
    return text("{}", low) if str(low) == str(high) else text("{}–{}", low, high)


def _here(reading: Reading, pair: Located, scale: Scale, notes: Footnotes) -> Entry:
    at, one = pair
    shown = figure_entry(one.measured, scale, at + pointer("measured"), notes)
    if isinstance(one.measured, Missing):
        return shown
    if not one.cell.unqualified:
        return Entry(shown.text, Tone.STRONG)
    reason = Quote(one.cell.unqualified, cell_at(reading, one.cell) + pointer("unqualified_reason"))
    return Entry(notes.marked(shown.text, text("not qualified, {}", reason)), Tone.STRONG)


def _scale(pairs: Sequence[Located]) -> Scale:
    """Return one unit for published figures and new ones, all in one metric.

    Sizes that are whole KiB, and not whole MiB, were read in "kB", as ps and top have them: they stay so.
    """
    metric = pairs[0][1].original.metric
    published = [one.original.value for _, one in pairs]
    whole = METRICS[metric].unit is Unit.BYTES and not any(value % KIB for value in published)
    if whole and any(value % MIB for value in published):
        return Scale(KIB, "KiB")
    return metric_scale(metric, means(one.measured for _, one in pairs) + published)


def _not_repeated(reading: Reading) -> Section | None:
    """Return the published subjects that this study lacks; loads that were left out are not named."""
    repeated = {one.original.subject for one in reading.originals}
    names = [one.subject for one in reading.plan.originals if one.subject not in repeated]
    if not names:
        return None
    words = text("Published, but not measured here: {}.", listed(map(Name, dict.fromkeys(names)), most=12))
    return Section("", (Paragraph(words, Tone.QUIET),))
