"""Generators as subjects: the load that each one makes on one server, and its own cost.

Where the loads of a study came from, if from several generators or from another machine: a line each.

The generators of a load that several machines sent: one line each.

>>> lost_words(())
()
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from prony.core.units import Scale
from prony.figures.summary import means
from prony.model.facts import Fingerprint
from prony.model.limit import Limited
from prony.model.recording import GeneratorMachine
from prony.reading.groups import Group
from prony.reading.senders import Sender
from prony.reading.study import StudyResults
from prony.report.document import (
    Block,
    Column,
    Entry,
    Footnotes,
    Notes,
    Paragraph,
    Section,
    Table,
    Tone,
    headed,
)
from prony.report.findings import limit_kind_words, limit_words
from prony.report.forms import as_typed, count, duration, metric_scale
from prony.report.sections.effects import deciding, letters_note, ratio_note, ratios_to_first
from prony.report.tables import Place, counted_entry, figure_entry, ranked, share_entry, void_entry
from prony.report.text import Figure, Name, Part, Quote, Text, each_of, framed, joined, listed, pointer, text
from prony.report.words import load_words

WORDS = ("generator", "was it the limit?")
"""The columns of the generators' tables that are words."""
_MACHINE_TITLES = ("generator", "requests", "p50", "p99", "start", "known to", WORDS[1])
_MACHINES_MEAN = (
    "p50, p99: of its own valid replies. start: how long after the common start it began, as far as its "
    "clock is known. Each latency is of one clock. A dash: of too few requests."
)
_VERDICTS = {Limited.NO.value: "no", Limited.SUSPECT.value: "perhaps", Limited.YES.value: "yes"}
_NOTHING = Entry(text("—"))


def lost_words(machines: Sequence[GeneratorMachine]) -> tuple[Paragraph, ...]:
    """Return that generators were lost and which; none where the account is that of all."""
    lost = [(k, machine) for k, machine in enumerate(machines) if machine.lost]
    if not lost:
        return ()
    names = joined(
        text("{} ({})", Quote(one.name, _at(k, "name")), Quote(one.lost or "", _at(k, "lost")))
        for k, one in lost
    )
    of = Figure(len(machines), as_typed, pointer("machines"))
    number = Figure(len(lost), as_typed, pointer("lost_machines"))
    words = text("Partial: {} of {} generators lost: {}. All figures are of the others.", number, of, names)
    return (Paragraph(words, Tone.BAD),)


def machines_section(machines: Sequence[GeneratorMachine]) -> Section:
    """Return the table of the generators."""
    rows = tuple(_machine_row(k, machine) for k, machine in enumerate(machines))
    blocks: list[Block] = [
        Table(headed(*_MACHINE_TITLES, words=WORDS), rows),
        Paragraph(_MACHINES_MEAN, Tone.QUIET),
    ]
    where = kinds_of_machines([(one.name, one.fingerprint) for one in machines], "machines")
    blocks += [Paragraph(words, Tone.QUIET) for words in where]
    blocks += root_words((_at(k, "name"), one.name) for k, one in enumerate(machines) if one.as_root)
    return Section("Generators", tuple(blocks))


def root_words(names: Iterable[tuple[str, str]]) -> Iterator[Paragraph]:
    """Yield that generators ran as root and which; nothing where none did. ``names``: each with its place in
    the JSON.
    """
    quotes = [Quote(name, at) for at, name in names]
    if quotes:
        words = "Ran as root: {}. Whoever holds the fleet's certificates is root there: take another user."
        yield Paragraph(text(words, listed(quotes)), Tone.WARNING)


def kinds_of_machines(machines: Sequence[tuple[str, Fingerprint | None]], place: str) -> Iterator[Text]:
    """Yield a line for each kind of machine: which generators were on it.

    ``place``: where the JSON has them, in this order.
    """
    kinds: dict[str, tuple[Text, list[Quote]]] = {}
    for k, (name, fingerprint) in enumerate(machines):
        if fingerprint is not None and (words := _machine(fingerprint, pointer(place, k, "fingerprint"))):
            kinds.setdefault(str(words), (words, []))[1].append(Quote(name, pointer(place, k, "name")))
    for words, names in kinds.values():
        yield text("{}: {}.", listed(names), words)


def _machine(one: Fingerprint, at: str) -> Text:
    """Return a machine in words; what it does not say is left out."""
    cpus = one.fact("cpu", "available")
    named = (("cpu", "model"), ("machine",), ("kernel", "release"))
    parts: list[Part] = [
        Quote(fact, at + pointer(*path)) for path in named if isinstance(fact := one.fact(*path), str)
    ]
    if isinstance(cpus, int):
        parts.append(text("CPUs: {}", Figure(cpus, as_typed, at + pointer("cpu", "available"))))
    return joined(parts)


