"""The report of `prony selftest aa`: how many verdicts are false where nothing differs, and the floor."""

from collections.abc import Iterator, Sequence

from prony.analysis.noise_floor import LEAST_STUDIES, SelfTest
from prony.metrics import METRICS
from prony.report.document import Block, Column, Document, Entry, Notes, Paragraph, Section, Table, Tone
from prony.report.forms import count, percent
from prony.report.text import Figure, Name, Quote, Text, Words, pointer, text

__all__ = ["selftest_document"]

_COLUMNS = ("metric", "loop", "blocks", "false", "at most", "permuted, false", "noise floor")


def selftest_document(archive: str, tests: Sequence[SelfTest], kept: str | None) -> Document:
    """Return what self-tests show. ``archive``: what was read, in words; ``kept``: where the floors are, null
    when they are not kept.
    """
    title = text("Self-test: {}", Name(archive))
    if not tests:
        return Document(title, (Section("", (_verdict(tests),)),))
    rows = tuple(_row(one, pointer("tests", k)) for k, one in enumerate(tests))
    columns = tuple(Column(name, text=name in ("metric", "loop")) for name in _COLUMNS)
    head: list[Block] = [_verdict(tests), Table(columns, rows)]
    notes = Notes(tuple(("", note) for note in _notes(kept)))
    return Document(title, (Section("", tuple(head)), Section("Notes", (notes,))))


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


def _notes(kept: str | None) -> Iterator[Text]:
    yield text(
        "False: faster or slower although both are the same; at most: one-sided {} bound of that share.",
        Name("95 %"),
    )
    yield text("Permuted: studies made from these by swapping the two labels within blocks at random.")
    yield text(
        "Noise floor: what {} such effects do not exceed; verdicts on this machine ask for more.",
        Name("95 of 100"),
    )
    if kept:
        yield text("Floors are kept in {}.", Quote(kept, "/kept"))
    else:
        yield text("These floors are not kept: the subjects differ.")
