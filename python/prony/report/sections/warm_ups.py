"""Remarks on the pilot: which servers were still warming up when their windows would have begun."""

from collections.abc import Iterator

from prony.reading.study import Reading
from prony.reading.warm_ups import WarmUp
from prony.report.forms import count
from prony.report.sections.pace import subject_words
from prony.report.text import Figure, Quote, Text, counted, listed, pointer, text
from prony.units import seconds

_MOST = 6


def warm_up_notes(reading: Reading) -> Iterator[Text]:
    """Yield whose warm-up the pilot made longer, who was not warm by then, and where it cannot be said."""
    found = list(enumerate(reading.warm_ups))
    if not found:
        return
    longer = [_longer(reading, k, one) for k, one in found if one.is_longer and not one.last.changes]
    if longer:
        yield text("Warmed up longer than planned, as the pilot found: {}.", listed(longer, most=_MOST))
    changing = [_changing(reading, k, one) for k, one in found if one.last.changes]
    if changing:
        yield text("The pilot saw no end of the warm-up: {}.", listed(changing, most=_MOST))
    unknown = [(k, one) for k, one in found if one.last.reason]
    if unknown:
        k, one = unknown[0]
        why = Quote(one.last.reason, _at(k, one) + pointer("reason"))
        cells = counted(Figure(len(unknown), count, "/warm_ups"), "cell")
        yield text("The pilot found no warm-up of {}, such as {}: {}.", cells, _where(reading, one), why)
    if not (longer or changing or unknown):
        yield text("The pilot found all warm within the planned warm-up.")


def _at(place: int, one: WarmUp) -> str:
    return pointer("warm_ups", place, "looks", len(one.looks) - 1)


def _longer(reading: Reading, place: int, one: WarmUp) -> Text:
    return text("{} ({})", _where(reading, one), _used(place, one))


def _changing(reading: Reading, place: int, one: WarmUp) -> Text:
    looked = counted(Figure(one.last.seconds, count, _at(place, one) + pointer("seconds")), "second")
    return text(
        "{} (its pace still changed after {}; its trials warm up for {})",
        _where(reading, one),
        looked,
        _used(place, one),
    )


def _used(place: int, one: WarmUp) -> Figure:
    return Figure(one.used_ns, _length, pointer("warm_ups", place, "used_ns"))


def _length(nanoseconds: float) -> str:
    return f"{seconds(round(nanoseconds)):g} s"


def _where(reading: Reading, one: WarmUp) -> Text:
    return subject_words(reading, next(cell for cell in reading.cells if cell.cell.id == one.cell_id))
