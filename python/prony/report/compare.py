"""The report of `prony compare`: effect, interval and verdict in each metric at each load."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from prony.analysis.change import LimitResult
from prony.analysis.compare import Comparison, Verdict
from prony.analysis.failure_rates import FailureComparison
from prony.analysis.summary import CellSummary, Estimate
from prony.analysis.versus import Match, Row, Versus
from prony.metrics import METRICS, Better, format_metric
from prony.report.document import Block, Column, Document, Entry, Notes, Paragraph, Section, Table, Tone
from prony.report.forms import signed_percent

__all__ = ["UNPAIRED", "Sides", "compare_document"]

UNPAIRED = "unpaired: includes machine drift"


@dataclass(frozen=True, slots=True)
class Sides:
    """What is compared, in words: ``second`` with ``first``. ``forced``: differences that were accepted."""

    first: str
    second: str
    forced: tuple[str, ...] = ()


def compare_document(sides: Sides, found: Versus, limits: Sequence[LimitResult]) -> Document:
    """Return the comparison as a document."""
    sections = [Section("", tuple(_head(sides, found)))]
    sections += [_load(match, found, k) for k, match in enumerate(found.matches)]
    sections.append(Section("Notes", (Notes(tuple(("", note) for note in _notes(found))),)))
    if limits:
        sections.append(Section("Limits", tuple(_limit(one) for one in limits)))
    return Document(f"{sides.second} against {sides.first}", tuple(sections))


def _head(sides: Sides, found: Versus) -> Iterator[Block]:
    if found.paired:
        yield Paragraph("Paired by block: both ran in the same blocks, one after the other.", Tone.QUIET)
    else:
        text = f"From two archives, {UNPAIRED}; a difference may be that of two days."
        yield Paragraph(text[0].upper() + text[1:], Tone.WARNING)
    for difference in sides.forced:
        yield Paragraph(f"Compared by force although they differ: {difference}.", Tone.WARNING)


_COLUMNS = ("metric", "effect", "interval", "verdict", "first", "second")
_SCREENING = "Screening: not what the comparison was made for; of what it finds, about 5 % are false."


def _load(match: Match, found: Versus, place: int) -> Section:
    rows = [row for row in found.rows if row.match is match]
    primary, screened = ([row for row in rows if row.screens is screens] for screens in (False, True))
    blocks: list[Block] = [_table(primary)] if primary else [Paragraph("Nothing to compare that both have.")]
    if screened:
        blocks += [Paragraph(_SCREENING, Tone.QUIET), _table(screened)]
    blocks.append(_failures(found.failures[place]))
    first, second = match.first.cell, match.second.cell
    names = {first.subject.name, second.subject.name}
    load = first.workload.describe()
    # A subject's name is written as it is typed.
    heading = f"{first.subject.name}, {load}" if len(names) == 1 else load[0].upper() + load[1:]
    return Section(heading, tuple(blocks))


def _table(rows: Sequence[Row]) -> Table:
    columns = tuple(Column(title, text=title in ("metric", "verdict")) for title in _COLUMNS)
    return Table(columns, tuple(_row(row) for row in rows))


def _row(row: Row) -> tuple[Entry, ...]:
    values = [_value(cell, row.metric) for cell in (row.match.first, row.match.second)]
    title = Entry(METRICS[row.metric].title)
    found = row.comparison
    if found is None or found.effect is None or found.low is None or found.high is None:
        dash = Entry("—", Tone.QUIET)
        return title, dash, dash, Entry(row.reason or "not compared", Tone.QUIET), *values
    interval = f"{signed_percent(found.low)} to {signed_percent(found.high)}"
    effect, verdict = Entry(signed_percent(found.effect)), _verdict(row.metric, found)
    return title, effect, Entry(interval), verdict, *values


def _value(cell: CellSummary, metric: str) -> Entry:
    value = cell.metrics[metric]
    return Entry(format_metric(metric, value.mean) if isinstance(value, Estimate) else "—")


def _verdict(metric: str, found: Comparison) -> Entry:
    text = f"{found.verdict}"
    if found.verdict is Verdict.NOT_SHOWN and found.blocks_needed:
        text += f", would need about {found.blocks_needed} blocks"
    return Entry(text, _tone(metric, found.verdict))


def _tone(metric: str, verdict: Verdict) -> Tone:
    if verdict not in (Verdict.HIGHER, Verdict.LOWER):
        return Tone.PLAIN
    better = Verdict.HIGHER if METRICS[metric].better is Better.HIGHER else Verdict.LOWER
    return Tone.GOOD if verdict is better else Tone.BAD


def _failures(found: FailureComparison) -> Paragraph:
    counts = [f"{one.failed} of {one.total}" for one in (found.first, found.second)]
    differ = "they differ" if found.differs else "no difference shown"
    text = f"Trials that failed: {counts[0]}, and {counts[1]}"
    if not found.first.failed and not found.second.failed:
        return Paragraph(f"{text}.", Tone.QUIET)
    return Paragraph(f"{text}: {differ} (Fisher's exact test, p = {found.p_value:.2g}).", Tone.WARNING)


def _notes(found: Versus) -> Iterator[str]:
    methods = dict.fromkeys(row.comparison.method for row in found.rows if row.comparison)
    if methods:
        yield f"Effect: the second over the first, less 1; {', '.join(methods)}."
    levels = sorted({1 - row.comparison.level for row in found.rows if row.comparison})
    if levels:
        several = f" to {100 * levels[-1]:.3g} %" if levels[-1] > levels[0] else ""
        yield f"Intervals are at the level of each verdict: {100 * levels[0]:.3g} %{several}."
    yield "What is not a screening is one family over all loads, its levels by Holm's procedure."


def _limit(one: LimitResult) -> Paragraph:
    tone = {True: Tone.BAD, False: Tone.GOOD, None: Tone.WARNING}[one.shown]
    where = f"{one.match.second.cell.subject.name}, {one.match.second.cell.workload.describe()}"
    return Paragraph(f"{one.limit.text}: {one.reason} ({where})", tone)
