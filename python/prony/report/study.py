"""A study's report: the tables, the problems with their causes, and the answer as the last lines."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from prony.reading.study import StudyResults
from prony.report.across import across_sections
from prony.report.brief import Space, brief_sections
from prony.report.diagnoses import limits_of_each
from prony.report.document import Command, Document, Section
from prony.report.sections.answer import answer_section, rates
from prony.report.sections.checks import cross_check, others_section
from prony.report.sections.claims import claims, originals
from prony.report.sections.effects import winners
from prony.report.sections.figures import failed_requests, group_section, populations, unavailable, uncounted
from prony.report.sections.generators import senders_section
from prony.report.sections.grid import detailed, grid, saturations
from prony.report.sections.head import differences, head
from prony.report.sections.notes import notes
from prony.report.sections.paths import path_sections
from prony.report.sections.sandbox import listeners, processes
from prony.report.sections.sweeps import sweep_sections
from prony.report.sections.tls import handshakes
from prony.report.text import Quote, text


@dataclass(frozen=True, slots=True)
class Parts:
    """What a study's report says, by what it is for. ``remarks``: what happened besides, and why."""

    head: Section
    claims: Section | None
    figures: tuple[Section, ...]
    uncounted: tuple[Section, ...]
    remarks: tuple[Section, ...]
    answer: Section

    @property
    def sections(self) -> tuple[Section, ...]:
        """All of them, the answer last, where a terminal's reader is."""
        claimed = () if self.claims is None else (self.claims,)
        return (self.head, *claimed, *self.figures, *self.uncounted, *self.remarks, self.answer)


def study_parts(reading: StudyResults) -> Parts:
    """Return the parts of a study's report. A search has rates, and nothing else to show."""
    searches = reading.is_search
    return Parts(
        head=head(reading),
        claims=None if searches else claims(reading),
        figures=_given([rates(reading)] if searches else _figures(reading)),
        uncounted=() if searches else _given([uncounted(reading), unavailable(reading)]),
        remarks=_given(_remarks(reading)),
        answer=answer_section(reading),
    )


def _remarks(reading: StudyResults) -> Iterator[Section | None]:
    yield differences(reading)
    yield from () if reading.across is None else across_sections(reading.across, "/across")
    if not reading.is_search:
        yield limits_of_each(reading)
    yield senders_section(reading)
    yield others_section(reading)
    yield notes(reading)


def _given(found: Iterable[Section | None]) -> tuple[Section, ...]:
    return tuple(section for section in found if section is not None)


def _figures(reading: StudyResults) -> Iterator[Section | None]:
    yield from grid(reading)
    yield from saturations(reading)
    yield from sweep_sections(reading)
    for group in detailed(reading):
        yield group_section(reading, group)
    yield from path_sections(reading)
    yield failed_requests(reading)
    yield from populations(reading, detailed(reading))
    yield winners(reading)
    yield from handshakes(reading)
    yield from processes(reading)
    yield from listeners(reading)
    yield from originals(reading)
    yield rates(reading)
    yield cross_check(reading)


def full_page(reading: StudyResults) -> Document:
    """Return the report of a study as a page: it is read from its top, a terminal from its end, so the short
    answer and the long one come first. Commands stand in the long one alone.
    """
    parts = study_parts(reading)
    others = replace(parts, head=replace(parts.head, heading="What was measured")).sections[:-1]
    found = brief_sections(reading, Space(where="below"))
    short = (one for one in found if not any(isinstance(block, Command) for block in one.blocks))
    return _document(reading, (*short, parts.answer, *others))


def study_report(reading: StudyResults) -> Document:
    """Return the report of a study."""
    return _document(reading, study_parts(reading).sections)


def _document(reading: StudyResults, sections: tuple[Section, ...]) -> Document:
    plan = reading.plan
    title = Quote(plan.title, "/plan/title") if plan.title else Quote(plan.name, "/plan/name")
    return Document(text("{}", title), sections)
