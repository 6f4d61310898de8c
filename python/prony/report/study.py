"""A study's report: the tables, the problems with their causes, and the answer as the last lines."""

from collections.abc import Iterator
from dataclasses import replace

from prony.reading.study import Reading
from prony.report.brief import brief_sections
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
from prony.report.sections.rates import rates
from prony.report.sections.saturation import saturations
from prony.report.sections.sessions import session_sections
from prony.report.sections.uncounted import unavailable, uncounted
from prony.report.sections.winners import winners
from prony.report.text import Quote, text

__all__ = ["full_page", "study_report"]


def _sections(reading: Reading) -> Iterator[Section | None]:
    yield head(reading)
    if reading.is_search:
        yield rates(reading)
    else:
        yield from _figures(reading)
    yield differences(reading)
    if reading.across is not None:
        yield from session_sections(reading.across, "/across")
    yield notes(reading)
    yield answer_section(reading)


def _figures(reading: Reading) -> Iterator[Section | None]:
    yield claims(reading)
    yield from grid(reading)
    yield from saturations(reading)
    for group in detailed(reading):
        yield group_section(reading, group)
    yield failed_requests(reading)
    yield from populations(reading, detailed(reading))
    yield winners(reading)
    yield from processes(reading)
    yield from listeners(reading)
    yield from originals(reading)
    yield rates(reading)
    yield cross_check(reading)
    yield uncounted(reading)
    yield unavailable(reading)


def full_page(reading: Reading) -> Document:
    """Return the report of a study as a page: it is read from its top, a terminal from its end, so the short
    answer and the long one come first.
    """
    report = study_report(reading)
    head, *others, answer = report.sections
    measured = replace(head, heading="What was measured")
    return replace(report, sections=(*brief_sections(reading), answer, measured, *others))


def study_report(reading: Reading) -> Document:
    """Return the report of a study."""
    sections = tuple(section for section in _sections(reading) if section is not None)
    plan = reading.plan
    title = Quote(plan.title, "/plan/title") if plan.title else Quote(plan.name, "/plan/name")
    return Document(text("{}", title), sections)