def _machine_row(k: int, one: GeneratorMachine) -> tuple[Entry, ...]:
    name = Entry.of(Quote(one.name, _at(k, "name")))
    if one.lost:
        return (name, *[_NOTHING] * (len(_MACHINE_TITLES) - 2), Entry(text("lost"), Tone.BAD))
    limits = (limit_words(limit, _at(k, "evidence", str(n))) for n, limit in enumerate(one.evidence))
    verdict = _VERDICTS.get(one.limited or "", "—")
    words = text(f"{verdict}: {{}}", joined(limits, by="; ")) if one.evidence else text(verdict)
    tone = Tone.PLAIN if one.limited == Limited.NO.value else Tone.WARNING
    return (
        name,
        figure_or_dash(one.requests, count, _at(k, "requests")),
        figure_or_dash(one.ok_p50_ns, duration, _at(k, "ok_p50_ns")),
        figure_or_dash(one.ok_p99_ns, duration, _at(k, "ok_p99_ns")),
        figure_or_dash(one.start_skew_ns, _signed, _at(k, "start_skew_ns")),
        figure_or_dash(one.clock_bound_ns, plus_minus, _at(k, "clock_bound_ns")),
        Entry(words, tone),
    )


def figure_or_dash(value: float | None, form: Callable[[float], str], at: str) -> Entry:
    """Return a cell with a value, or with a dash where there is none. ``at``: where the JSON has it."""
    return _NOTHING if value is None else Entry.of(Figure(value, form, at))


def _signed(value_ns: float) -> str:
    sign = "-" if value_ns < 0 else "+"
    return f"{sign}{duration(abs(value_ns))}"


def plus_minus(value_ns: float) -> str:
    """Return a time as the bound of another.

    >>> plus_minus(2_000_000)
    '± 2.00 ms'
    """
    return f"± {duration(value_ns)}"


def _at(k: int, *names: str) -> str:
    return pointer("machines", k, *names)


# --- the generators of a load that several machines sent --------------------------------------------------


_SENDER_TITLES = ("generator", "trials", "requests", "start", "known to", WORDS[1])
_MEANING = (
    "Each generator's verdict is its own, on its part of the load. start: how far from the common start it "
    "began at most, as far as its clock is known. Each latency is of one clock."
)


def senders_section(reading: StudyResults) -> Section | None:
    """Return the table of the generators, and on what machines they were; None where there was one alone,
    beside the servers.
    """
    found = tuple((pointer("machines", k), one) for k, one in enumerate(reading.machines))
    if not found:
        return None
    rows = tuple(_row(one, at) for at, one in found)
    blocks: list[Block] = [Table(headed(*_SENDER_TITLES, words=WORDS), rows), Paragraph(_MEANING, Tone.QUIET)]
    where = kinds_of_machines([(one.name, one.fingerprint) for _, one in found], "machines")
    blocks += [Paragraph(text("Load from {}", words), Tone.QUIET) for words in where]
    blocks += root_words((at + pointer("name"), one.name) for at, one in found if one.as_root)
    return Section("Where the load came from", tuple(blocks))


def _row(one: Sender, at: str) -> tuple[Entry, ...]:
    return (
        Entry.of(Quote(one.name, at + pointer("name"))),
        figure_or_dash(one.trials, count, at + pointer("trials")),
        figure_or_dash(one.requests, count, at + pointer("requests")),
        figure_or_dash(one.start_skew_ns, duration, at + pointer("start_skew_ns")),
        figure_or_dash(one.clock_bound_ns, plus_minus, at + pointer("clock_bound_ns")),
        _verdict(one, at),
    )


def _verdict(one: Sender, at: str) -> Entry:
    """Return in how many trials it was the limit, in how many of these for certain, and by what."""
    if not one.limited:
        return Entry(text("no"))
    words = text("in {} of {}, for certain in {}", *each_of(one, at, count, "limited", "trials", "certain"))
    return Entry(text("{}{}", words, framed(": ", joined(_reasons(one, at), by="; "))), Tone.WARNING)


def _reasons(one: Sender, at: str) -> Iterator[Text]:
    for kind, trials in sorted(one.limits.items(), key=lambda item: -item[1]):
        yield text("{} ({})", limit_kind_words(kind), Figure(trials, count, at + pointer("limits", kind)))


