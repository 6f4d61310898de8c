"""The figures of one group: a row for each subject, and what its failed requests were."""

from collections.abc import Iterator

from prony.analysis.answer import Answer
from prony.model import ClosedLoop
from prony.report.document import Block, Footnotes, Paragraph, Section, Tone
from prony.report.reading import Group
from prony.report.tables import failures_table, populations_table, ranked, subjects_table

__all__ = ["failure_sections", "group_heading", "group_section"]


def _best(found: Answer) -> tuple[str, ...]:
    return () if found.leader is None else (found.leader, *found.ties)


def group_heading(group: Group) -> str:
    """Return the group's load as a heading."""
    text = group.workload.describe()
    return text[0].upper() + text[1:]


def group_section(group: Group) -> Section:
    """Return the main table of a group."""
    notes = Footnotes()
    cells = ranked(group.cells, group.answer.metric)
    if not cells:
        return Section(group_heading(group), (Paragraph("No trial was run."),))
    if not any(cell.ok for cell in cells):
        return Section(group_heading(group), (Paragraph("No trial counts.", Tone.BAD),))
    blocks: list[Block] = []
    if isinstance(group.workload.loop, ClosedLoop):
        blocks.append(
            Paragraph(
                "The load is as high as each server takes: latencies are those at saturation, "
                "and compare servers under different loads.",
                Tone.QUIET,
            )
        )
    blocks.append(subjects_table(cells, _best(group.answer), notes))
    return Section(group_heading(group), (*blocks, notes.notes()))


def failure_sections(group: Group) -> Iterator[Section]:
    """Yield what failed, where something did."""
    cells = ranked(group.cells, group.answer.metric)
    failures = failures_table(cells) if cells else None
    if failures is None:
        return
    yield Section("Requests that failed, by kind", (failures,))
    notes = Footnotes()
    if (both := populations_table(cells, notes)) is not None:
        yield Section("With and without the failures", (both, notes.notes()))
