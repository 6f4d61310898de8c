"""The report of `prony selftest planted`: effects that are known, and what the verdicts made of them."""

from collections.abc import Iterator, Sequence

from prony.analysis.compare import Verdict
from prony.analysis.noise_floor import BLOCKS
from prony.analysis.planted import Planted, Power
from prony.metrics import METRICS
from prony.report.document import Block, Column, Document, Entry, Notes, Paragraph, Section, Table, Tone
from prony.report.forms import signed_percent
from prony.units import format_percent

__all__ = ["planted_document"]

_COLUMNS = ("planted", "expected", "effect", "interval", "bias", "covered", "verdict", "right")
_WORDS = {True: "yes", False: "no", None: "—"}
_NOTES = (
    "Planted: microseconds of the CPU that each request takes more than those of the base, by design.",
    "Expected: what that makes of the base's own measured CPU time, and time, per request.",
    "Bias: the effect less the expected one; covered: the interval holds the expected one.",
    "Found: verdicts that rightly say higher or lower, with the one-sided 95 % bound of their share.",
    "A plant whose effect is within the margin is not to be found.",
)


def planted_document(title: str, found: Sequence[Planted]) -> Document:
    """Return what became of planted effects: how large they appear, and how often they are found."""
    sections = [Section("", (_verdict(found),))]
    for metric in dict.fromkeys(one.metric for one in found):
        own = [one for one in found if one.metric == metric]
        heading = METRICS[metric].title
        sections.append(Section(heading[0].upper() + heading[1:], tuple(_metric(own))))
    return Document(title, (*sections, Section("Notes", (Notes(tuple(("", note) for note in _NOTES)),))))


def _metric(found: Sequence[Planted]) -> Iterator[Block]:
    columns = tuple(Column(name, text=name in ("verdict", "right")) for name in _COLUMNS)
    yield Table(columns, tuple(_row(one) for one in found))
    studies = tuple(_power(found, blocks) for blocks in BLOCKS if _of(found, blocks))
    if studies:
        plants = (
            Column(_size(one), "found in studies, and the least that their share may be") for one in found
        )
        yield Table((Column("blocks"), *plants, Column("wrong")), studies)


def _row(one: Planted) -> tuple[Entry, ...]:
    found = one.comparison
    interval = "—"
    if found.low is not None and found.high is not None:
        interval = f"{signed_percent(found.low)} to {signed_percent(found.high)}"
    tone = {True: Tone.GOOD, False: Tone.BAD, None: Tone.QUIET}[one.is_right]
    return (
        Entry(_size(one)),
        *(Entry(_percent(value)) for value in (one.expected, found.effect)),
        Entry(interval),
        Entry(_percent(one.bias)),
        Entry(_WORDS[one.covers]),
        Entry(one.reason or f"{found.verdict}", tone),
        Entry(_WORDS[one.is_right], tone),
    )


def _percent(value: float | None) -> str:
    return "—" if value is None else signed_percent(value)


def _of(found: Sequence[Planted], blocks: int) -> list[Power]:
    return [power for one in found for power in one.powers if power.blocks == blocks]


def _power(found: Sequence[Planted], blocks: int) -> tuple[Entry, ...]:
    """Return the power curve over the plants for studies of so many blocks."""
    shown = [next((power for power in one.powers if power.blocks == blocks), None) for one in found]
    every = _of(found, blocks)
    wrong = f"{sum(one.wrong for one in every)} of {sum(one.studies for one in every)}"
    return (Entry(f"{blocks}"), *(Entry(_share(one)) for one in shown), Entry(wrong))


def _share(power: Power | None) -> str:
    return f"{power.found} of {power.studies}, {format_percent(power.least)}" if power else "—"


def _size(one: Planted) -> str:
    return f"{one.extra_us} us"


def _verdict(found: Sequence[Planted]) -> Paragraph:
    wrong = [one for one in found if one.is_right is False]
    if wrong:
        names = ", ".join(f"{METRICS[one.metric].title} with {_size(one)}" for one in wrong)
        return Paragraph(f"Wrong verdicts: {names}.", Tone.BAD)
    if all(one.comparison.verdict is Verdict.TOO_FEW for one in found):
        return Paragraph("Nothing to tell: fewer than 5 blocks in which both count.", Tone.WARNING)
    covered = [one.covers for one in found if one.covers is not None]
    said = [one for one in found if one.is_right]
    text = (
        f"No verdict is wrong: {len(said)} of {len(found)} say what is so; {sum(covered)} of {len(covered)} "
        "intervals hold the expected effect."
    )
    return Paragraph(text, Tone.GOOD if said else Tone.QUIET)
