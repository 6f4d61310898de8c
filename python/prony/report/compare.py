"""The report of a comparison: what is shown, then effect, interval and verdict, by metric and load."""

from collections.abc import Iterator, Mapping

from prony.core.metrics import METRICS, Better
from prony.figures.statistics.compare import HELD_BACK, NO_VERDICT, Verdict
from prony.figures.statistics.failure_rates import FailureComparison
from prony.figures.versus import (
    ComparedFigure,
    ComparedLoad,
    Family,
    LimitResult,
    Versus,
    Windows,
)
from prony.report.document import Block, Column, Document, Entry, Notes, Paragraph, Section, Table, Tone
from prony.report.forms import (
    as_typed,
    confidence,
    count,
    digits,
    in_metric,
    p_value,
)
from prony.report.sections.effects import comparison_entries
from prony.report.text import Figure, Name, Part, Quote, Text, counted, each_of, pointer, text
from prony.report.words import workload_words

_ALONE = (
    "A side has one load. Intervals are of the seconds within the loads: what differs from one load to the "
    "next is not in them, so there is no verdict."
)
# Less is not seen in figures of three digits.
_NOTEWORTHY = 1.1


def compare_document(found: Versus) -> Document:
    """Return the comparison as a document."""
    sections = [Section("", tuple(_head(found)))]
    sections += [_load(one, found, pointer("loads", k)) for k, one in enumerate(found.loads)]
    sections.append(Section("Notes", (Notes.of(_notes(found)),)))
    if found.limits:
        shown = tuple(_limit(one, found, k) for k, one in enumerate(found.limits))
        sections.append(Section("Limits", shown))
    return Document(text("{} against {}", Name(found.second), Name(found.first)), tuple(sections))


def _head(found: Versus) -> Iterator[Block]:
    if found.by_session:
        yield Paragraph(
            "Each of several sessions (a pause, another day or machine) counts once; fewer than "
            "five have a range, but no interval and no verdict.",
            Tone.WARNING,
        )
    if found.sides:
        yield from _of_loads(found)
    elif found.paired:
        paired = "Paired by block: both ran in the same blocks, one after the other"
        within = "" if found.by_session else "; intervals are of differences within one session"
        yield Paragraph(f"{paired}{within}.", Tone.QUIET)
    else:
        yield Paragraph(
            f"From two archives, {found.remark}; a difference may be that of two days.", Tone.WARNING
        )
    for k, difference in enumerate(found.forced):
        words = text("Compared by force although they differ: {}.", Quote(difference, pointer("forced", k)))
        yield Paragraph(words, Tone.WARNING)


# --- loads ------------------------------------------------------------------------------------------------


def _of_loads(found: Versus) -> Iterator[Block]:
    """Yield what is special of loads in turns, or of saved ones, and of each side what went wrong."""
    if found.windows is not None and found.windows.dropped:
        yield Paragraph(_interrupted(found.windows), Tone.WARNING)
    if found.windows is None:
        has_scatter = min(len(side.files) for side in found.sides) > 1
        scatter = f"From saved loads, {found.remark}; a difference may be that of two days."
        yield Paragraph(scatter if has_scatter else _ALONE, Tone.WARNING)
    unit = "load" if found.windows is None else "window"
    for place, (name, side) in enumerate(zip((found.first, found.second), found.sides, strict=True)):
        at = pointer("sides", place)
        if side.limited:
            limited = counted(Figure(side.limited, count, at + pointer("limited")), unit)
            words = "{}: the generator may have been the limit in {}: differences may be hidden."
            yield Paragraph(text(words, Name(name), limited), Tone.WARNING)
        if side.errors:
            errors = Figure(side.errors, count, at + pointer("errors"))
            requests = counted(Figure(side.requests, count, at + pointer("requests")), "request")
            words = "{}: {} of {} were not answered as expected."
            yield Paragraph(text(words, Name(name), errors, requests), Tone.BAD)


def _interrupted(windows: Windows) -> Text:
    """Return what is left of a comparison that was broken off: a window without its pair says nothing."""
    return text(
        "Interrupted: the figures are of the {} of {} that ran to their end; dropped: {} of the next one.",
        Figure(windows.pairs, count, "/windows/pairs"),
        counted(Figure(windows.asked, count, "/windows/asked"), "pair"),
        counted(Figure(windows.dropped, count, "/windows/dropped"), "window"),
    )


def _alike(found: Versus, windows: Windows) -> Iterator[Text]:
    """Yield how much wider the interval is that decides, because pairs may resemble their neighbours."""
    deciding = found.loads[0].deciding
    alike = windows.resemblance.get(deciding[0]) if deciding else None
    if deciding is None or alike is None or alike.widening < _NOTEWORTHY:
        return
    at = pointer("windows", "resemblance", deciding[0])
    parts = each_of(alike, at, digits(1), "correlation", "most", "widening")
    words = "Neighbouring pairs may resemble each other ({}: r = {}, taken as {}): its interval is {} times"
    yield text(f"{words} as wide.", Name(METRICS[deciding[0]].title), *parts)


# --- what is shown ----------------------------------------------------------------------------------------


