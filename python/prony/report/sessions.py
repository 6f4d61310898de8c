"""The report of several archives of one plan, as sessions: first who leads over them, and by how much."""

from collections.abc import Iterator

from prony.metrics import METRICS
from prony.reading.across import LoadOver, Sessions
from prony.report.document import Block, Document, Paragraph, Section, Tone
from prony.report.forms import count, in_metric, signed_percent
from prony.report.sections.sessions import session_load, session_sections
from prony.report.text import EMPTY, Figure, Name, Quote, Text, counted, pointer, text

__all__ = ["sessions_report"]


def sessions_report(title: str, found: Sessions) -> Document:
    """Return the report of sessions. ``title``: of their plan."""
    answer = Section("", tuple(_answer(found)))
    return Document(text("{}", Quote(title, "/title")), (answer, *session_sections(found, "")))


def _answer(found: Sessions) -> Iterator[Block]:
    if not found.loads:
        yield Paragraph("No subject qualifies in these sessions: there is no answer.", Tone.WARNING)
    for place, one in enumerate(found.loads):
        at = pointer("loads", place)
        yield Paragraph(_leads(found, one, at), Tone.STRONG)
        if len(one.found.rows) > 1:
            yield Paragraph(_next(one, at))


def _leads(found: Sessions, one: LoadOver, at: str) -> Text:
    """Return who is first over the sessions, and whether it leads each of them."""
    first, load = one.found.rows[0], session_load(found, one, at)
    where = text("{}: ", load) if len(found.loads) > 1 and load else EMPTY
    number = counted(Figure(len(found.parts), count, "/sessions"), "session")
    each = " and leads each of them" if set(one.found.leaders) == {first.name} else ""
    mean = Figure(first.mean, in_metric(one.metric), at + pointer("rows", 0, "mean"))
    parts = (where, Name(first.name), number, each, Name(METRICS[one.metric].title), mean)
    return text("{}{} is first over {}{}: {}, {}.", *parts)


def _next(one: LoadOver, at: str) -> Text:
    """Return how far the second is from the first: with its interval, or the range of single sessions."""
    second, own = one.found.rows[1], at + pointer("rows", 1, "ratio")
    ratio = second.ratio
    if ratio is None:
        return text("Next: {}, which no session compares with it.", Name(second.name))
    effect = Figure(ratio.effect, signed_percent, own + pointer("effect"))
    if ratio.low is None or ratio.high is None or ratio.verdict is None:
        ends = _ends((ratio.least, "least"), (ratio.most, "most"), own)
        return text(
            "Next: {} ({}; single sessions: {}, too few for a verdict).", Name(second.name), effect, ends
        )
    ends = _ends((ratio.low, "low"), (ratio.high, "high"), own)
    verdict = Quote(ratio.verdict.value, own + pointer("verdict"))
    parts = (Name(second.name), effect, Name("95 %"), ends, verdict)
    return text("Next: {} ({}, {} interval over the sessions {}: {}).", *parts)


def _ends(low: tuple[float, str], high: tuple[float, str], at: str) -> Text:
    ends = (Figure(value, signed_percent, at + pointer(key)) for value, key in (low, high))
    return text("{} to {}", *ends)
