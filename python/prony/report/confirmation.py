"""What a close look says of a diagnosis, in words: a paragraph, and a table of the busiest threads.

The only place that has these words. `at` is where the report's JSON has the confirmation.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from prony.diagnosis import Agreement, Confirmation
from prony.report.document import Block, Column, Entry, Notes, Paragraph, Table, Tone
from prony.report.forms import count, digits, whole_percent
from prony.report.text import Figure, Name, Quote, Text, counted, pointer, text
from prony.units import format_duration

_SAYS: Mapping[Agreement, str] = MappingProxyType(
    {
        Agreement.CONFIRMS: "A close look, in a trial of its own, confirms it",
        Agreement.CONTRADICTS: "A close look, in a trial of its own, speaks against it",
        Agreement.SILENT: "A close look, in a trial of its own, neither confirms it nor speaks against it",
    }
)
_TIMES = ("running_ns", "preempted_ns", "blocked_ns")


def confirmation_blocks(found: Confirmation, at: str) -> Iterator[Block]:
    """Yield what a close look saw, and what it says of the diagnosis."""
    tone = Tone.WARNING if found.agreement is Agreement.CONTRADICTS else Tone.PLAIN
    yield Paragraph(text("{}.", _seen(found, at)), tone)
    if found.busiest:
        yield _table(found, at)
    notes = tuple(_notes(found, at))
    if notes:
        yield Notes(tuple(("", one) for one in notes))


def _seen(found: Confirmation, at: str) -> Text:
    says = _SAYS[found.agreement]
    if found.running is None or found.preempted is None or found.blocked is None:
        return text("{}", says)
    shares = (
        Figure(share, whole_percent, at + pointer(name))
        for name, share in (
            ("running", found.running),
            ("preempted", found.preempted),
            ("blocked", found.blocked),
        )
    )
    cores = Figure(found.running_cores or 0.0, digits(2), at + pointer("running_cores"))
    threads = counted(Figure(found.threads, count, at + pointer("threads")), "thread")
    return text(
        "{}: of their time its {} ran {} ({} cores), were preempted {} and waited {}",
        *(says, threads, next(shares), cores, next(shares), next(shares)),
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


def _table(found: Confirmation, at: str) -> Table:
    names = ("busiest threads", "ran", "preempted", "waited", "times preempted", "times waited")
    columns = (Column(names[0], text=True), *(Column(name) for name in names[1:]))
    return Table(columns, tuple(_rows(found, at)))


def _rows(found: Confirmation, at: str) -> Iterator[tuple[Entry, ...]]:
    for place, one in enumerate(found.busiest):
        where = at + pointer("busiest", place)
        times = (one.running_ns, one.preempted_ns, one.blocked_ns)
        shown = (
            Figure(value, format_duration, where + pointer(name))
            for name, value in zip(_TIMES, times, strict=True)
        )
        counts = (
            Figure(one.preemptions, count, where + pointer("preemptions")),
            Figure(one.waits, count, where + pointer("waits")),
        )
        yield Entry(text("{}", Name(one.name))), *(Entry(text("{}", each)) for each in (*shown, *counts))
