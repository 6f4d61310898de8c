"""Where each cause is planted: on which servers of each kind, and why not on others."""

from collections.abc import Iterator, Sequence

from prony.faults import CAUSES
from prony.faults.coverage import Coverage, coverage_of
from prony.report.document import Block, Notes, Paragraph, Section
from prony.report.text import EMPTY, Name, Text, joined, text

__all__ = ["where_planted"]

_MARK = "*"


def where_planted() -> Section:
    """Return of each cause of the campaign the servers, by kind, and the kinds that cannot have it."""
    return Section("Where each is planted", tuple(_blocks(coverage_of(CAUSES))))


def _blocks(found: Sequence[Coverage]) -> Iterator[Block]:
    yield Paragraph(
        text(
            "{}: thresholds were set on it, at the first severity of the cause; the rest is held out.",
            Name(_MARK),
        )
    )
    yield Notes(tuple(("", _line(one)) for one in found))


def _line(one: Coverage) -> Text:
    lead = text(" ({})", Name(one.cause.rule)) if one.cause.rule else EMPTY
    kinds = (text("{} {}", Name(kind.value), _names(one, names)) for kind, names in one.servers.items())
    reasons = (text(" Not {}: {}.", Name(kind.value), Name(why)) for kind, why in one.cannot.items())
    return text("{}{}: {}.{}", Name(one.cause.title), lead, joined(kinds, by="; "), joined(reasons, by=""))


def _names(one: Coverage, names: Sequence[str]) -> Text:
    return joined(Name(name + _MARK * (name in one.calibrated_on)) for name in names)
