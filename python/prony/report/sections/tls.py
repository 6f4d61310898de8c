"""TLS of a study: what was agreed on, and how long handshakes took."""

from collections.abc import Iterator, Sequence

from prony.core.units import Scale, duration_scale
from prony.figures.handshakes import Agreed, agreed_by_all
from prony.figures.summary import means
from prony.reading.groups import Group
from prony.reading.study import StudyResults
from prony.report.document import Column, Entry, Footnotes, Paragraph, Section, Table, Tone
from prony.report.forms import count
from prony.report.tables import Place, figure_entry, group_at
from prony.report.text import Figure, Name, Text, counted, framed, joined, listed, pointer, text
from prony.report.words import group_words

_MOST = 6
_KINDS = ("full", "resumed")
_STATISTICS = {"mean": "mean", "p50": "p50", "p99": "p99", "max": "max"}
_MEANING = (
    "From the open TCP connection to the end of the handshake, of all the generator's connections, those "
    "before the window too. They are no part of service times; in an open loop a request waits for its "
    "connection."
)


def agreed_notes(reading: StudyResults) -> Iterator[Text]:
    """Yield what subjects and the generator agreed on, with the subjects where not all have the same."""
    found: dict[Agreed, dict[str, None]] = {}
    for cell in reading.cells:
        if cell.tls is not None:
            found.setdefault(cell.tls, {})[cell.name] = None
    every = {cell.name for cell in reading.cells if cell.ok}
    for agreed, names in found.items():
        if names.keys() == every:
            yield text("{}", agreed_words(agreed))
        else:
            yield text(
                "{}: {}", listed([text("{}", Name(one)) for one in names], _MOST), agreed_words(agreed)
            )


def disagreements(reading: StudyResults) -> Iterator[Text]:
    """Yield which subjects did not agree on the same in all their blocks: their figures mix both."""
    for group in reading.groups:
        for k, cell in enumerate(group.cells):
            at = group_at(reading, group) + pointer("cells", k, "tls_differs")
            each = [
                text(
                    "{} in {}",
                    agreed_words(one.tls),
                    counted(Figure(len(one.blocks), count, at + pointer(j, "blocks")), "block"),
                )
                for j, one in enumerate(cell.tls_differs)
            ]
            if each:
                words = "{}: TLS agreed on {}: its figures are not of one kind."
                yield text(words, Name(cell.name), joined(each[:_MOST], by="; "))


def agreed_in_all(group: Group) -> Text | None:
    """Return what the subjects of a group agreed on, together; None without TLS."""
    agreed = agreed_by_all(cell.tls for cell in group.cells)
    return None if agreed is None else agreed_words(agreed)


def agreed_words(agreed: Agreed) -> Text:
    """Return what was agreed on: ``TLS 1.3, TLS_AES_256_GCM_SHA384, ECDSA P-256, no resumption``; ``TLS``
    alone where the generator does not say so.
    """
    each = (agreed.protocols or ("TLS",), agreed.ciphers, agreed.groups, agreed.keys)
    asked = {None: (), True: (Name("resumption"),), False: (Name("no resumption"),)}[agreed.resumption]
    return joined([*(listed(map(Name, names)) for names in each if names), *asked])


def handshakes(reading: StudyResults) -> Iterator[Section]:
    """Yield the times of handshakes under each load with TLS that verdicts were planned for."""
    for number, group in enumerate(reading.groups):
        cells = [
            Place(cell, group_at(reading, group) + pointer("cells", k))
            for k, cell in enumerate(group.cells)
            if cell.known("handshakes_full")
        ]
        if cells and group.primary and not group.of_generators:
            where = framed(", ", group_words(group, number)) if len(reading.groups) > 1 else ""
            yield _section(text("TLS handshakes{}", where), cells)


def _section(heading: Text, cells: Sequence[Place]) -> Section:
    times = (one.cell.metrics[f"handshake_{kind}_mean"] for one in cells for kind in _KINDS)
    notes, scale = Footnotes(), duration_scale(means(times))
    rows = tuple(row for one in cells for row in _rows(one, scale, notes))
    columns = (
        *(Column("subject", text=True), Column("kind", text=True), Column("n")),
        *(Column(title, f"time of a handshake, {scale.unit}") for title in _STATISTICS.values()),
    )
    return Section(heading, (Table(columns, rows), notes.notes(), Paragraph(_MEANING, Tone.QUIET)))


def _rows(one: Place, scale: Scale, notes: Footnotes) -> Iterator[tuple[Entry, ...]]:
    shown = [kind for kind in _KINDS if _number(one, kind)] or ["full"]
    for place, kind in enumerate(shown):
        times = (f"handshake_{kind}_{name}" for name in _STATISTICS)
        number = Figure(_number(one, kind), count, one.metric(f"handshakes_{kind}") + pointer("mean"))
        yield (
            Entry(text("{}", Name(one.cell.name)) if not place else ""),
            Entry(kind),
            Entry.of(number),
            *(figure_entry(one.cell.metrics[name], scale, one.metric(name), notes) for name in times),
        )


def _number(one: Place, kind: str) -> float:
    value = one.cell.known(f"handshakes_{kind}")
    return value.mean if value else 0
