"""The figures of one group: a row for each subject, and its failed requests by kind.

Trials that do not count, with reasons and the end of their logs; subjects that were not measured.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from prony.figures.last_error import last_error, plain_lines
from prony.figures.summary import CellSummary, TrialFigures
from prony.model.trial import Failed
from prony.model.workload import ClosedLoop
from prony.reading.failures import failed_alike
from prony.reading.groups import Group
from prony.reading.study import StudyResults
from prony.report.document import Block, Footnotes, Notes, Paragraph, Section, Tone
from prony.report.forms import count, ordinal, p_value
from prony.report.sections.effects import deciding, letters_note, ratio_note, ratios_to_first
from prony.report.sections.generators import generator_heading, generator_section
from prony.report.tables import (
    Marks,
    Place,
    failures_table,
    group_at,
    populations_table,
    ranked,
    subjects_table,
)
from prony.report.text import (
    EMPTY,
    Figure,
    Name,
    Quote,
    Text,
    counted,
    each_of,
    framed,
    joined,
    pointer,
    text,
)
from prony.report.words import carried_words, cause_words, group_title, group_words, outcome_words

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


_LOG_LINES = 8


def _useful_lines(log: str) -> list[str]:
    """Return the lines of a log that show the reason: its last error and the last line, else the last lines.

    After a traceback a server that stops writes only that it stops.
    """
    lines, error = plain_lines(log), last_error(log)
    if error is None:
        return lines[-_LOG_LINES:]
    return [*error.lines, *(line for line in lines[-1:] if line != error.lines[-1])]


def _block_words(blocks: Sequence[int], at: str) -> Text:
    """Return the blocks in words, counted from 1.

    >>> str(_block_words([0, 1, 2, 4], ""))
    'blocks 1 to 3, 5'
    """
    runs: list[list[int]] = []
    for place, block in enumerate(blocks):
        if runs and block == blocks[runs[-1][-1]] + 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    figures = [Figure(block, ordinal, at + pointer(place)) for place, block in enumerate(blocks)]
    words = [
        text("{} to {}", figures[run[0]], figures[run[-1]]) if len(run) > 1 else text("{}", figures[run[0]])
        for run in runs
    ]
    return text(f"block{'s' if len(blocks) > 1 else ''} {{}}", joined(words))


def _log(trial: TrialFigures) -> Iterator[Block]:
    """Yield the end of the server's log, for a failed trial: a log cannot explain a fault of the machine."""
    if isinstance(trial.outcome, Failed):
        yield Notes(tuple(("  |", text("{}", Name(line))) for line in _useful_lines(trial.log.text)))


def uncounted(reading: StudyResults) -> Section | None:
    """Return the trials that do not count, one entry for each reason; None if all count."""
    blocks: list[Block] = []
    for place, group in enumerate(reading.groups):
        under = framed(", ", group_words(group, place)) if len(reading.groups) > 1 else EMPTY
        for number, cell in enumerate(group.cells):
            blocks += _of_cell(cell, pointer("groups", place, "cells", number), under)
    remarks = (*_tests(reading), *_repeated(reading))
    if remarks:
        blocks.append(Notes.of(remarks))
    return Section("Trials that do not count", tuple(blocks)) if blocks else None


def _of_cell(cell: CellSummary, at: str, under: Text) -> Iterator[Block]:
    for k, found in enumerate(failed_alike(cell)):
        of = at + pointer("failed_alike", k)
        number = Figure(len(found.blocks), count, of + pointer("blocks"))
        total = counted(Figure(cell.total, count, at + pointer("trials")), "trial")
        where = _block_words(found.blocks, of + pointer("blocks"))
        parts = (Name(cell.name), under, number, total, where, outcome_words(found.cause, of))
        yield Paragraph(text("{}{}, {} of {} ({}): {}", *parts))
        yield from _log(found.trials[0])


def _tests(reading: StudyResults) -> Iterator[Text]:
    """Yield whether a subject's trials fail more often than those of the subject that fails least."""
    for place, group in enumerate(reading.groups):
        under = framed(" under ", group_words(group, place)) if len(reading.groups) > 1 else EMPTY
        for k, one in enumerate(group.failures):
            at = pointer("groups", place, "failures", k)
            words = "fails more often than" if one.shown else "is not shown to fail more often than"
            own = each_of(one.count, at + pointer("count"), count, "failed", "total")
            least = each_of(one.least, at + pointer("least"), count, "failed", "total")
            units = "sessions" if one.by_session else "trials"
            counts = text(f"{{}} of {{}} {units}, and {{}} of {{}}", *own, *least)
            p = Figure(one.p_value, p_value, at + pointer("p_value"))
            parts = (Name(one.name), Name(one.against), under, counts, p)
            yield text(f"{{}} {words} {{}}{{}}: {{}} ({one.method}, p = {{}}).", *parts)


def _repeated(reading: StudyResults) -> Iterator[Text]:
    """Yield how many trials the machine disturbed, so that they were repeated, and why."""
    found = reading.repeated
    if found is None:
        return
    places = ((pointer("repeated", "causes", k), one) for k, one in enumerate(found.causes))
    reasons = [
        text("{} ({})", cause_words(one.cause, at), Figure(one.trials, count, at + pointer("trials")))
        for at, one in places
    ]
    many = counted(Figure(found.trials, count, "/repeated/trials"), "trial")
    yield text("{} repeated at the end of the block (the last counts): {}.", many, joined(reasons, by="; "))


def unavailable(reading: StudyResults) -> Section | None:
    """Return the subjects that were not measured, with the reason; None if there are none."""
    items = tuple(
        ("", text("{}: {}", Name(name), Quote(reason, pointer("unmeasured", name))))
        for name, reason in reading.unmeasured.items()
    )
    return Section("Not measured", (Notes(items),)) if items else None
