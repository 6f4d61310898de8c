"""Listeners that share an address (SO_REUSEPORT): one may be full while the others are empty."""

from collections.abc import Iterator

from prony.analysis.listeners import SharedAddress
from prony.analysis.summary import CellSummary
from prony.reading.study import Reading
from prony.report.document import Notes, Paragraph, Section, Tone
from prony.report.words import group_words
from prony.units import format_count

__all__ = ["listeners"]

_MEANING = (
    "The kernel gives each new connection to one of them by a hash of the addresses, whether its worker is "
    "free or not. Of several trials the one with the fullest queue is shown."
)


def listeners(reading: Reading) -> Iterator[Section]:
    """Yield the subjects with several listeners at one address, under each load planned for verdicts."""
    for group in reading.groups:
        if not group.primary or group.of_generators:
            continue
        lines = tuple(("", line) for cell in group.cells for line in _lines(cell))
        if lines:
            where = f", {group_words(group)}" if len(reading.groups) > 1 else ""
            blocks = (Notes(lines), Paragraph(_MEANING, Tone.QUIET))
            yield Section(f"Listeners that share an address{where}", blocks)


def _lines(cell: CellSummary) -> Iterator[str]:
    fullest: dict[str, SharedAddress] = {}
    for one in (shared for trial in cell.counted for shared in trial.shared_addresses):
        known = fullest.get(one.process)
        if known is None or one.filled > known.filled:
            fullest[one.process] = one
    for process, one in fullest.items():
        yield f"{cell.name}: {format_count(one.count)} listeners of the {process}, {_queues(one)}"


def _queues(one: SharedAddress) -> str:
    if not one.longest:
        return "all queues empty in every sample"
    longest = f"longest queue {format_count(one.longest)} of {format_count(one.limit)}"
    return f"{longest}, of the others at most {format_count(one.others)}"