_COLUMNS = {
    "generator_ok_per_cpu_s": "ok/CPU-s",
    "ok_per_s": "ok/s",
    "generator_cpu_percent": "CPU %",
    "generator_cpu_ns_per_request": "CPU/request, {unit}",
    "generator_memory_ratio": "memory %",
    "generator_rss_mean": "RSS, {unit}",
    "machine_cpu_ratio": "all CPU %",
    "machine_memory_ratio": "all mem. %",
    "service_ok_p50": "p50, {unit}",
    "service_ok_p99": "p99, {unit}",
}
_LEAD = (
    "One server, and one load; each generator with its threads (or processes) × its total connections. The "
    "first is who makes the most valid requests for its CPU (ok/CPU-s). CPU and memory are the generator's "
    "own; those of all are the whole machine's; each generator measures service time in its own way."
)


def generator_heading(group: Group, place: int) -> Text:
    """Return the server and the window that the generators of a group share. ``place``: among the groups."""
    load = load_words(group.workload, pointer("groups", place, "load"))
    return text("Generators against {}, {}", Name(group.cells[0].cell.subject.name), load)


def generator_section(reading: StudyResults, group: Group) -> Section:
    """Return one row for each generator, with a dash and a reason for what it does not measure."""
    place = reading.place(group)
    cells = ranked(group.cells, group.answer.metric, pointer("groups", place))
    heading = generator_heading(group, place)
    if not any(one.cell.has_figures for one in cells):
        return Section(heading, (Paragraph("No trial counts.", Tone.BAD),))
    notes = Footnotes()
    remarks = [words for words in (letters_note(group), ratio_note(group), *_caveats(cells)) if words]
    blocks: tuple[Block, ...] = (
        *(Paragraph(_LEAD, Tone.QUIET), *_most(reading, group), _table(group, place, cells, notes)),
        notes.notes(),
        Notes.of(remarks),
    )
    return Section(heading, blocks)


def _most(reading: StudyResults, group: Group) -> Iterator[Block]:
    """Yield how many requests the connections could have made at most, if the server's delay is known."""
    most, at = group.most_per_s, pointer("groups", reading.place(group))
    if most is None:
        return
    words = text(
        "The server waits before each reply, so {} make at most {} requests a second: a throughput near that "
        "shows the server's delay, and not the generator.",
        load_words(group.workload, at + pointer("load")),
        Figure(most, count, at + pointer("most_per_s")),
    )
    yield Paragraph(words, Tone.QUIET)


def _table(group: Group, place: int, cells: Sequence[Place], notes: Footnotes) -> Table:
    standing = deciding(group)
    letters = (standing.letters if standing else None) or {}
    best = {group.answer.leader, *group.answer.ties}
    ratios = ratios_to_first(group, pointer("groups", place))
    scales = {name: metric_scale(name, means(one.cell.seen(name) for one in cells)) for name in _COLUMNS}
    titles = [Column(title.format(unit=scales[name].unit)) for name, title in _COLUMNS.items()]
    columns = (
        *(Column("generator", text=True), Column("n"), Column("errors %"), Column("group", text=True)),
        *titles[:1],
        Column("to the first", text=True),
        *titles[1:],
    )
    rows = tuple(
        (
            Entry.of(Name(one.cell.name), Tone.STRONG if one.cell.name in best else Tone.PLAIN),
            counted_entry(one),
            share_entry(one, notes, "error_ratio"),
            Entry(letters.get(one.cell.name, "")),
            *_with_ratio(_figures(one, notes, scales), ratios.get(one.cell.name, text(""))),
        )
        for one in cells
    )
    return Table(columns, rows)


def _with_ratio(figures: Iterator[Entry], ratio: Text) -> Iterator[Entry]:
    """Yield the figures, with the ratio to the first after the one that decides, throughput."""
    yield next(figures)
    yield Entry(ratio)
    yield from figures


def _figures(one: Place, notes: Footnotes, scales: Mapping[str, Scale]) -> Iterator[Entry]:
    for name in _COLUMNS:
        void = void_entry(one, name, scales[name], notes)
        yield void or figure_entry(one.cell.metrics[name], scales[name], one.metric(name), notes)


def _caveats(cells: Sequence[Place]) -> Iterator[Text]:
    """Yield a sentence for each generator on what it does differently."""
    known: dict[str, dict[str, None]] = {}
    for one in cells:
        own = known.setdefault(one.cell.cell.engine.name, {})
        for trial in one.cell.counted:
            own |= dict.fromkeys(trial.engine.caveats if trial.engine else ())
    for caveats in known.values():
        if caveats:
            yield text("{}.", joined(map(Name, caveats), by="; "))
