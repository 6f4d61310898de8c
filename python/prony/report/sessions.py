"""The report of several archives of one plan, as sessions: first who leads over them, and by how much."""

from collections.abc import Iterator

from prony.analysis.across_sessions import LEAST_SESSIONS, AcrossRow
from prony.metrics import METRICS, Better
from prony.reading.across import ClaimOver, LoadOver, Sessions
from prony.report.document import Block, Document, Notes, Paragraph, Section, Tone
from prony.report.forms import count, in_metric, signed_percent
from prony.report.sections.sessions import machines_words, session_load, session_sections
from prony.report.text import EMPTY, Figure, Name, Quote, Text, counted, joined, pointer, text

__all__ = ["sessions_report"]


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
    verdict = Quote(one.over.verdict.value, at + pointer("over"))
    words = text("{}: {}", Quote(one.claim.text, at + pointer("text")), verdict)
    reason = one.over.reason
    return text("{} ({})", words, Quote(reason, at + pointer("reason"))) if reason else words


def _answer(found: Sessions) -> Iterator[Block]:
    if not found.loads:
        yield Paragraph("No subject qualifies in these sessions: there is no answer.", Tone.WARNING)
    for place, one in enumerate(found.loads):
        at = pointer("loads", place)
        yield Paragraph(text("{}{}", _where(found, one, at), _leads(found, one, at)), Tone.STRONG)
        if len(one.found.rows) > 1:
            yield Paragraph(_next(one, at))
        left_out = [Name(row.name) for row in one.found.rows if not row.has_enough]
        if one.found.decided and left_out:
            least = Name(str(LEAST_SESSIONS))
            yield Paragraph(
                text("With fewer than {} sessions, so not compared: {}.", least, joined(left_out))
            )


def _where(found: Sessions, one: LoadOver, at: str) -> Text:
    load = session_load(found, one, at)
    return text("{}: ", load) if len(found.loads) > 1 and load else EMPTY


def _leads(found: Sessions, one: LoadOver, at: str) -> Text:
    """Return who leads over the sessions, or, with too few of them, whose mean is best."""
    first = one.found.rows[0]
    number = _number(found, first, at + pointer("rows", 0))
    mean = Figure(first.mean, in_metric(one.metric), at + pointer("rows", 0, "mean"))
    figure = text("{}, {}", Name(METRICS[one.metric].title), mean)
    if len(one.found.rows) == 1 and first.has_enough:
        return text("{} is the only one to qualify over {}: {}.", Name(first.name), number, figure)
    if not one.found.decided:
        return _undecided(one, number, figure)
    if one.found.ties:
        ties = joined(map(Name, one.found.ties))
        return text("{} shares the first place over {} with {}: {}.", Name(first.name), number, ties, figure)
    each = " and in each of them" if set(one.found.leaders) == {first.name} else ""
    return text("{} leads over {}{}: {}.", Name(first.name), number, each, figure)


def _number(found: Sessions, row: AcrossRow, at: str) -> Text:
    """Return in how many of the sessions a subject qualifies."""
    every = counted(Figure(len(found.parts), count, "/sessions"), "session")
    if row.sessions == len(found.parts):
        return every
    return text("{} of {}", Figure(row.sessions, count, at + pointer("sessions")), every)


def _undecided(one: LoadOver, number: Text, figure: Text) -> Text:
    """Return who is first where nobody leads: the best, unless one of fewer sessions has a better mean."""
    (first, *others), least = one.found.rows, Name(str(LEAST_SESSIONS))
    if first.has_enough:
        only = "{} is the only one that has {} sessions, so nobody leads: {} over {}."
        return text(only, Name(first.name), least, figure, number)
    is_higher = METRICS[one.metric].better is Better.HIGHER
    best = max if is_higher else min
    is_best = first.mean == best(row.mean for row in (first, *others))
    mean = text("{} mean", "highest" if is_higher else "lowest")
    words = text("{} of {}" if is_best else "{} of those in the most sessions ({})", mean, number)
    few = "{} has the {}: {}. Nobody leads over fewer than {} sessions."
    return text(few, Name(first.name), words, figure, least)


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
