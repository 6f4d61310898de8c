"""The report of several archives of one plan, as sessions."""

from prony.reading.across import Sessions
from prony.report.document import Document
from prony.report.sections.sessions import session_sections
from prony.report.text import Quote, text

__all__ = ["sessions_report"]


def sessions_report(title: str, found: Sessions) -> Document:
    """Return the report of sessions. ``title``: of their plan."""
    return Document(text("{}", Quote(title, "/title")), tuple(session_sections(found, "")))
