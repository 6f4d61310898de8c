"""The processes of each subject: number by role, memory of one and of all together.

Listeners that share an address (SO_REUSEPORT): one may be full while the others are empty.
"""

from collections.abc import Iterator, Mapping, Sequence

from prony.core.units import Scale, bytes_scale
from prony.figures.accept_queue import SharedAddress
from prony.figures.missing import Missing
from prony.figures.resources import LEAST_UNSAMPLED_PERCENT
from prony.figures.summary import CellSummary, Estimate, means
from prony.model.workload import CountStop
from prony.reading.cells import fullest_addresses
from prony.reading.study import StudyResults
from prony.report.document import Column, Entry, Footnotes, Notes, Paragraph, Section, Table, Tone
from prony.report.forms import as_typed, count
from prony.report.tables import Place, figure_entry
from prony.report.text import Figure, Name, Text, each_of, framed, pointer, text
from prony.report.words import group_words

_MEANING = (
    "The kernel gives each new connection to one of them by a hash of the addresses, whether its worker is "
    "free or not. The figures are from the trial with the fullest queue."
)


def listeners(reading: StudyResults) -> Iterator[Section]:
    """Yield the subjects with several listeners at one address, under each load planned for verdicts."""
    for place, group in enumerate(reading.groups):
        if not group.primary or group.of_generators:
            continue
        lines = tuple(
            ("", line)
            for number, cell in enumerate(group.cells)
            for line in _lines(cell, pointer("groups", place, "cells", number))
        )
        if lines:
            where = framed(", ", group_words(group, place)) if len(reading.groups) > 1 else ""
            blocks = (Notes(lines), Paragraph(_MEANING, Tone.QUIET))
            yield Section(text("Listeners that share an address{}", where), blocks)


def _lines(cell: CellSummary, at: str) -> Iterator[Text]:
    for k, one in enumerate(fullest_addresses(cell)):
        of = at + pointer("shared_addresses", k)
        number = Figure(one.count, count, of + pointer("count"))
        parts = (Name(cell.name), number, Name(one.process), _queues(one, of))
        yield text("{}: {} listeners of the {}, {}", *parts)


def _queues(one: SharedAddress, at: str) -> Text:
    if not one.longest:
        return text("all queues empty in every sample")
    figures = each_of(one, at, count, "longest", "limit", "others")
    return text("longest queue {} of {}, of the others at most {}", *figures)


_PLAIN = Scale(1, "")
_UNSAMPLED = "cpu_unsampled_percent"
_WHY_UNSAMPLED = (
    "CPU of processes that lived between two samples, and of others after their last sample: Prony counts it "
    "for the whole subject, but does not know the role"
)
_EACH = {"rss_per_process": "RSS", "pss_per_process": "PSS", "vsz_per_process": "VSZ"}
_ALL = {"rss_peak": "RSS peak", "pss_end": "PSS", "vsz_peak": "VSZ peak"}
_IN_ALL = "total"
_Metrics = Mapping[str, Estimate | Missing]


def processes(reading: StudyResults) -> Iterator[Section]:
    """Yield the processes of subjects with several roles, under each load that verdicts were planned for."""
    for place, group in enumerate(reading.groups):
        cells = [
            Place(cell, pointer("groups", place, "cells", number))
            for number, cell in enumerate(group.cells)
            if cell.ok and cell.roles
        ]
        several = any(len(one.cell.roles) > 1 or _has_unsampled(one) for one in cells)
        if (
            cells
            and group.primary
            and not group.of_generators
            and (several or isinstance(group.workload.stop, CountStop))
        ):
            where = framed(", ", group_words(group, place)) if len(reading.groups) > 1 else ""
            yield _section(text("Processes by role{}", where), cells)


def _section(heading: Text, cells: Sequence[Place]) -> Section:
    notes = Footnotes()
    scale = _scale(cells)
    rows = tuple(row for one in cells for row in _rows(one, scale, notes))
    each, every = f"each at the end, {scale.unit}", f"together, {scale.unit}"
    columns = (
        *(Column("subject", text=True), Column("role", text=True), Column("most"), Column("CPU %")),
        *(Column(title, each) for title in _EACH.values()),
        *(Column(title, every) for title in _ALL.values()),
    )
    return Section(heading, (Table(columns, rows), notes.notes()))


def _rows(one: Place, scale: Scale, notes: Footnotes) -> Iterator[tuple[Entry, ...]]:
    named: dict[str, tuple[str, _Metrics]] = {
        role: (one.at + pointer("roles", role), metrics) for role, metrics in one.cell.roles.items()
    }
    if len(named) > 1 or _has_unsampled(one):
        named[_IN_ALL] = (one.at + pointer("metrics"), one.cell.metrics)
    for number, (role, (at, metrics)) in enumerate(named.items()):
        if role == _IN_ALL and _has_unsampled(one):
            yield _unsampled(one, notes)
        subject = Entry(text("{}", Name(one.cell.name)) if not number else "")
        cpu = _figure(metrics, "cpu_percent", _PLAIN, at, notes)
        # A mean over master, workers and frontend would mean nothing.
        each = [Entry("") if role == _IN_ALL else _figure(metrics, name, scale, at, notes) for name in _EACH]
        every = [_figure(metrics, name, scale, at, notes) for name in _ALL]
        yield subject, Entry.of(Name(role)), _most(metrics, at, notes), cpu, *each, *every


def _has_unsampled(one: Place) -> bool:
    value = one.cell.known(_UNSAMPLED)
    return value is not None and value.mean >= LEAST_UNSAMPLED_PERCENT


def _unsampled(one: Place, notes: Footnotes) -> tuple[Entry, ...]:
    """Return the row of the CPU that no sample shows: with it the roles add up."""
    cpu = _figure(one.cell.metrics, _UNSAMPLED, _PLAIN, one.at + pointer("metrics"), notes)
    marked = Entry(notes.marked(cpu.text, _WHY_UNSAMPLED))
    return Entry(""), Entry("between samples"), Entry(""), marked, *(Entry("") for _ in (*_EACH, *_ALL))


def _scale(cells: Sequence[Place]) -> Scale:
    found = [metrics.get("rss_per_process") for one in cells for metrics in one.cell.roles.values()]
    return bytes_scale(means(found))


def _figure(metrics: _Metrics, name: str, scale: Scale, at: str, notes: Footnotes) -> Entry:
    if name not in metrics:
        return Entry(notes.marked("—", "not measured by role"), Tone.QUIET)
    return figure_entry(metrics[name], scale, at + pointer(name), notes)


def _most(metrics: _Metrics, at: str, notes: Footnotes) -> Entry:
    value = metrics.get("processes_max")
    if not isinstance(value, Estimate):
        return _figure(metrics, "processes_max", _PLAIN, at, notes)
    return Entry.of(Figure(value.max, as_typed, at + pointer("processes_max", "max")))
