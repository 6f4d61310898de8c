"""The report of two loads in alternating windows: each figure with its difference, interval and verdict."""

from collections.abc import Iterator
from dataclasses import dataclass

from prony.analysis.compare import Comparison, Verdict
from prony.analysis.load_pairs import FigurePair, LoadPairs, SideTotals
from prony.metrics import METRICS, Better
from prony.report.document import Block, Column, Document, Entry, Notes, Paragraph, Section, Table, Tone
from prony.report.forms import as_typed, confidence, count, digits, in_metric, signed_percent
from prony.report.text import Figure, Name, Quote, Text, counted, joined, pointer, text

__all__ = ["ComparedLoads", "load_pairs_document"]

# Less is not seen in figures of three digits.
_NOTEWORTHY = 1.1


@dataclass(frozen=True, slots=True)
class ComparedLoads:
    """What was compared, as typed, and what came of it. ``asked``: pairs that were asked for. ``limited``:
    windows in which the generator may have been the limit. ``dropped``: of a comparison that was interrupted,
    the windows of the pair that was under way; 0: it ran to its end.
    """

    first: str
    second: str
    seed: int
    asked: int
    found: LoadPairs
    limited: int
    dropped: int


def load_pairs_document(compared: ComparedLoads) -> Document:
    """Return the comparison as a document: the second against the first."""
    title = text("{} against {}", Name(compared.second), Name(compared.first))
    notes = Notes(tuple(("", note) for note in _notes(compared)))
    return Document(title, (Section("", tuple(_head(compared))), Section("Notes", (notes,))))


def _head(compared: ComparedLoads) -> Iterator[Block]:
    found = compared.found
    yield Paragraph(_answer(compared), Tone.STRONG)
    if compared.dropped:
        yield Paragraph(_interrupted(compared), Tone.WARNING)
    if compared.limited:
        windows = counted(Figure(compared.limited, count, "/limited_windows"), "window")
        words = text("The generator may have been the limit in {}: differences may be hidden.", windows)
        yield Paragraph(words, Tone.WARNING)
    for name, side in (("first", found.first), ("second", found.second)):
        if side.errors:
            yield Paragraph(_errors(compared, name, side), Tone.BAD)
    rows = tuple(_row(one, pointer("figures", k)) for k, one in enumerate(found.figures))
    titles = ("figure", "difference", "interval", "verdict", "first", "second", "pairs")
    yield Table(tuple(Column(each, text=each in ("figure", "verdict")) for each in titles), rows)


def _interrupted(compared: ComparedLoads) -> Text:
    """Return what is left of a comparison that was broken off: a window without its pair says nothing."""
    return text(
        "Interrupted: the figures are of the {} of {} that ran to their end; dropped: {} of the next one.",
        Figure(compared.found.pairs, count, "/pairs"),
        counted(Figure(compared.asked, count, "/asked_pairs"), "pair"),
        counted(Figure(compared.dropped, count, "/dropped_windows"), "window"),
    )


def _answer(compared: ComparedLoads) -> Text:
    """Return whether they are separated, in the figure that the comparison was made for."""
    found = compared.found
    if not all(side.is_qualified for side in (found.first, found.second)):
        return text("No verdict on speed: too many requests failed; the figures are of the successes only.")
    main = found.deciding
    title = METRICS[main.metric].title
    second, first = Name(compared.second), Name(compared.first)
    match main.comparison.verdict:
        case Verdict.HIGHER | Verdict.LOWER as verdict:
            better = METRICS[main.metric].better is (
                Better.HIGHER if verdict is Verdict.HIGHER else Better.LOWER
            )
            word = "better" if better else "worse"
            return text(f"{{}} is {word} than {{}} in {{}}.", second, first, Name(title))
        case Verdict.EQUIVALENT:
            return text("{} and {} are equivalent in {}.", second, first, Name(title))
        case Verdict.TOO_FEW:
            return text("No verdict on {} and {}: too few pairs have a {}.", second, first, Name(title))
        case _:
            return text("{} and {} are not separated in {}.", second, first, Name(title))


def _errors(compared: ComparedLoads, name: str, side: SideTotals) -> Text:
    at = pointer(name)
    return text(
        "{}: {} of {} were not answered as expected.",
        Name(compared.first if name == "first" else compared.second),
        Figure(side.errors, count, at + pointer("errors")),
        counted(Figure(side.requests, count, at + pointer("requests")), "request"),
    )


def _row(one: FigurePair, at: str) -> tuple[Entry, ...]:
    return (
        Entry(METRICS[one.metric].title),
        *_difference(one.comparison, at + pointer("comparison")),
        _verdict(one, at),
        _value(one.metric, one.first, at + pointer("first")),
        _value(one.metric, one.second, at + pointer("second")),
        Entry(text("{}", Figure(one.pairs, count, at + pointer("pairs")))),
    )


def _difference(found: Comparison, at: str) -> tuple[Entry, Entry]:
    if found.effect is None or found.low is None or found.high is None:
        return Entry("—", Tone.QUIET), Entry("—", Tone.QUIET)
    effect, low, high = (
        Figure(value, signed_percent, at + pointer(name))
        for name, value in (("effect", found.effect), ("low", found.low), ("high", found.high))
    )
    return Entry(text("{}", effect)), Entry(text("{} to {}", low, high))


def _verdict(one: FigurePair, at: str) -> Entry:
    if one.comparison.verdict is Verdict.TOO_FEW and one.reason:
        return Entry(text("{}", Quote(one.reason, at + pointer("reason"))), Tone.QUIET)
    return Entry(text("{}", one.comparison.verdict.value))


def _value(metric: str, value: float | None, at: str) -> Entry:
    return Entry("—" if value is None else text("{}", Figure(value, in_metric(metric), at)))


def _notes(compared: ComparedLoads) -> Iterator[Text]:
    pairs = counted(Figure(compared.found.pairs, count, "/pairs"), "pair")
    seed = Figure(compared.seed, as_typed, "/seed")
    yield text("{} of windows, one of each side, in random order (seed {}).", pairs, seed)
    yield text("Difference: the second over the first, less one, from the logs of the ratio in each pair.")
    yield from _resemblance(compared)
    levels = {f"{one.comparison.level}": (one, k) for k, one in enumerate(compared.found.figures)}
    shown = (
        Figure(one.comparison.level, confidence, pointer("figures", k, "comparison", "level"))
        for one, k in levels.values()
    )
    words = joined(text("{}", each) for each in shown)
    yield text("Intervals: {}; one family over the figures, its levels by Holm's procedure.", words)


def _resemblance(compared: ComparedLoads) -> Iterator[Text]:
    """Yield how much wider the interval is that decides, because pairs may resemble their neighbours."""
    found = compared.found
    alike = found.deciding.resemblance
    if alike is None or alike.widening < _NOTEWORTHY:
        return
    at = pointer("figures", found.figures.index(found.deciding), "resemblance")
    parts = (
        Name(METRICS[found.deciding.metric].title),
        Figure(alike.correlation, digits(1), at + pointer("correlation")),
        Figure(alike.most, digits(1), at + pointer("most")),
        Figure(alike.widening, digits(1), at + pointer("widening")),
    )
    words = (
        "Neighbouring pairs may resemble each other ({}: r = {}, taken as {}): its interval is {} times as"
    )
    yield text(f"{words} wide.", *parts)
