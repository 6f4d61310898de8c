"""Generators as subjects: the load that each one makes on one server, and its own cost.

Where the loads of a study came from, if from several generators or from another machine: a line each.
"""

from collections.abc import Iterator, Mapping, Sequence

from prony.core.units import Scale
from prony.figures.summary import means
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
from prony.report.findings import limit_kind_words
from prony.report.forms import count, duration, metric_scale
from prony.report.machines import WORDS, figure_or_dash, kinds_of_machines, plus_minus, root_words
from prony.report.sections.effects import ratio_note, ratios_to_first
from prony.report.sections.winners import deciding, letters_note
from prony.report.tables import Place, counted_entry, figure_entry, ranked, share_entry, void_entry
from prony.report.text import Figure, Name, Quote, Text, each_of, framed, joined, pointer, text
from prony.report.words import load_words

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
