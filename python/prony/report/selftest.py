"""The report of `prony selftest aa`: how many verdicts are false where nothing differs, and the floor."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count as naturals

from prony.analysis.noise_floor import LEAST_STUDIES, SelfTest
from prony.analysis.self_tests import Procedure
from prony.metrics import METRICS
from prony.model.shapes import at
from prony.report.document import Column, Document, Entry, Notes, Paragraph, Section, Table, Tone
from prony.report.forms import count, percent
from prony.report.text import Figure, Name, Quote, Text, Words, pointer, text

_COLUMNS = ("metric", "loop", "blocks", "false", "at most", "pairs permuted, false", "noise floor")
_DRAWN = ("subject", "loop", "metric", "names", "blocks", "false", "at most", "all covered", "p too small by")


@dataclass(frozen=True, slots=True)
class SelfTests:
    """What an archive shows of the procedure."""

    archive: str
    """What was read, in words."""
    tests: Sequence[SelfTest]
    """Of real studies and floors."""
    drawn: Sequence[Procedure] = field(metadata=at("procedure"))
    """The procedure on names that were drawn again."""
    kept: str | None
    """Where the floors are, null when they are not kept."""


def selftest_document(shown: SelfTests) -> Document:
    """Return what self-tests show."""
    title, tests = text("Self-test: {}", Name(shown.archive)), shown.tests
    if not tests:
        return Document(title, (Section("", (_verdict(tests),)),))
    notes = Notes(tuple(("", note) for note in _notes(shown)))
    real = Section(
        "Real studies, and the floor", (_verdict(tests), _table(_COLUMNS, map(_row, tests, _at("tests"))))
    )
    return Document(title, (*_procedure(shown.drawn), real, Section("Notes", (notes,))))


def _at(key: str) -> Iterator[str]:
    return (pointer(key, k) for k in naturals())


def _table(names: Sequence[str], rows: Iterable[tuple[Entry, ...]]) -> Table:
    columns = tuple(Column(name, text=name in ("subject", "metric", "loop")) for name in names)
    return Table(columns, tuple(rows))


# --- names that are drawn again ---------------------------------------------------------------------------


def _procedure(drawn: Sequence[Procedure]) -> Iterator[Section]:
    if drawn:
        rows = map(_drawn, drawn, _at("procedure"))
        yield Section("The procedure on these data", (_rate(drawn), _table(_DRAWN, rows)))


def _rate(drawn: Sequence[Procedure]) -> Paragraph:
    worst = max(range(len(drawn)), key=lambda k: drawn[k].found.rate)
    found, at = drawn[worst].found, pointer("procedure", worst)
    rate = Figure(found.rate, percent, at + pointer("rate"))
    most = Figure(found.most, percent, at + pointer("most"))
    if found.holds:
        return Paragraph(
            text("Equals are called different in {} of studies: at most {}.", rate, most), Tone.GOOD
        )
    return Paragraph(
        text("Equals are called different in {} of studies: more than {}.", rate, most), Tone.BAD
    )


def _drawn(one: Procedure, at: str) -> tuple[Entry, ...]:
    found = one.found
    false = _of((found.false, "false"), (found.studies, "studies"), at)
    numbers = (
        Figure(found.names, count, at + pointer("names")),
        Figure(found.blocks, count, at + pointer("blocks")),
    )
    shares = tuple(
        Figure(getattr(found, name), percent, at + pointer(name))
        for name in ("bound", "coverage", "too_small")
    )
    names, blocks = (text("{}", number) for number in numbers)
    bound, covered, too_small = (text("{}", share) for share in shares)
    cells: tuple[Words, ...] = (one.subject, one.load, METRICS[one.metric].title, names, blocks)
    return tuple(map(Entry, (*cells, false, bound, covered, too_small)))


# --- real studies -----------------------------------------------------------------------------------------


def _row(one: SelfTest, at: str) -> tuple[Entry, ...]:
    real = _of((one.false, "false"), (one.studies, "studies"), at) if one.studies else text("—")
    bound = text("—")
    if one.bound is not None:
        bound = text("{}", Figure(one.bound, percent, at + pointer("bound")))
    permuted = _of((one.permuted_false, "permuted_false"), (one.permuted, "permuted"), at)
    blocks = text("{}", Figure(one.blocks, count, at + pointer("blocks")))
    floor = text("{}", Figure(one.floor, percent, at + pointer("noise_floor")))
    cells: tuple[Words, ...] = (METRICS[one.metric].title, one.load, blocks, real, bound, permuted)
    return (*map(Entry, cells), Entry(floor, Tone.STRONG))


def _of(part: tuple[int, str], whole: tuple[int, str], at: str) -> Text:
    first, second = (Figure(value, count, at + pointer(name)) for value, name in (part, whole))
    return text("{} of {}", first, second)


def _verdict(tests: Sequence[SelfTest]) -> Paragraph:
    if not tests:
        few = text("No verdict: fewer than {} blocks in which both count.", Name("5"))
        return Paragraph(few, Tone.WARNING)
    worse = [one for one in tests if one.shown is False]
    if worse:
        names = ", ".join(dict.fromkeys(METRICS[one.metric].title for one in worse))
        return Paragraph(text("More than {} of verdicts are false here: {}.", _MOST, names), Tone.BAD)
    if any(one.shown for one in tests):
        words = text("At most {} false verdicts are shown where the bound says so.", _MOST)
        return Paragraph(words, Tone.GOOD)
    return Paragraph(_few_studies(tests), Tone.QUIET)


_MOST = Name("5 %")


def _few_studies(tests: Sequence[SelfTest]) -> Text:
    most = max(range(len(tests)), key=lambda k: tests[k].studies)
    return text(
        "That at most {} of verdicts are false is not shown: {} real studies of {} needed.",
        _MOST,
        Figure(tests[most].studies, count, pointer("tests", most, "studies")),
        Name(str(LEAST_STUDIES)),
    )


def _notes(shown: SelfTests) -> Iterator[Text]:
    if shown.drawn:
        yield from _drawn_notes(shown.drawn[0], pointer("procedure", 0))
    yield from _real_notes(shown.kept)


def _drawn_notes(one: Procedure, at: str) -> Iterator[Text]:
    yield text(
        "The procedure on these data: in each of {} studies the names are drawn again within each block, and "
        "the study is judged as any other, its leader chosen from it. All covered: no interval is wrong.",
        Figure(one.found.studies, count, at + pointer("studies")),
    )
    yield text(
        "P too small by: how far the share of p-values below any p exceeds p; by chance up to {}.",
        Figure(one.found.chance, percent, at + pointer("chance")),
    )


def _real_notes(kept: str | None) -> Iterator[Text]:
    yield text(
        "False: some name is called higher or lower although all are the same; at most: one-sided {} bound "
        "of that share.",
        Name("95 %"),
    )
    yield text("Pairs permuted: studies of two names, made by swapping their labels within blocks at random.")
    yield text(
        "Noise floor: what {} such effects do not exceed; a dry run foresees by it what a study finds here.",
        Name("95 of 100"),
    )
    if kept:
        yield text("Floors are kept in {}.", Quote(kept, "/kept"))
    else:
        yield text("These floors are not kept: the subjects differ.")
