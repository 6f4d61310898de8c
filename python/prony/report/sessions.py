"""The report of several archives of one plan, as sessions: first who leads over them, and by how much."""

from collections.abc import Iterator

from prony.reading.across import ClaimOver, Sessions
from prony.report.document import Block, Document, Notes, Paragraph, Section, Tone
from prony.report.sections.answer import answer_lines
from prony.report.sections.sessions import machines_words, session_load, session_sections
from prony.report.text import EMPTY, Name, Quote, Text, joined, pointer, text


def sessions_report(title: str, found: Sessions) -> Document:
    """Return the report of sessions. ``title``: of their plan."""
    answer = Section("", (*_answer(found), *_machines(found)))
    sections = (answer, *_claims(found), *session_sections(found, ""))
    return Document(text("{}", Quote(title, "/title")), sections)


def _machines(found: Sessions) -> Iterator[Block]:
    """Yield that there were several machines."""
    machines = machines_words(found, "")
    if machines is not None:
        yield Paragraph(text("The sessions were on {}: see Sessions.", machines), Tone.QUIET)


def _claims(found: Sessions) -> Iterator[Section]:
    """Yield what all sessions together say of the claims."""
    if found.claims:
        lines = (_claim(one, pointer("claims", k)) for k, one in enumerate(found.claims))
        yield Section("Claims, over the sessions", (Notes(tuple(("", line) for line in lines)),))


def _claim(one: ClaimOver, at: str) -> Text:
    verdict = Quote(one.over.verdict.value, at + pointer("over", "verdict"))
    words = text("{}: {}", Quote(one.claim.text, at + pointer("text")), verdict)
    reason = one.over.reason
    return text("{} ({})", words, Quote(reason, at + pointer("over", "reason"))) if reason else words


def _answer(found: Sessions) -> Iterator[Block]:
    if not found.loads:
        yield Paragraph("No subject qualifies in these sessions: there is no answer.", Tone.WARNING)
    for place, one in enumerate(found.loads):
        at = pointer("loads", place)
        load = session_load(found, one, at)
        where = text("{}: ", load) if len(found.loads) > 1 and load else EMPTY
        yield from answer_lines(one.group, at + pointer("answer"), where)
        compared = {one.group.answer.first, *one.group.answer.comparisons}
        left_out = [Name(cell.name) for cell in one.group.cells if cell.name not in compared and cell.total]
        if left_out:
            yield Paragraph(
                text("Not compared, with too few trials or sessions that count: {}.", joined(left_out))
            )
