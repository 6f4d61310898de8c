"""What limits each subject, under each load: a line each, and of causes what they mean and what to try."""

from collections.abc import Iterator

from prony.reading.groups import Group
from prony.reading.limits import Alike, alike_diagnoses
from prony.reading.study import Reading
from prony.report.diagnoses import Placed, cause_note, diagnosis_words, time_table
from prony.report.document import Block, Notes, Paragraph, Section, Tone
from prony.report.sections.figures import group_heading
from prony.report.text import EMPTY, Name, Text, joined, pointer, text


def limits_of_each(reading: Reading) -> Section | None:
    """Return what limits each subject; null where no trial says."""
    blocks = [block for group in reading.measured for block in _of_load(reading, group)]
    return Section("What limits each", tuple(blocks)) if blocks else None


def _of_load(reading: Reading, group: Group) -> Iterator[Block]:
    found = alike_diagnoses(reading, group, range(len(group.cells)))
    if not found:
        return
    place = reading.place(group)
    if len(reading.measured) > 1:
        yield Paragraph(text("{}:", group_heading(group, place)), Tone.QUIET)
    yield Notes.of(_line(one, place) for one in found)
    timed = [
        (name, diagnosis, at)
        for one in found
        for name, (diagnosis, at) in zip(one.subjects, placed(one, place), strict=True)
    ]
    if (times := time_table(timed)) is not None:
        yield times


def _line(alike: Alike, group: int) -> Text:
    found = placed(alike, group)
    names = joined(Name(name) for name in alike.subjects)
    return text("{}: {}.{}", names, diagnosis_words(found), _note(found[0]))


def _note(found: Placed) -> Text:
    diagnosis, at = found
    if diagnosis.cause is None:
        return EMPTY
    return text(" {}", cause_note(diagnosis.cause.finding, at + pointer("cause", "finding")))


def placed(alike: Alike, group: int) -> list[Placed]:
    """Return the diagnoses with where the report's JSON has each. ``group``: its place in the Reading."""
    return [
        (found, pointer("groups", group, "cells", cell, "diagnosis"))
        for found, cell in zip(alike.diagnoses, alike.cells, strict=True)
    ]
