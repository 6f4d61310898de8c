"""What the experiment claimed, and whether that holds here; published figures beside those measured here,
which are context, never a claim.
"""

from collections.abc import Iterator, Sequence

from prony.core.metrics import METRICS, Unit
from prony.core.units import KIB, MIB, Scale
from prony.figures.claim_needs import Lack
from prony.figures.claim_parts import ClaimResult, ClaimVerdict
from prony.figures.claims import VersionChange
from prony.figures.missing import Missing
from prony.figures.statistics.compare import Terms
from prony.figures.summary import means
from prony.model.plan import Claim, ClaimKind
from prony.reading.checks import Beside
from prony.reading.groups import Group
from prony.reading.study import StudyResults
from prony.report.document import (
    Block,
    Column,
    Entry,
    Footnotes,
    Judgement,
    Judgements,
    Paragraph,
    Section,
    Table,
    Tone,
)
from prony.report.forms import Form, confidence, count, digits, in_metric, in_scale, metric_scale, percent
from prony.report.tables import cell_at, figure_entry
from prony.report.text import EMPTY, Figure, Name, Quote, Text, counted, joined, listed, pointer, text
from prony.report.words import group_words

_TONES = {
    ClaimVerdict.HOLDS: Tone.GOOD,
    ClaimVerdict.DOES_NOT_HOLD: Tone.BAD,
    ClaimVerdict.CANNOT_TELL: Tone.WARNING,
    ClaimVerdict.NOT_TESTABLE: Tone.QUIET,
}
_COUNTED = {
    ClaimVerdict.HOLDS: ("holds", "hold"),
    ClaimVerdict.DOES_NOT_HOLD: ("does not hold", "do not hold"),
    ClaimVerdict.CANNOT_TELL: ("undecided", "undecided"),
    ClaimVerdict.NOT_TESTABLE: ("not testable here", "not testable here"),
}
_COUNTED_THEN = {
    VersionChange.HELD: "held",
    VersionChange.VERSIONS: "held, unlike today",
    VersionChange.NOT_THEN: "did not hold",
    VersionChange.UNKNOWN: "undecided",
}
_LEVEL = Terms().level
_WIDER = (
    "A claim about several figures does not hold as soon as one of them refutes it. So that {} holds for all "
    "of them together, the interval of one that would refute it by itself is wider than one of {}; that may "
    "leave the claim undecided."
)
_VALUES = (ClaimKind.VALUE, ClaimKind.SINGLE_CORE)


def claims(reading: StudyResults) -> Section | None:
    """Return the claims with their verdicts, the counts first; None for a study without claims."""
    if not reading.claims:
        return None
    blocks: tuple[Block, ...] = (
        Paragraph(text("{}.", claim_counts(reading))),
        Judgements(
            tuple(
                _judgement(claim, result, pointer("claims", k), reading)
                for k, (claim, result) in enumerate(reading.claims)
            )
        ),
    )
    return Section("What was claimed", (*blocks, *_levels(reading)))


def _levels(reading: StudyResults) -> Iterator[Block]:
    """Yield why some intervals are of more than 95 %, where there are such."""
    results = (*(result for _, result in reading.claims), *(one.result for one in reading.then.values()))
    if any(one.interval is not None and (one.level or _LEVEL) < _LEVEL for one in results):
        yield Paragraph(text(_WIDER, *[Name("95 %")] * 2), Tone.QUIET)


def failed_claims(reading: StudyResults) -> Iterator[Text]:
    """Yield the claims that do not hold: what was measured and claimed, and the claim."""
    for k, (claim, result) in enumerate(reading.claims):
        if result.verdict is not ClaimVerdict.DOES_NOT_HOLD:
            continue
        at = pointer("claims", k)
        measured = EMPTY
        if result.figure is not None:
            measured = text(
                "measured {}{}", _figure(claim, result.figure, at + pointer("figure")), _unit(claim)
            )
        detail = joined(part for part in (measured, _claimed(claim, at)) if part)
        figures = text(" ({})", detail) if detail else EMPTY
        then = reading.then.get(claim.name)
        since = f" ({then.change})" if then is not None and then.change is not VersionChange.UNKNOWN else ""
        yield text(f"does not hold{{}}{since}: {{}}", figures, Quote(claim.text, at + pointer("text")))


def claim_counts(reading: StudyResults) -> Text:
    """Return the number of claims of each verdict, such as ``3 claims: 2 hold, 1 does not hold``, and of what
    the software of the original's time says, where it was asked.
    """
    counts = reading.verdicts
    parts = [
        text(
            f"{{}} {_COUNTED[one][counts[one] != 1]}",
            Figure(counts[one], count, pointer("verdicts", one.value)),
        )
        for one in ClaimVerdict
        if counts.get(one)
    ]
    every = counted(Figure(len(reading.claims), count, "/claims"), "claim")
    return text("{}: {}{}", every, joined(parts), _then_counts(reading))


def _then_counts(reading: StudyResults) -> Text:
    """Return how many claims the software of the time judged, by its verdict; empty where it judged none."""
    counts = reading.then_verdicts
    parts = [
        text(f"{{}} {words}", Figure(counts[one], count, pointer("then_verdicts", one.value)))
        for one, words in _COUNTED_THEN.items()
        if counts.get(one)
    ]
    return text("; with the software of the time: {}", joined(parts)) if parts else EMPTY


