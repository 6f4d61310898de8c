"""The report of several archives of one plan, as sessions: first who leads over them, and by how much."""

from collections.abc import Iterator

from prony.analysis.across_sessions import LEAST_SESSIONS
from prony.metrics import METRICS, Better
from prony.reading.across import ClaimOver, LoadOver, Sessions
from prony.report.document import Block, Document, Notes, Paragraph, Section, Tone
from prony.report.forms import count, in_metric, signed_percent
from prony.report.sections.sessions import session_load, session_sections
from prony.report.text import EMPTY, Figure, Name, Quote, Text, counted, joined, pointer, text

__all__ = ["sessions_report"]


def sessions_report(title: str, found: Sessions) -> Document:
    """Return the report of sessions. ``title``: of their plan."""
    answer = Section("", tuple(_answer(found)))
    sections = (answer, *_claims(found), *session_sections(found, ""))
    return Document(text("{}", Quote(title, "/title")), sections)


def _claims(found: Sessions) -> Iterator[Section]:
    """Yield what all sessions together say of the claims."""
    if found.claims:
        lines = (_claim(one, pointer("claims", k)) for k, one in enumerate(found.claims))
        yield Section("Claims, over the sessions", (Notes(tuple(("", line) for line in lines)),))


def _claim(one: ClaimOver, at: str) -> Text:
    verdict = Quote(one.over.verdict.value, at + pointer("over"))
    words = text("{}: {}", Quote(one.claim.text, at + pointer("text")), verdict)
    reason = one.over.reason
    return text("{} ({})", words, Quote(reason, at + pointer("reason"))) if reason else words


def _answer(found: Sessions) -> Iterator[Block]:
    if not found.loads:
        yield Paragraph("No subject qualifies in these sessions: there is no answer.", Tone.WARNING)
    for place, one in enumerate(found.loads):
        at = pointer("loads", place)
        yield Paragraph(_leads(found, one, at), Tone.STRONG)
        if len(one.found.rows) > 1:
            yield Paragraph(_next(one, at))


def _leads(found: Sessions, one: LoadOver, at: str) -> Text:
    """Return who leads over the sessions, or, with too few of them, whose mean is best."""
    first, load = one.found.rows[0], session_load(found, one, at)
    where = text("{}: ", load) if len(found.loads) > 1 and load else EMPTY
    number = counted(Figure(len(found.parts), count, "/sessions"), "session")
    mean = Figure(first.mean, in_metric(one.metric), at + pointer("rows", 0, "mean"))
    figure = text("{}, {}", Name(METRICS[one.metric].title), mean)
    if not one.found.decided:
        best = "highest" if METRICS[one.metric].better is Better.HIGHER else "lowest"
        few = "{}{} has the {} mean of {}: {}. Nobody leads over fewer than {} sessions."
        return text(few, where, Name(first.name), best, number, figure, Name(str(LEAST_SESSIONS)))
    if len(one.found.rows) == 1:
        only = "{}{} is the only one to qualify over {}: {}."
        return text(only, where, Name(first.name), number, figure)
    if one.found.ties:
        ties = joined(map(Name, one.found.ties))
        shares = "{}{} shares the first place over {} with {}: {}."
        return text(shares, where, Name(first.name), number, ties, figure)
    each = " and in each of them" if set(one.found.leaders) == {first.name} else ""
    return text("{}{} leads over {}{}: {}.", where, Name(first.name), number, each, figure)


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
