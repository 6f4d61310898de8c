"""The report of `prony compare`: effect, interval and verdict in each metric at each load."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from prony.analysis.change import LimitResult
from prony.analysis.compare import Comparison, Verdict
from prony.analysis.failure_rates import FailureComparison, Failures
from prony.analysis.summary import CellSummary, Estimate
from prony.analysis.versus import Match, Row, Versus
from prony.metrics import METRICS, Better
from prony.report.document import Block, Column, Document, Entry, Notes, Paragraph, Section, Table, Tone
from prony.report.forms import confidence, count, in_metric, p_value, signed_percent
from prony.report.sections.effects import bounds_words, range_words
from prony.report.text import EMPTY, Figure, Name, Part, Quote, Text, pointer, text
from prony.report.words import workload_words

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
        shown = tuple(_limit(one, found, pointer("limits", k)) for k, one in enumerate(limits))
        sections.append(Section("Limits", shown))
    return Document(text("{} against {}", Name(sides.second), Name(sides.first)), tuple(sections))


def _head(sides: Sides, found: Versus) -> Iterator[Block]:
    if found.by_session:
        yield Paragraph(
            "Of several sessions (a pause, another day or machine) each counts once; fewer than five have "
            "the range of what they show, no interval and no verdict.",
            Tone.WARNING,
        )
    if found.paired:
        paired = "Paired by block: both ran in the same blocks, one after the other"
        within = "" if found.by_session else "; intervals are of differences within one session"
        yield Paragraph(f"{paired}{within}.", Tone.QUIET)
    else:
        drift = f"From two archives, {UNPAIRED}; a difference may be that of two days."
        yield Paragraph(drift, Tone.WARNING)
    for k, difference in enumerate(sides.forced):
        words = text("Compared by force although they differ: {}.", Quote(difference, pointer("forced", k)))
        yield Paragraph(words, Tone.WARNING)


_COLUMNS = ("metric", "effect", "interval", "verdict", "first", "second")
_SCREENING = text(
    "Screening: not what the comparison was made for; of what it finds, about {} are false.", Name("5 %")
)


def _load(match: Match, found: Versus, place: int) -> Section:
    at = pointer("loads", place)
    rows = [row for row in found.rows if row.match is match]
    primary, screened = ([row for row in rows if row.screens is screens] for screens in (False, True))
    blocks: list[Block] = (
        [_table(primary, at)] if primary else [Paragraph("Nothing to compare that both have.")]
    )
    if screened:
        blocks += [Paragraph(_SCREENING, Tone.QUIET), _table(screened, at)]
    failed = found.failures[place]
    blocks.append(_failures(failed, at + pointer("failed_trials"), by_session=found.by_session))
    return Section(_heading(match, at), tuple(blocks))


def _heading(match: Match, at: str) -> Text:
    first, second = match.first.cell, match.second.cell
    load = workload_words(first.workload, at + pointer("workload"))
    same = first.subject.name == second.subject.name
    return text("{}: {}", Name(first.subject.name), load) if same else load


def _table(rows: Sequence[Row], at: str) -> Table:
    columns = tuple(Column(title, text=title in ("metric", "verdict")) for title in _COLUMNS)
    return Table(columns, tuple(_row(row, at + pointer("metrics", row.metric)) for row in rows))


def _row(row: Row, at: str) -> tuple[Entry, ...]:
    sides = (("first", row.match.first), ("second", row.match.second))
    values = [_value(cell, row.metric, at + pointer(side)) for side, cell in sides]
    title = Entry(METRICS[row.metric].title)
    found, of = row.comparison, at + pointer("comparison")
    spread = EMPTY if found is None else bounds_words(found, of) or _range(found, of)
    if found is None or found.effect is None or not spread:
        dash = Entry("—", Tone.QUIET)
        why: Part = Quote(row.reason, at + pointer("reason")) if row.reason else "not compared"
        return title, dash, dash, Entry(text("{}", why), Tone.QUIET), *values
    effect = text("{}", Figure(found.effect, signed_percent, of + pointer("effect")))
    return title, Entry(effect), Entry(spread), _verdict(row.metric, found, of), *values


def _range(found: Comparison, at: str) -> Text:
    """Return the range of single sessions, called that; empty where there is none."""
    spans = range_words(found, at)
    return text("range {}", spans) if spans else EMPTY


def _value(cell: CellSummary, metric: str, at: str) -> Entry:
    value = cell.metrics[metric]
    return Entry(
        text("{}", Figure(value.mean, in_metric(metric), at)) if isinstance(value, Estimate) else "—"
    )


def _verdict(metric: str, found: Comparison, at: str) -> Entry:
    return Entry(text("{}", found.verdict.value), _tone(metric, found.verdict))


def _tone(metric: str, verdict: Verdict) -> Tone:
    if verdict not in (Verdict.HIGHER, Verdict.LOWER):
        return Tone.PLAIN
    better = Verdict.HIGHER if METRICS[metric].better is Better.HIGHER else Verdict.LOWER
    return Tone.GOOD if verdict is better else Tone.BAD


def _failures(found: FailureComparison, at: str, *, by_session: bool) -> Paragraph:
    first, second = (
        _of(one, at + pointer(side)) for side, one in (("first", found.first), ("second", found.second))
    )
    what = "Sessions in which trials failed" if by_session else "Trials that failed"
    words = text(f"{what}: {{}}, and {{}}", first, second)
    if not found.first.failed and not found.second.failed:
        return Paragraph(text("{}.", words), Tone.QUIET)
    differ = "they differ" if found.differs else "no difference shown"
    chance = Figure(found.p_value, p_value, at + pointer("p_value"))
    return Paragraph(text(f"{{}}: {{}} ({found.method}, p = {{}}).", words, differ, chance), Tone.WARNING)


def _of(found: Failures, at: str) -> Text:
    failed = Figure(found.failed, count, at + pointer("failed"))
    return text("{} of {}", failed, Figure(found.total, count, at + pointer("total")))


def _notes(found: Versus) -> Iterator[Text]:
    compared = [(_place(found, row), row.comparison) for row in found.rows if row.comparison]
    methods = dict.fromkeys(one.method for _, one in compared)
    if methods:
        yield text("Effect: the second over the first, less one; {}.", Name(", ".join(methods)))
    levels = sorted((one.level, at) for at, one in compared if one.low is not None)
    if levels:
        yield text("Intervals are at the level of each verdict: {}.", _levels(levels[0], levels[-1]))
    yield text("What is not a screening is one family over all loads, its levels by Holm's procedure.")


def _levels(lowest: tuple[float, str], highest: tuple[float, str]) -> Text:
    most, least = (Figure(level, confidence, at + pointer("level")) for level, at in (lowest, highest))
    return text("{}", least) if lowest[0] == highest[0] else text("{} to {}", least, most)


def _place(found: Versus, row: Row) -> str:
    """Return where the JSON has the comparison of a row."""
    return pointer("loads", _number(found, row.match), "metrics", row.metric, "comparison")


def _number(found: Versus, match: Match) -> int:
    return [id(one) for one in found.matches].index(id(match))


def _limit(one: LimitResult, found: Versus, at: str) -> Paragraph:
    tone = {True: Tone.BAD, False: Tone.GOOD, None: Tone.WARNING}[one.shown]
    at_load = pointer("loads", _number(found, one.match), "workload")
    load, subject = workload_words(one.match.first.cell.workload, at_load), one.match.second.cell.subject
    limit, reason = Quote(one.limit.text, at + pointer("limit")), Quote(one.reason, at + pointer("reason"))
    return Paragraph(text("{}: {} ({}: {})", limit, reason, Name(subject.name), load), tone)
