"""The report of `prony calibrate`: what each of Prony's parts costs, and which limits hold."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from prony.calibration import Calibration, Change, Holding, PartFigure, PartResult
from prony.report.document import (
    Block,
    Column,
    Document,
    Entry,
    Notes,
    Paragraph,
    Section,
    Table,
    Tone,
)
from prony.report.forms import signed_percent
from prony.units import format_duration, format_percent

__all__ = ["calibration_document", "change_words", "summary"]

_MISSING = "—"
_SHORT = {"ok_per_s": "replies/s", "service_ok_p99": "p99"}


def calibration_document(calibration: Calibration) -> Document:
    """Return the report: a section for each part, in the order in which they were measured."""
    head = Section(
        "",
        (
            Paragraph(calibration.machine, Tone.QUIET),
            Paragraph(
                f"{_day(calibration)}, {calibration.effort}, Prony {calibration.prony_version}", Tone.QUIET
            ),
        ),
    )
    return Document("Calibration", (head, *(_section(part) for part in calibration.parts.values())))


def summary(calibration: Calibration) -> tuple[Block, ...]:
    """Return the calibration in a few lines, for the report of the machine."""
    lines = [
        f"{change.name}: {change_words(change)}"
        for part in calibration.parts.values()
        for change in part.changes
        if change.metric == "ok_per_s"
    ]
    lines += [
        f"{figure.name}: {_value(figure, figure.value)}"
        for part in calibration.parts.values()
        for figure in part.figures
        if figure.unit == "ratio"
    ]
    said = Notes(tuple(("", line) for line in lines))
    return (Paragraph(f"Of {_day(calibration)}, {calibration.effort}:", Tone.QUIET), said)


def change_words(change: Change) -> str:
    """Return a change with its interval and verdict: ``replies/s -0.4 % [-1.1 %, +0.3 %], not shown``."""
    short = _SHORT.get(change.metric, change.metric)
    if change.effect is None:
        return f"{short} not measured"
    return f"{short} {signed_percent(change.effect)} {_interval(change)}, {change.verdict}"


def _day(calibration: Calibration) -> str:
    return datetime.fromtimestamp(calibration.made_unix_s, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _section(part: PartResult) -> Section:
    return Section(part.title, tuple(_blocks(part)))


def _blocks(part: PartResult) -> Iterator[Block]:
    if part.changes:
        yield _changes(part.changes)
        yield Notes((("", _terms(part.changes)),))
    if part.figures:
        yield _figures(part.figures)
    remarks = [
        *_held(part.holdings),
        *(f"{name}: not measured: {reason}" for name, reason in part.missing.items()),
        *part.notes,
    ]
    if remarks:
        yield Notes(tuple(("", remark) for remark in remarks))


def _held(holdings: Iterable[Holding]) -> Iterator[str]:
    """Yield how far limits hold, with the evidence; limits with the same evidence share a line."""
    alike: dict[tuple[str, str], list[str]] = {}
    for one in holdings:
        alike.setdefault((one.holding, one.reason), []).append(one.name)
    for (holding, reason), names in alike.items():
        yield f"{', '.join(names)}: {holding}: {reason}"


def _changes(changes: Iterable[Change]) -> Table:
    columns = (
        Column("what", text=True),
        Column("of", text=True),
        Column("changed by"),
        Column("interval"),
        Column("verdict", text=True),
    )
    return Table(columns, tuple(_change_row(change) for change in changes))


def _change_row(change: Change) -> tuple[Entry, ...]:
    return (
        Entry(change.name),
        Entry(_SHORT.get(change.metric, change.metric)),
        Entry(_MISSING if change.effect is None else signed_percent(change.effect)),
        Entry(_interval(change)),
        Entry(change.verdict),
    )


def _terms(changes: Sequence[Change]) -> str:
    """Return what the intervals of a table mean."""
    blocks = sorted({change.blocks for change in changes})
    said = str(blocks[0]) if len(blocks) == 1 else f"{blocks[0]} to {blocks[-1]}"
    return (
        f"Each row compares the server with and without one part, in pairs from {said} blocks. The intervals "
        f"allow for {len(changes)} comparisons at 5 % together (Holm)."
    )


def _interval(change: Change) -> str:
    if change.low is None or change.high is None:
        return _MISSING
    return f"[{signed_percent(change.low)}, {signed_percent(change.high)}]"


def _figures(figures: Iterable[PartFigure]) -> Table:
    columns = (Column("what", text=True), Column("mean"), Column("95 % interval"), Column("samples"))
    rows = [
        (
            Entry(figure.name),
            Entry(_value(figure, figure.value)),
            Entry(f"[{_value(figure, figure.low)}, {_value(figure, figure.high)}]"),
            Entry(str(figure.count)),
        )
        for figure in figures
    ]
    return Table(columns, tuple(rows))


def _value(figure: PartFigure, value: float) -> str:
    return format_duration(value) if figure.unit == "duration" else format_percent(value)
