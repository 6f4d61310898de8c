"""The figures of one group: a row for each subject, and what its failed requests were."""

from collections.abc import Iterable, Iterator, Sequence

from prony.model import ClosedLoop, Design
from prony.reading.study import Group
from prony.report.document import Block, Footnotes, Notes, Paragraph, Section, Tone
from prony.report.sections.generators import generator_heading, generator_section
from prony.report.sections.winners import alike_note, deciding
from prony.report.tables import Marks, failures_table, populations_table, ranked, subjects_table
from prony.report.words import group_words

__all__ = ["failed_requests", "group_heading", "group_section", "populations"]

_SATURATED = Paragraph(
    "The load is as high as each server takes: latencies are those at saturation, "
    "and compare servers under different loads.",
    Tone.QUIET,
)
_TRIMMED = "trimmed: mean without the highest and the lowest trial, as published; no interval, no verdict."


def group_heading(group: Group) -> str:
    """Return the group's load as a heading."""
    if group.of_generators:
        return generator_heading(group)
    text = group.workload.describe()
    return text[0].upper() + text[1:]


def group_section(group: Group, design: Design) -> Section:
    """Return the main table of a group."""
    if group.of_generators:
        return generator_section(group)
    notes = Footnotes()
    cells = ranked(group.cells, group.answer.metric)
    if not cells:
        return Section(group_heading(group), (Paragraph("No trial was run."),))
    if not any(cell.ok for cell in cells):
        return Section(group_heading(group), (Paragraph("No trial counts.", Tone.BAD),))
    closed = isinstance(group.workload.loop, ClosedLoop)
    trimmed = closed and design.trimmed_mean
    table = subjects_table(cells, _marks(group, trimmed), notes)
    lead = (_SATURATED,) if closed else ()
    remarks = [text for text in (alike_note(group), _TRIMMED if trimmed else None) if text]
    blocks: tuple[Block, ...] = (*lead, table, notes.notes(), Notes(tuple(("", text) for text in remarks)))
    return Section(group_heading(group), blocks)


def _marks(group: Group, trimmed: bool) -> Marks:
    found, standing = group.answer, deciding(group)
    best = () if found.leader is None else (found.leader, *found.ties)
    return Marks(best, (standing.letters if standing else None) or {}, trimmed)


def failed_requests(groups: Sequence[Group]) -> Section | None:
    """Return what failed, by kind; null where nothing did."""
    cells = [
        (group_words(group), cell) for group in groups for cell in ranked(group.cells, group.answer.metric)
    ]
    found = failures_table(cells)
    return Section("Requests that failed, by kind", (found,)) if found else None


def populations(groups: Iterable[Group]) -> Iterator[Section]:
    """Yield latencies with and without the failures, for each load under which requests failed."""
    groups = tuple(groups)
    for group in groups:
        notes, cells = Footnotes(), ranked(group.cells, group.answer.metric)
        table = populations_table(cells, notes) if cells else None
        if table is not None:
            where = f", {group_words(group)}" if len(groups) > 1 else ""
            yield Section(f"With and without the failures{where}", (table, notes.notes()))
