"""A study's report: the tables, what went wrong and why, and the answer as its last lines."""

from collections.abc import Iterator

from prony.archive import Archive
from prony.report.document import Document, Section
from prony.report.reading import Reading, read_archive
from prony.report.sections.answer import answer_section
from prony.report.sections.figures import failure_sections, group_section
from prony.report.sections.head import head
from prony.report.sections.notes import notes
from prony.report.sections.uncounted import unavailable, uncounted

__all__ = ["reading_document", "study_document"]


def _sections(reading: Reading) -> Iterator[Section | None]:
    yield head(reading)
    for group in reading.groups:
        yield group_section(group)
        yield from failure_sections(group)
    yield uncounted(reading)
    yield unavailable(reading)
    yield notes(reading)
    yield answer_section(reading)


def reading_document(reading: Reading) -> Document:
    """Return the report of a study that has been read."""
    sections = tuple(section for section in _sections(reading) if section is not None)
    return Document(reading.plan.title or reading.plan.name, sections)


def study_document(archive: Archive) -> Document:
    """Return the report of a study from its archive."""
    return reading_document(read_archive(archive))
