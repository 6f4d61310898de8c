"""The report of `prony selftest aa`: how many verdicts are false where nothing differs, and the floor."""

from collections.abc import Iterator, Sequence

from prony.analysis.noise_floor import LEAST_STUDIES, SelfTest
from prony.metrics import METRICS
from prony.report.document import Block, Column, Document, Entry, Notes, Paragraph, Section, Table, Tone
from prony.units import format_percent

__all__ = ["selftest_document"]

_COLUMNS = ("metric", "loop", "blocks", "false", "at most", "permuted, false", "noise floor")


def selftest_document(title: str, tests: Sequence[SelfTest], kept: str | None) -> Document:
    """Return what self-tests show; ``kept``: where the floors are, null when they are not kept."""
    if not tests:
        return Document(title, (Section("", (_verdict(tests),)),))
    rows = tuple(_row(one) for one in tests)
    columns = tuple(Column(name, text=name in ("metric", "loop")) for name in _COLUMNS)
    head: list[Block] = [_verdict(tests), Table(columns, rows)]
    return Document(title, (Section("", tuple(head)), Section("Notes", (Notes(tuple(_notes(kept))),))))


def _row(one: SelfTest) -> tuple[Entry, ...]:
    real = f"{one.false} of {one.studies}" if one.studies else "—"
    bound = "—" if one.bound is None else format_percent(one.bound)
    permuted = f"{one.permuted_false} of {one.permuted}"
    cells = (METRICS[one.metric].title, one.load, str(one.blocks), real, bound, permuted)
    return (*map(Entry, cells), Entry(format_percent(one.floor), Tone.STRONG))


def _verdict(tests: Sequence[SelfTest]) -> Paragraph:
    if not tests:
        return Paragraph("Nothing to tell: fewer than 5 blocks in which both count.", Tone.WARNING)
    most = max(one.studies for one in tests)
    worse = [one for one in tests if one.shown is False]
    if worse:
        names = ", ".join(dict.fromkeys(METRICS[one.metric].title for one in worse))
        return Paragraph(f"More than 5 % of verdicts are false here: {names}.", Tone.BAD)
    if any(one.shown for one in tests):
        return Paragraph("At most 5 % false verdicts are shown where the bound says so.", Tone.GOOD)
    text = (
        f"That at most 5 % of verdicts are false is not shown: {most} real studies of {LEAST_STUDIES} needed."
    )
    return Paragraph(text, Tone.QUIET)


def _notes(kept: str | None) -> Iterator[tuple[str, str]]:
    yield (
        "",
        "False: faster or slower although both are the same; at most: one-sided 95 % bound of that share.",
    )
    yield "", "Permuted: studies made from these by swapping the two labels within blocks at random."
    yield "", "Noise floor: what 95 of 100 such effects do not exceed; verdicts on this machine ask for more."
    yield "", f"Floors are kept in {kept}." if kept else "These floors are not kept: the subjects differ."