def _answer(load: ComparedLoad, found: Versus, at: str) -> Iterator[Block]:
    """Yield whether the sides are separated, in the figure that the comparison was made for."""
    if load.deciding is None:
        return
    name, one = load.deciding
    verdict = one.comparison.verdict if one.comparison else None
    of = at + pointer("metrics", name)
    sides = Name(found.second), Name(found.first), Name(METRICS[name].title)
    if verdict is None or verdict in NO_VERDICT:
        why: Part = (
            Quote(one.reason, of + pointer("reason")) if one.reason else Name(str(verdict or "not compared"))
        )
        words = text("No verdict on {} and {} in {}: {}.", *sides, why)
    elif verdict in (Verdict.HIGHER, Verdict.LOWER):
        is_better = METRICS[name].better is (Better.HIGHER if verdict is Verdict.HIGHER else Better.LOWER)
        words = text(f"{{}} is {'better' if is_better else 'worse'} than {{}} in {{}}.", *sides)
    elif verdict is Verdict.EQUIVALENT:
        words = text("{} and {} are equivalent in {}.", *sides)
    elif verdict in HELD_BACK:
        words = text("{} and {} are not separated in {}; {}.", *sides, Name(verdict.value))
    else:
        words = text("{} and {} are not separated in {}.", *sides)
    yield Paragraph(words, Tone.STRONG)


_SCREENING = text(
    "Screening: the comparison was not designed for these; about {} of the differences found are false.",
    Name("5 %"),
)


def _load(one: ComparedLoad, found: Versus, at: str) -> Section:
    blocks = list(_answer(one, found, at))
    for family in Family:
        rows = {name: figure for name, figure in one.metrics.items() if figure.family is family}
        if rows and family is Family.SCREENING:
            blocks.append(Paragraph(_SCREENING, Tone.QUIET))
        if rows:
            blocks.append(_table(rows, at))
    if not found.sides:
        at_failed = at + pointer("failed_trials")
        blocks.append(_failures(one.failed_trials, at_failed, by_session=found.by_session))
    load = workload_words(one.workload, at + pointer("workload"))
    same = one.first == one.second
    return Section(text("{}: {}", Name(one.first), load) if same else load, tuple(blocks))


_COLUMNS = ("metric", "effect", "interval", "verdict", "n", "first", "second")


def _table(rows: Mapping[str, ComparedFigure], at: str) -> Table:
    columns = tuple(Column(title, text=title in ("metric", "verdict")) for title in _COLUMNS)
    return Table(columns, tuple(_row(name, one, at + pointer("metrics", name)) for name, one in rows.items()))


def _row(name: str, one: ComparedFigure, at: str) -> tuple[Entry, ...]:
    sides = (("first", one.first), ("second", one.second))
    values = (
        Entry("—" if value is None else text("{}", Figure(value, in_metric(name), at + pointer(side))))
        for side, value in sides
    )
    why = Quote(one.reason, at + pointer("reason")) if one.reason else None
    compared = comparison_entries(name, one.comparison, at + pointer("comparison"), why)
    return (Entry(METRICS[name].title), *compared, *values)


def _failures(found: FailureComparison, at: str, *, by_session: bool) -> Paragraph:
    first, second = (
        text("{} of {}", *each_of(one, at + pointer(side), count, "failed", "total"))
        for side, one in (("first", found.first), ("second", found.second))
    )
    what = "Sessions in which trials failed" if by_session else "Trials that failed"
    words = text(f"{what}: {{}}, and {{}}", first, second)
    if not found.first.failed and not found.second.failed:
        return Paragraph(text("{}.", words), Tone.QUIET)
    differ = "they differ" if found.differs else "no difference shown"
    chance = Figure(found.p_value, p_value, at + pointer("p_value"))
    return Paragraph(text(f"{{}}: {{}} ({found.method}, p = {{}}).", words, differ, chance), Tone.WARNING)


# --- how --------------------------------------------------------------------------------------------------


def _notes(found: Versus) -> Iterator[Text]:
    if found.windows is not None:
        pairs = counted(Figure(found.windows.pairs, count, "/windows/pairs"), "pair")
        seed = Figure(found.windows.seed, as_typed, "/windows/seed")
        yield text("{} of windows, one of each side, in random order (seed {}).", pairs, seed)
        yield from _alike(found, found.windows)
    compared = [
        (one.comparison, pointer("loads", k, "metrics", name, "comparison", "level"))
        for k, load in enumerate(found.loads)
        for name, one in load.metrics.items()
        if one.comparison is not None
    ]
    if methods := dict.fromkeys(one.method for one, _ in compared):
        yield text("Effect: the second divided by the first, minus one; {}.", Name(", ".join(methods)))
    if levels := sorted((one.level, at) for one, at in compared if one.low is not None):
        least, most = (Figure(level, confidence, at) for level, at in (levels[-1], levels[0]))
        shown = text("{}", least) if levels[0][0] == levels[-1][0] else text("{} to {}", least, most)
        yield text("Intervals are at the level of each verdict: {}.", shown)
    yield text("All others are one family over all loads, with levels by Holm's procedure.")
    if found.then is not None:
        yield text("Next: {}.", Quote(found.then, "/then"))


def _limit(one: LimitResult, found: Versus, number: int) -> Paragraph:
    """Return what came of a limit: each has a result for each load, in their order."""
    place, at = number % len(found.loads), pointer("limits", number)
    load = found.loads[place]
    words = workload_words(load.workload, pointer("loads", place, "workload"))
    tone = {True: Tone.BAD, False: Tone.GOOD, None: Tone.WARNING}[one.shown]
    limit, reason = Quote(one.limit, at + pointer("limit")), Quote(one.reason, at + pointer("reason"))
    return Paragraph(text("{}: {} ({}: {})", limit, reason, Name(load.second), words), tone)
