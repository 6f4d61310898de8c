"""Remarks on the sandbox: network, CPUs, the server's limits, and whether they held.

The processes of each subject: number by role, memory of one and of all together.

Listeners that share an address (SO_REUSEPORT): one may be full while the others are empty.
"""

from collections.abc import Iterator, Mapping, Sequence

from prony.core.units import Scale, bytes_scale
from prony.figures.accept_queue import SharedAddress
from prony.figures.missing import Missing
from prony.figures.resources import LEAST_UNSAMPLED_PERCENT
from prony.figures.summary import CellSummary, Estimate, means
from prony.model.sandbox import LimitHolding, LimitState, Network, SandboxChoice, SandboxFacts, SandboxKind
from prony.model.workload import CountStop
from prony.reading.cells import fullest_addresses
from prony.reading.study import StudyResults
from prony.report.document import Column, Entry, Footnotes, Notes, Paragraph, Section, Table, Tone
from prony.report.forms import as_typed, byte_size, count, percent
from prony.report.tables import Place, figure_entry
from prony.report.text import EMPTY, Figure, Name, Part, Text, counted, each_of, framed, joined, pointer, text
from prony.report.words import group_words

_HOLDERS = {
    SandboxKind.PROCESS: "Requested limits:",
    SandboxKind.CGROUP: "A control group limited the server to",
    SandboxKind.CONTAINER: "A container limited the server and its companions to",
}

_EXHAUSTIBLE = {"memory": "memory", "pids": "processes", "disk": "disk space"}


def sandbox_notes(reading: StudyResults) -> Iterator[Text]:
    """Yield the remarks on the sandbox of a study."""
    yield from _network_notes(reading)
    yield from _placement_notes(reading)
    yield from _limit_notes(reading)
    whole = "CPU: {} is one core; on loopback, part of the network work is billed to the generator."
    yield text(whole, Name("100 %"))


def _limits_in_words(choice: SandboxChoice, states: Mapping[str, LimitState]) -> list[Text]:
    """Return the requested limits, each with its state (``states``: by name, as recorded)."""
    at = "/groups/0/sandbox"
    quota, memory, pids = choice.cpu_quota, choice.memory_bytes, choice.pids
    named: dict[str, Part | None] = {
        "cpus": "its CPUs" if choice.kind is not SandboxKind.PROCESS else None,
        "cpu_quota": None if quota is None else _counted_cpus(quota),
        "memory": None
        if memory is None
        else text("{} of memory", Figure(memory, byte_size, at + pointer("memory_bytes"))),
        "pids": None
        if pids is None
        else text("{} processes and threads", Figure(pids, as_typed, at + pointer("pids"))),
    }
    return [
        text("{} ({})", words, states[name].holding.value if name in states else "not tried")
        for name, words in named.items()
        if words
    ]


def _network_notes(reading: StudyResults) -> Iterator[Text]:
    records = reading.subjects.values()
    networks = {record.sandbox.network for record in records if record.sandbox.network}
    listen = reading.plan.sandbox.listen
    if listen is not None:
        yield text(
            "Servers took the load at {}, and generators sent it from other machines.",
            Name(listen),
        )
    elif Network.HOST in networks:
        yield text("Servers ran on the host's loopback: sockets of one trial may disturb the next.")
    elif networks:
        yield text("Each trial ran in a network namespace of its own, server and generator together.")


def _placement_notes(reading: StudyResults) -> Iterator[Text]:
    if len(reading.placements) != 1:
        return
    placement = reading.placements[0]
    server = _cpus(placement.server_cpus, "server_cpus")
    if reading.plan.sandbox.listen is not None:
        yield text("Server on {}, generators on other machines.", server)
    elif placement.shared:
        yield text("{}{}.", placed_together(reading), taken_words(reading))
    else:
        generator = _cpus(placement.generator_cpus, "generator_cpus")
        yield text("Server on {}, generator on {}.", server, generator)


def placed_together(reading: StudyResults) -> Text:
    """Return which CPUs the server has, and on which of them the generator is."""
    sides = reading.placements[0]
    server, generator = (_cpus(getattr(sides, name), name) for name in ("server_cpus", "generator_cpus"))
    return text("Server on {}, and the generator on {} of them", server, generator)


def taken_words(reading: StudyResults) -> Text:
    """Return what a generator took at most from a server whose CPUs it is on; empty where that is unknown."""
    shares = [
        (cell.generator_share, pointer("groups", k, "cells", place, "generator_share"))
        for k, group in enumerate(reading.groups)
        for place, cell in enumerate(group.cells)
    ]
    most, at = max(shares, default=(0.0, ""))
    if most <= 0:
        return EMPTY
    share = Figure(most, percent, at)
    return text(": it took up to {} of the CPU time of both", share)


def _limit_notes(reading: StudyResults) -> Iterator[Text]:
    known = (one.sandbox for one in reading.subjects.values() if one.sandbox != SandboxFacts())
    facts = next(known, SandboxFacts())
    for reason in facts.reasons:
        yield text("Sandbox `{}`: {}.", Name(str(facts.kind)), Name(reason))
    choices = {group.sandbox for group in reading.groups}
    if len(choices) != 1:
        return
    (choice,) = choices
    limits = _limits_in_words(choice, facts.limits)
    if limits:
        yield text(f"{_HOLDERS[choice.kind]} {{}}.", joined(limits))
    yield from _ceiling_notes(facts)
    yield from _scaling_notes(reading, choice.cpu_quota)


def _ceiling_notes(facts: SandboxFacts) -> Iterator[Text]:
    """Yield what a subject could have exhausted here, as no limit held that Prony sets by itself."""
    for name, one in facts.ceilings.items():
        if one.holding is not LimitHolding.ENFORCED:
            yield text(
                "Nothing limited the {} of a server: {}.",
                _EXHAUSTIBLE.get(name, Name(name)),
                Name(one.reason),
            )
    if facts.missing.get("files"):
        reason = Name(facts.missing["files"])
        yield text("Servers could write all files that their user may write: {}.", reason)


def _scaling_notes(reading: StudyResults, quota: float | None) -> Iterator[Text]:
    places = list(enumerate(reading.placements))
    least, given = min(places, key=lambda pair: len(pair[1].server_cpus), default=(0, None))
    if quota is None or given is None or quota <= len(given.server_cpus):
        return
    had = Figure(len(given.server_cpus), count, pointer("placements", least, "server_cpus"))
    yield text(
        "{} were requested; the server has {} on this machine, because the generator needs the other half of "
        "the cores.",
        *(_counted_cpus(quota), had),
    )


def _counted_cpus(number: float) -> Text:
    return counted(Figure(number, as_typed, "/groups/0/sandbox/cpu_quota"), "CPU")


def _cpus(cpus: Sequence[int], name: str) -> Text:
    numbers = (Figure(cpu, as_typed, pointer("placements", 0, name, k)) for k, cpu in enumerate(cpus))
    return text(f"CPU{'s' if len(cpus) != 1 else ''} {{}}", joined(numbers))


# --- processes by role, and their listeners ---------------------------------------------------------------


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
