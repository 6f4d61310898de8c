"""Why not more: of each subject what limits it, the evidence, and what to try (`prony why`)."""

from collections.abc import Iterable, Iterator

from prony.diagnosis import Diagnosis, Frequent, Resource
from prony.diagnosis.bounds import Bound
from prony.reading.limits import LimitedCell
from prony.report.confirmation import confirmation_blocks
from prony.report.diagnoses import cause_note, diagnosis_words, resource_words, ruled_out_words
from prony.report.document import Bars, Block, Column, Document, Entry, Notes, Paragraph, Section, Table, Tone
from prony.report.findings import finding_words
from prony.report.forms import count, digits, whole_percent
from prony.report.text import EMPTY, Figure, Name, Text, counted, pointer, text
from prony.report.thread_time import time_heading, time_rows
from prony.report.words import group_words
from prony.units import format_rate


def why_document(title: str, found: Iterable[LimitedCell]) -> Document:
    """Return what limits each of these subjects, under each of these loads, and why that is known."""
    return Document(text("{}", Name(title)), tuple(_section(one) for one in found))


def _section(one: LimitedCell) -> Section:
    heading = text("{}: {}", Name(one.name), group_words(one.group, one.place))
    if one.diagnosis is None:
        return Section(heading, (Paragraph("no trial says what limits it", Tone.WARNING),))
    return Section(heading, tuple(_blocks(one.diagnosis, one.pointer)))


def _blocks(found: Diagnosis, at: str) -> Iterator[Block]:
    yield Paragraph(
        text("{}.", diagnosis_words([(found, at)])), Tone.QUIET if found.is_unknown else Tone.STRONG
    )
    if found.cause is not None:
        where = at + pointer("cause")
        said = text("{}. {}", _seen(found.cause, found.trials, where), _meaning(found.cause, where))
        yield Notes((("", said),))
    rows = tuple(_row(found, resource, at) for resource in found.shares)
    if rows:
        yield _table(rows)
    if found.time:
        yield Paragraph(time_heading(found, at))
        yield Bars(tuple(time_rows(found, at)))
    if found.confirmation is not None:
        yield from confirmation_blocks(found.confirmation, at + pointer("confirmation"))
    yield Notes(tuple(("", words) for words in _remarks(found, at)))


def _table(rows: tuple[tuple[Entry, ...], ...]) -> Table:
    columns = (Column("resource", text=True), Column("used"), Column("allows"), Column("times this rate"))
    return Table(columns, rows)


def _row(found: Diagnosis, resource: Resource, at: str) -> tuple[Entry, ...]:
    used = Figure(found.shares[resource], whole_percent, at + pointer("shares", resource.value))
    bounds = {one.resource: place for place, one in enumerate(found.bounds)}
    place = bounds.get(resource)
    name = Entry(resource_words(resource))
    if place is None:
        return name, Entry(text("{}", used)), Entry("—"), Entry("—")
    bound, where = found.bounds[place], at + pointer("bounds", place)
    times = Figure(bound.times, digits(1), where + pointer("times"))
    return name, Entry(text("{}", used)), Entry(_allowed(bound, where)), Entry(text("{}", times))


def _allowed(bound: Bound, at: str) -> Text:
    mean = Figure(bound.per_s, format_rate, at + pointer("per_s"))
    if bound.low is None or bound.high is None:
        return text("{}", mean)
    low, high = (
        Figure(max(bound.low, 0.0), format_rate, at + pointer("low")),
        Figure(bound.high, format_rate, at + pointer("high")),
    )
    return text("{} ({} to {})", mean, low, high)


def _remarks(found: Diagnosis, at: str) -> Iterator[Text]:
    """Yield what is open at a time, what was ruled out, and the other findings."""
    if found.in_flight is not None:
        yield _in_flight(found, found.in_flight, at)
    ruled_out = ruled_out_words([(found, at)])
    if not found.is_unknown and found.ruled_out:
        yield text("{}.", ruled_out)
    for place, one in enumerate(found.beside):
        yield text("Beside it: {}", _note(one, found.trials, at + pointer("beside", place)))


def _in_flight(found: Diagnosis, in_flight: float, at: str) -> Text:
    opened = Figure(in_flight, digits(1), at + pointer("in_flight"))
    if found.slots is None:
        return text("{} requests were open at a time; how many it works on is not fixed.", opened)
    slots = Figure(found.slots, count, at + pointer("slots"))
    return text("{} requests were open at a time; it works on {} of them at most.", opened, slots)


def _note(one: Frequent, trials: int, at: str) -> Text:
    said = finding_words(one.finding, at + pointer("finding"))
    return text("{}: {}. {}", _seen(one, trials, at), said, _meaning(one, at))


def _meaning(one: Frequent, at: str) -> Text:
    return cause_note(one.finding, at + pointer("finding"))


def _seen(one: Frequent, trials: int, at: str) -> Text:
    """Return how sure a finding is, and in how many trials it was."""
    times = Figure(one.trials, count, at + pointer("trials"))
    return text("{}, in {} of {}", Name(one.finding.confidence.value), times, _trials(trials, at))


def _trials(trials: int, at: str) -> Text:
    diagnosis = at.partition("/diagnosis")[0] + "/diagnosis"
    return counted(Figure(trials, count, diagnosis + pointer("trials")), "trial") if trials else EMPTY
