"""The report of `prony selftest planted`: effects that are known, and what the verdicts made of them."""

from collections.abc import Iterator, Sequence

from prony.analysis.compare import Verdict
from prony.analysis.planted import Planted, Power, Wrong, verdicts_of, wrong_by_blocks
from prony.metrics import METRICS
from prony.report.document import Block, Column, Document, Entry, Notes, Paragraph, Section, Table, Tone
from prony.report.forms import as_typed, count, percent, signed_percent
from prony.report.text import Figure, Name, Part, Quote, Text, joined, pointer, text
from prony.report.words import heading

_COLUMNS = ("planted", "expected", "effect", "interval", "bias", "covered", "verdict", "right")
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
    sections = [Section("", (_verdict(placed),))]
    for metric, wrong in wrong_by_blocks(found).items():
        own = [(one, at) for one, at in placed if one.metric == metric]
        blocks = tuple(_metric(own, wrong, pointer("studies", metric)))
        sections.append(Section(heading(METRICS[metric].title), blocks))
    notes = Section("Notes", (Notes(tuple(("", note) for note in _NOTES)),))
    return Document(text("Planted effects: {}", Name(archive)), (*sections, notes))


def _metric(found: Sequence[_Placed], wrong: Sequence[Wrong], at: str) -> Iterator[Block]:
    columns = tuple(Column(name, text=name in ("verdict", "right")) for name in _COLUMNS)
    yield Table(columns, tuple(_row(one, place) for one, place in found))
    if wrong:
        plants = (
            Column(_size(one, place), "found in studies, and the least that their share may be")
            for one, place in found
        )
        rows = tuple(_power(found, one, at + pointer(k)) for k, one in enumerate(wrong))
        yield Table((Column("blocks"), *plants, Column("wrong")), rows)


def _row(one: Planted, at: str) -> tuple[Entry, ...]:
    found = one.comparison
    interval = text("—")
    if found.low is not None and found.high is not None:
        low, high = _percent(found.low, at + pointer("low")), _percent(found.high, at + pointer("high"))
        interval = text("{} to {}", low, high)
    tone = {True: Tone.GOOD, False: Tone.BAD, None: Tone.QUIET}[one.is_right]
    verdict: Part = Quote(one.reason, at + pointer("reason")) if one.reason else found.verdict.value
    return (
        Entry(_size(one, at)),
        Entry(text("{}", _percent(one.expected, at + pointer("expected")))),
        Entry(text("{}", _percent(found.effect, at + pointer("effect")))),
        Entry(interval),
        Entry(text("{}", _percent(one.bias, at + pointer("bias")))),
        Entry(_WORDS[one.covers]),
        Entry(text("{}", verdict), tone),
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
    return text("—") if k is None else _found(one.powers[k], at + pointer("power", k))


def _found(power: Power, at: str) -> Text:
    return text(
        "{} of {}, {}",
        Figure(power.found, count, at + pointer("found")),
        Figure(power.studies, count, at + pointer("studies")),
        Figure(power.least, percent, at + pointer("least")),
    )


def _size(one: Planted, at: str) -> Text:
    return text("{} us", Figure(one.extra_us, as_typed, at + pointer("extra_us")))


def _verdict(found: Sequence[_Placed]) -> Paragraph:
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
        Figure(verdicts.covered, count, "/verdicts/covered"),
        Figure(verdicts.intervals, count, "/verdicts/intervals"),
    )
    return Paragraph(words, Tone.GOOD if verdicts.right else Tone.QUIET)
