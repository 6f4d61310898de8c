"""The figures of one group: a row for each subject, and its failed requests by kind."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from prony.model.workload import ClosedLoop
from prony.reading.groups import Group
from prony.reading.study import StudyResults
from prony.report.document import Block, Footnotes, Notes, Paragraph, Section, Tone
from prony.report.forms import count
from prony.report.sections.effects import ratio_note, ratios_to_first
from prony.report.sections.generators import generator_heading, generator_section
from prony.report.sections.winners import deciding, letters_note
from prony.report.tables import (
    Marks,
    Place,
    failures_table,
    group_at,
    populations_table,
    ranked,
    subjects_table,
)
from prony.report.text import EMPTY, Figure, Name, Text, framed, pointer, text
from prony.report.words import carried_words, group_title, group_words

_SATURATED = Paragraph(
    "Each server gets as much load as it takes: latencies are those at saturation, "
    "so they compare servers under different loads.",
    Tone.QUIET,
)
_TRIMMED = "trimmed: mean without the highest and the lowest trial, as published; no interval, no verdict."


def group_heading(group: Group, place: int) -> Text:
    """Return the group's load as a heading. ``place``: among the groups."""
    if group.of_generators:
        return generator_heading(group, place)
    return group_title(group, place)


def group_section(reading: StudyResults, group: Group) -> Section:
    """Return the main table of a group."""
    place = reading.place(group)
    if group.of_generators:
        return generator_section(reading, group)
    notes, heading = Footnotes(), group_heading(group, place)
    cells = _ranked(reading, group)
    if not cells:
        return Section(heading, (Paragraph("No trial was run."),))
    if not any(one.cell.has_figures for one in cells):
        return Section(heading, (Paragraph("No trial counts.", Tone.BAD),))
    closed = isinstance(group.workload.loop, ClosedLoop)
    design = reading.plan.design
    trimmed = closed and design.trimmed_mean
    marks = _marks(group, group_at(reading, group))
    marks = replace(marks, trimmed=trimmed, machine_memory=design.machine_memory)
    table = subjects_table(cells, marks, notes)
    lead = (_SATURATED,) if closed else ()
    said = (letters_note(group), ratio_note(group), _TRIMMED if trimmed else None)
    remarks = [words for words in said if words]
    blocks: tuple[Block, ...] = (*lead, table, notes.notes(), Notes.of(remarks))
    return Section(heading, blocks)


def _ranked(reading: StudyResults, group: Group) -> list[Place]:
    return ranked(group.cells, group.answer.metric, group_at(reading, group))


def _marks(group: Group, at: str) -> Marks:
    found, standing = group.answer, deciding(group)
    best = found.ties if found.leader is None or found.alone else (found.leader, *found.ties)
    letters = (standing.letters if standing else None) or {}
    return Marks(best, letters, ratios_to_first(group, at))


def failed_requests(reading: StudyResults) -> Section | None:
    """Return the failed requests by kind; None where none failed."""
    cells = [
        (group_words(group, place), one)
        for place, group in enumerate(reading.groups)
        for one in _ranked(reading, group)
    ]
    found = failures_table(cells)
    if found is None:
        return None
    carried = tuple(("", words) for label, one in cells for words in _carried_in(label, one))
    return Section("Requests that failed, by kind", (found, Notes(carried)))


def _carried_in(label: Text, one: Place) -> Iterator[Text]:
    """Yield how the requests ended that the windows of a cell found open, where some of them were lost."""
    found = one.cell.account.carried_in
    if found is None or found.requests == found.answered:
        return
    at = one.at + pointer("carried_in")
    requests = Figure(found.requests, count, at + pointer("requests"))
    open_then = text("{} requests were open when the window opened", requests)
    under = framed(", ", label)
    yield text("{}{}: {}: {}", Name(one.cell.name), under, open_then, carried_words(found, at))


def populations(reading: StudyResults, groups: Iterable[Group]) -> Iterator[Section]:
    """Yield latencies with and without failed requests, for each load under which requests failed."""
    groups = tuple(groups)
    for group in groups:
        notes, cells = Footnotes(), _ranked(reading, group)
        table = populations_table(cells, notes) if cells else None
        if table is not None:
            under = group_words(group, reading.place(group))
            named = framed(", ", under) if len(groups) > 1 else EMPTY
            heading = text("With and without the failures{}", named)
            yield Section(heading, (table, notes.notes()))


# --- trials that do not count -----------------------------------------------------------------------------
