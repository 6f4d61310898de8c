"""Why not more: of each subject what limits it, the evidence, and what to try (`prony why`).

What a close look says of a diagnosis, in words: a paragraph, and a table of the busiest threads.

The only place that has these words. `at` is where the report's JSON has the confirmation.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from prony.core.units import format_duration, format_rate
from prony.diagnosis.conclusion import Diagnosis, Frequent
from prony.diagnosis.confirmation import Agreement, Confirmation
from prony.diagnosis.consumption import Bound, Resource
from prony.diagnosis.time_spent import PageCode, PageSpot
from prony.model.facts import CodeKind
from prony.reading.limits import LimitedCell
from prony.report.diagnoses import (
    cause_note,
    diagnosis_words,
    resource_words,
    ruled_out_words,
    time_heading,
    time_rows,
)
from prony.report.document import (
    Bars,
    Block,
    Column,
    Document,
    Entry,
    Notes,
    Paragraph,
    Section,
    Table,
    Tone,
    headed,
)
from prony.report.findings import finding_words
from prony.report.forms import about_percent, count, digits, whole_percent
from prony.report.text import EMPTY, Figure, Name, Quote, Text, Words, counted, each_of, joined, pointer, text
from prony.report.words import group_words

_SAYS: Mapping[Agreement, str] = MappingProxyType(
    {
        Agreement.CONFIRMS: "A close look, in a trial of its own, confirms it",
        Agreement.CONTRADICTS: "A close look, in a trial of its own, speaks against it",
        Agreement.SILENT: "A close look, in a trial of its own, neither confirms it nor speaks against it",
    }
)
# Of a page that is mostly on its way there and back when it is alone, nothing is known.
_LEAST_AT_A_TIME = 0.5
_TIMES = ("running_ns", "preempted_ns", "blocked_ns")


def confirmation_blocks(found: Confirmation, at: str) -> Iterator[Block]:
    """Yield what a close look saw, and what it says of the diagnosis."""
    tone = Tone.WARNING if found.agreement is Agreement.CONTRADICTS else Tone.PLAIN
    yield Paragraph(text("{}.", _seen_close(found, at)), tone)
    if found.busiest:
        yield _confirmation_table(found, at)
    if notes := tuple(_notes(found, at)):
        yield Notes.of(notes)


def _seen_close(found: Confirmation, at: str) -> Text:
    says = _SAYS[found.agreement]
    if found.running is None or found.preempted is None or found.blocked is None:
        return text("{}", says)
    ran, preempted, waited = each_of(found, at, whole_percent, "running", "preempted", "blocked")
    cores = Figure(found.running_cores or 0.0, digits(2), at + pointer("running_cores"))
    threads = counted(Figure(found.threads, count, at + pointer("threads")), "thread")
    return text(
        "{}: of their time its {} ran {} ({} cores), were preempted {} and waited {}",
        *(says, threads, ran, cores, preempted, waited),
    )


def _notes(found: Confirmation, at: str) -> Iterator[Text]:
    if found.held is not None:
        held = Figure(found.held, whole_percent, at + pointer("held"))
        yield text("CPython's lock was held at {} of the looks.", held)
    if found.lost:
        lost = counted(Figure(found.lost, count, at + pointer("lost")), "record")
        yield text("The kernel had no room for {} of switches.", lost)
    for place, reason in enumerate(found.missing):
        yield text("Not seen: {}.", Quote(reason, at + pointer("missing", place)))


def _confirmation_table(found: Confirmation, at: str) -> Table:
    names = ("busiest threads", "ran", "preempted", "waited", "times preempted", "times waited")
    return Table(headed(*names, words=names[:1]), tuple(_rows(found, at)))


def _rows(found: Confirmation, at: str) -> Iterator[tuple[Entry, ...]]:
    for place, one in enumerate(found.busiest):
        where = at + pointer("busiest", place)
        shown = each_of(one, where, format_duration, *_TIMES)
        counts = each_of(one, where, count, "preemptions", "waits")
        yield Entry.of(Name(one.name)), *(Entry.of(each) for each in (*shown, *counts))


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
        columns = (Column("resource", text=True), Column("used"), Column("allows"), Column("times this rate"))
        yield Table(columns, rows)
    if found.time:
        yield Paragraph(time_heading(found, at))
        yield Bars(tuple(time_rows(found, at)))
    if found.code is not None:
        yield from code_blocks(found.code, at + pointer("code"))
    if found.confirmation is not None:
        yield from confirmation_blocks(found.confirmation, at + pointer("confirmation"))
    yield Notes.of(_remarks(found, at))


_OWNERS: Mapping[CodeKind, str] = MappingProxyType(
    {
        CodeKind.APP: "the app",
        CodeKind.LIBRARY: "its framework and packages",
        CodeKind.SERVER: "the server",
        CodeKind.RUNTIME: "garbage collection",
    }
)
_SPOTS = headed("in", "the app's line", "CPU of a page", "share", words=("in", "the app's line"))


def code_blocks(found: PageCode, at: str) -> Iterator[Block]:
    """Yield which code uses the CPU, or why that is not known."""
    if found.missing:
        why = Quote(found.missing, at + pointer("missing"))
        yield Paragraph(text("Which code uses the CPU is not known: {}.", why))
        return
    parts = [
        text("{} {}", _OWNERS[kind], Figure(share, about_percent, at + pointer("shares", kind.value)))
        for kind, share in found.shares.items()
    ]
    samples = counted(Figure(found.samples, count, at + pointer("samples")), "sample")
    said = "Which code uses the CPU, by {} of its stacks after the window: {}."
    yield Paragraph(text(said, samples, joined(parts)))
    if found.hottest:
        spots = ((one, at + pointer("hottest", place)) for place, one in enumerate(found.hottest))
        yield Table(_SPOTS, tuple(_spot_row(one, where) for one, where in spots))
    if notes := tuple(_code_notes(found, at)):
        yield Notes.of(notes)


def _spot_row(found: PageSpot, at: str) -> tuple[Entry, ...]:
    share = text("{}", Figure(found.share, about_percent, at + pointer("share")))
    called = text("{}", Name(found.place)) if found.place else "—"
    cpu: Words = "—"
    if found.cpu_ns is not None:
        cpu = text("{}", Figure(found.cpu_ns, format_duration, at + pointer("cpu_ns")))
    return Entry.of(Name(found.function)), Entry(called), Entry(cpu), Entry(share)


def _code_notes(found: PageCode, at: str) -> Iterator[Text]:
    if found.times_server is not None:
        times = Figure(found.times_server, digits(1), at + pointer("times_server"))
        yield text("A page costs {} times what the server itself does for it.", times)
    if found.slowed is not None:
        slowed = Figure(found.slowed, whole_percent, at + pointer("slowed"))
        yield text("The rate fell by {} while stacks were sampled; no figure above is from then.", slowed)


def _row(found: Diagnosis, resource: Resource, at: str) -> tuple[Entry, ...]:
    used = Figure(found.shares[resource], whole_percent, at + pointer("shares", resource.value))
    bounds = {one.resource: place for place, one in enumerate(found.bounds)}
    place = bounds.get(resource)
    name = Entry(resource_words(resource))
    if place is None:
        return name, Entry.of(used), Entry("—"), Entry("—")
    bound, where = found.bounds[place], at + pointer("bounds", place)
    times = Figure(bound.times, digits(1), where + pointer("times"))
    return name, Entry.of(used), Entry(_allowed(bound, where)), Entry.of(times)


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
    opened = text("{} requests were open at a time", Figure(in_flight, digits(1), at + pointer("in_flight")))
    if found.at_a_time is not None and found.at_a_time >= _LEAST_AT_A_TIME:
        worked = Figure(found.at_a_time, digits(1), at + pointer("at_a_time"))
        opened = text("{}, and it worked on {} of them (by how long one takes alone)", opened, worked)
    if found.slots is None:
        return text("{}; how many it can work on is not fixed.", opened)
    return text(
        "{}; it can work on {} of them at most.", opened, Figure(found.slots, count, at + pointer("slots"))
    )


def _note(one: Frequent, trials: int, at: str) -> Text:
    said = finding_words(one.finding, at + pointer("finding"))
    return text("{}: {}. {}", _seen(one, trials, at), said, _meaning(one, at))


def _meaning(one: Frequent, at: str) -> Text:
    return cause_note(one.finding, one.finding.confidence, at + pointer("finding"))


def _seen(one: Frequent, trials: int, at: str) -> Text:
    """Return how sure a finding is, and in how many trials it was."""
    times = Figure(one.trials, count, at + pointer("trials"))
    return text("{}, in {} of {}", Name(one.finding.confidence.value), times, _trials(trials, at))


def _trials(trials: int, at: str) -> Text:
    diagnosis = at.partition("/diagnosis")[0] + "/diagnosis"
    return counted(Figure(trials, count, diagnosis + pointer("trials")), "trial") if trials else EMPTY
