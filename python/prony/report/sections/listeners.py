"""Listeners that share an address (SO_REUSEPORT): one may be full while the others are empty."""

from collections.abc import Iterator

from prony.analysis.listeners import SharedAddress
from prony.analysis.summary import CellSummary
from prony.reading.pace import fullest_addresses
from prony.reading.study import Reading
from prony.report.document import Notes, Paragraph, Section, Tone
from prony.report.forms import count
from prony.report.text import Figure, Name, Text, framed, pointer, text
from prony.report.words import group_words

_MEANING = (
    "The kernel gives each new connection to one of them by a hash of the addresses, whether its worker is "
    "free or not. The figures are from the trial with the fullest queue."
)


def listeners(reading: Reading) -> Iterator[Section]:
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
    named = {"longest": one.longest, "limit": one.limit, "others": one.others}
    figures = (Figure(value, count, at + pointer(name)) for name, value in named.items())
    return text("longest queue {} of {}, of the others at most {}", *figures)
