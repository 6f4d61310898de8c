"""A study's report: the tables, what went wrong and why, and the answer as its last lines."""

from collections.abc import Iterator, Sequence

from prony.analysis.noise_floor import Floor
from prony.archive import Archive
from prony.reading.study import Reading, read_archive
from prony.report.document import Document, Section
from prony.report.sections.answer import answer_section
from prony.report.sections.checks import cross_check
from prony.report.sections.claims import claims
from prony.report.sections.figures import failed_requests, group_section, populations
from prony.report.sections.grid import detailed, grid
from prony.report.sections.head import differences, head
from prony.report.sections.listeners import listeners
from prony.report.sections.notes import notes
from prony.report.sections.originals import originals
from prony.report.sections.processes import processes
from prony.report.sections.rates import is_search, rates
from prony.report.sections.saturation import saturations
from prony.report.sections.uncounted import unavailable, uncounted
from prony.report.sections.winners import winners

__all__ = ["reading_document", "study_document"]


def _sections(reading: Reading) -> Iterator[Section | None]:
    yield head(reading)
    if is_search(reading):
        yield rates(reading)
    else:
        yield from _figures(reading)
    yield differences(reading)
    yield notes(reading)
    yield answer_section(reading)


def _figures(reading: Reading) -> Iterator[Section | None]:
    yield claims(reading)
    yield from grid(reading)
    yield from saturations(reading)
    for group in detailed(reading):
        yield group_section(group, reading.plan.design)
    yield failed_requests(reading.groups)
    yield from populations(detailed(reading))
    yield winners(reading)
    yield from processes(reading)
    yield from listeners(reading)
    yield from originals(reading)
    yield rates(reading)
    yield cross_check(reading)
    yield uncounted(reading)
    yield unavailable(reading)


def reading_document(reading: Reading) -> Document:
    """Return the report of a study that has been read."""
    sections = tuple(section for section in _sections(reading) if section is not None)
    return Document(reading.plan.title or reading.plan.name, sections)


def study_document(archive: Archive, floors: Sequence[Floor] = ()) -> Document:
    """Return the report of a study from its archive, with the noise floors of the machine that measured."""
    return reading_document(read_archive(archive, floors))
