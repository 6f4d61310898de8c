"""The report of `prony selftest aa`: how many verdicts are false where nothing differs, and the floor.

The report of `prony selftest planted`: effects that are known, and what the verdicts made of them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count as naturals

from prony.core.metrics import METRICS
from prony.figures.noise_floor import LEAST_STUDIES, Procedure, SelfTest
from prony.figures.planted import Planted, Wrong, verdicts_of, wrong_by_blocks
from prony.figures.statistics.compare import Verdict
from prony.model.json_codec import at
from prony.report.document import Block, Column, Document, Entry, Notes, Paragraph, Section, Table, Tone
from prony.report.forms import as_typed, count, percent, signed_percent
from prony.report.text import Figure, Name, Part, Quote, Text, Words, each_of, joined, pointer, text
from prony.report.words import heading

_PLANTED_COLUMNS = ("planted", "expected", "effect", "interval", "bias", "covered", "verdict", "right")
_WORDS = {True: "yes", False: "no", None: "—"}
_NOTES = (
    "Planted: the CPU time that was added to each request of the base, in microseconds.",
    "Expected: the effect of that, computed from the base's measured CPU time, and time, per request.",
    "Bias: the effect minus the expected one; covered: the interval contains the expected one.",
    text(
        "Found: verdicts that rightly say higher or lower, with the one-sided {} bound of their share.",
        Name("95 %"),
    ),
    "Prony need not find a plant whose effect is within the margin.",
)

_Placed = tuple[Planted, str]
"""A plant, and where the JSON has it."""


def planted_document(archive: str, found: Sequence[Planted]) -> Document:
    """Return what became of planted effects: how large they appear, and how often they are found.

    ``archive``: what was read, in words.
    """
    placed = [(one, pointer("plants", k)) for k, one in enumerate(found)]
    sections = [Section("", (_planted_verdict(placed),))]
    for metric, wrong in wrong_by_blocks(found).items():
        own = [(one, at) for one, at in placed if one.metric == metric]
        blocks = tuple(_metric(own, wrong, pointer("studies", metric)))
        sections.append(Section(heading(METRICS[metric].title), blocks))
    notes = Section("Notes", (Notes.of(_NOTES),))
    return Document(text("Planted effects: {}", Name(archive)), (*sections, notes))


def _metric(found: Sequence[_Placed], wrong: Sequence[Wrong], at: str) -> Iterator[Block]:
    columns = tuple(Column(name, text=name in ("verdict", "right")) for name in _PLANTED_COLUMNS)
    yield Table(columns, tuple(_planted_row(one, place) for one, place in found))
    if wrong:
        plants = (
            Column(_size(one, place), "found in studies, and the least that their share may be")
            for one, place in found
        )
        rows = tuple(_power(found, one, at + pointer(k)) for k, one in enumerate(wrong))
        yield Table((Column("blocks"), *plants, Column("wrong")), rows)


def _planted_row(one: Planted, at: str) -> tuple[Entry, ...]:
    found = one.comparison
    interval = text("—")
    if found.low is not None and found.high is not None:
        low, high = _percent(found.low, at + pointer("low")), _percent(found.high, at + pointer("high"))
        interval = text("{} to {}", low, high)
    tone = {True: Tone.GOOD, False: Tone.BAD, None: Tone.QUIET}[one.is_right]
    verdict: Part = Quote(one.reason, at + pointer("reason")) if one.reason else found.verdict.value
    return (
        Entry(_size(one, at)),
        Entry.of(_percent(one.expected, at + pointer("expected"))),
        Entry.of(_percent(found.effect, at + pointer("effect"))),
        Entry(interval),
        Entry.of(_percent(one.bias, at + pointer("bias"))),
        Entry(_WORDS[one.covers]),
        Entry.of(verdict, tone),
        Entry(_WORDS[one.is_right], tone),
    )


def _percent(value: float | None, at: str) -> Part:
    return "—" if value is None else Figure(value, signed_percent, at)


def _power(found: Sequence[_Placed], wrong: Wrong, at: str) -> tuple[Entry, ...]:
    """Return the power curve over the plants for studies of so many blocks."""
    shown = (Entry(_share(one, place, wrong.blocks)) for one, place in found)
    failed = Figure(wrong.wrong, count, at + pointer("wrong"))
    total = text("{} of {}", failed, Figure(wrong.studies, count, at + pointer("studies")))
    blocks = text("{}", Figure(wrong.blocks, count, at + pointer("blocks")))
    return Entry(blocks), *shown, Entry(total)


def _share(one: Planted, at: str, blocks: int) -> Text:
    k = next((k for k, power in enumerate(one.powers) if power.blocks == blocks), None)
    if k is None:
        return text("—")
    found, where = one.powers[k], at + pointer("power", k)
    least = Figure(found.least, percent, where + pointer("least"))
    return text("{} of {}, {}", *each_of(found, where, count, "found", "studies"), least)


def _size(one: Planted, at: str) -> Text:
    return text("{} us", Figure(one.extra_us, as_typed, at + pointer("extra_us")))


def _planted_verdict(found: Sequence[_Placed]) -> Paragraph:
    wrong = [
        text("{} with {}", METRICS[one.metric].title, _size(one, at))
        for one, at in found
        if one.is_right is False
    ]
    if wrong:
        return Paragraph(text("Wrong verdicts: {}.", joined(wrong)), Tone.BAD)
    if all(one.comparison.verdict is Verdict.TOO_FEW for one, _ in found):
        few = text("No verdict: fewer than {} blocks in which both count.", Name("5"))
        return Paragraph(few, Tone.WARNING)
    verdicts = verdicts_of([one for one, _ in found])
    words = text(
        "No verdict is wrong: {} of {} say what is so; {} of {} intervals hold the expected effect.",
        Figure(verdicts.right, count, "/verdicts/right"),
        Figure(len(found), count, "/plants"),
        *each_of(verdicts, "/verdicts", count, "covered", "intervals"),
    )
    return Paragraph(words, Tone.GOOD if verdicts.right else Tone.QUIET)


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
    notes = Notes.of(_notes(shown))
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
    rate, most = each_of(found, at, percent, "rate", "most")
    words, tone = ("at most", Tone.GOOD) if found.holds else ("more than", Tone.BAD)
    return Paragraph(text(f"Equals are called different in {{}} of studies: {words} {{}}.", rate, most), tone)


def _drawn(one: Procedure, at: str) -> tuple[Entry, ...]:
    found = one.found
    false = _of((found.false, "false"), (found.studies, "studies"), at)
    numbers = each_of(found, at, count, "names", "blocks")
    shares = each_of(found, at, percent, "bound", "coverage", "too_small")
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