def _judgement(claim: Claim, result: ClaimResult, at: str, reading: StudyResults) -> Judgement:
    reason = Quote(result.reason, at + pointer("reason")) if result.reason else EMPTY
    found = (reason, figure_words(claim, result, at), _claimed(claim, at), _then(claim, at, reading))
    detail = joined((part for part in found if part), by="; ")
    sentence = text("{}", Quote(claim.text, at + pointer("text")))
    return Judgement(_verdict(result, reading.plan.profile), _TONES[result.verdict], sentence, detail)


_SAID = {
    VersionChange.VERSIONS: "versions changed: with the software of the time it holds",
    VersionChange.HELD: "held: with the software of the time it holds, and today's was not measured",
    VersionChange.NOT_THEN: "did not hold: it does not with the software of the time",
    VersionChange.UNKNOWN: "the software of the time does not show whether versions changed",
}


def _then(claim: Claim, at: str, reading: StudyResults) -> Text:
    """Return what the software of the original's time says; empty where that was not asked."""
    then = reading.then.get(claim.name)
    if then is None:
        return EMPTY
    figures = figure_words(claim, then.result, at + pointer("then", "result"))
    of = counted(Figure(then.subjects, count, at + pointer("then", "subjects")), "such subject")
    return text(f"{_SAID[then.change]} ({{}})", joined(part for part in (of, figures) if part))


def _verdict(result: ClaimResult, profile: str) -> str:
    """Return the verdict; a claim that another profile could test is not testable in this one."""
    if result.lack is Lack.PROFILE and profile:
        return f"not testable in {profile}"
    return result.verdict.value


def figure_words(claim: Claim, result: ClaimResult, at: str) -> Text:
    """Return the figure that decides, with its interval; empty without one. ``at``: where the report's
    JSON has the claim.
    """
    if result.figure is None:
        return EMPTY
    words = text("measured {}{}", _figure(claim, result.figure, at + pointer("figure")), _unit(claim))
    if result.interval is not None:
        ends = enumerate(result.interval)
        low, high = (_figure(claim, bound, at + pointer("interval", k)) for k, bound in ends)
        said = "{} (one-sided {} bounds {} and {})" if result.one_sided else "{} ({} interval {} to {})"
        words = text(said, words, _confidence(result, at), low, high)
    if result.n is None:
        return words
    return text("{}, n = {}", words, Figure(result.n, count, at + pointer("n")))


def _confidence(result: ClaimResult, at: str) -> Figure:
    """Return how often such an interval, or bound, covers the truth: several parts share the level."""
    return Figure(result.level or 0.0, confidence, at + pointer("level"))


def _claimed(claim: Claim, at: str) -> Text:
    """Return the figures that the claim states; empty where it states an order."""
    low = None if claim.low is None else Figure(claim.low, _form(claim), at + pointer("low"))
    high = None if claim.high is None else Figure(claim.high, _form(claim), at + pointer("high"))
    unit = " of the requests" if claim.counts_trials else _unit(claim)
    match low, high:
        case None, None:
            return EMPTY
        case None, Figure():
            return text("claimed at most {}{}", high, unit)
        case Figure(), None:
            return text("claimed at least {}{}", low, unit)
        case Figure(), Figure() if str(low) == str(high):
            return text("claimed {}{}", low, unit)
        case Figure(), Figure():
            return text("claimed {} to {}{}", low, high, unit)
    return EMPTY


def _unit(claim: Claim) -> str:
    if claim.counts_trials:
        return " of the trials" if claim.kind is ClaimKind.FAILS else " of the trials within"
    return "" if claim.kind in _VALUES else " times"


def _figure(claim: Claim, value: float, at: str) -> Figure:
    return Figure(value, _form(claim), at)


def _form(claim: Claim) -> Form:
    if claim.counts_trials:
        return percent
    return in_metric(claim.metric) if claim.kind in _VALUES else _times


def _times(value: float) -> str:
    return digits(3 if value < 0.1 else 2 if value < 10 else 1)(value)


# --- published figures, each beside the cell that repeats it ----------------------------------------------


_CONTEXT = (
    "Published figures come from another machine and older versions. They are context: a claim is tested on "
    "an absolute figure only where it states one."
)

# A published figure beside the new one, and where the report's JSON has both.
Located = tuple[str, Beside]


def originals(reading: StudyResults) -> Iterator[Section]:
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


def _table(reading: StudyResults, pairs: Sequence[Located], notes: Footnotes) -> Table:
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
    reading: StudyResults, group: Group, name: str, pairs: Sequence[Located], scale: Scale, notes: Footnotes
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


def _here(reading: StudyResults, pair: Located, scale: Scale, notes: Footnotes) -> Entry:
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


def _not_repeated(reading: StudyResults) -> Section | None:
    """Return the published subjects that this study lacks; loads that were left out are not named."""
    repeated = {one.original.subject for one in reading.originals}
    names = [one.subject for one in reading.plan.originals if one.subject not in repeated]
    if not names:
        return None
    words = text("Published, but not measured here: {}.", listed(map(Name, dict.fromkeys(names)), most=12))
    return Section("", (Paragraph(words, Tone.QUIET),))
