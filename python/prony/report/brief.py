"""A study's report in short: the answer, one table, what limits, what was claimed, how far to trust it, and
the command that starts the best.

At most 40 lines of 80 columns for a dozen subjects, so each list of remarks here has its most.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from prony.metrics import METRICS
from prony.reading.brief import Brief, Elsewhere, brief_of
from prony.reading.study import Reading
from prony.report.document import (
    Block,
    Command,
    Document,
    Judgement,
    Judgements,
    Notes,
    Paragraph,
    Section,
    Tone,
)
from prony.report.forms import count, digits
from prony.report.sections.answer import is_limited, leader_words, limited_ties
from prony.report.sections.brief_limits import limit_lines
from prony.report.sections.brief_table import brief_table
from prony.report.sections.brief_trust import trust_lines
from prony.report.sections.claims import claim_counts, failed_claims
from prony.report.sections.head import measured_words, warnings
from prony.report.sections.rates import rate_answers, rates
from prony.report.sections.sweeps import sweep_lines
from prony.report.sections.tls import agreed_in_all
from prony.report.text import EMPTY, Figure, Name, Part, Quote, Text, counted, joined, listed, pointer, text
from prony.report.words import load_words

_ANSWER_LINES, _LEAD_LINES = 3, 2
_REMARK_LINES = 3
_HEIGHT = 40
# Of names that share a reason.
_MOST_AHEAD = 2


@dataclass(frozen=True, slots=True)
class Places:
    """Where the study's files are: the archive, and the page, null if there is none. ``full``: the command
    that prints everything.
    """

    archive: str
    page: str | None
    full: str


@dataclass(frozen=True, slots=True)
class Space:
    """How many remarks of a kind are shown, and ``where`` a reader finds the others.

    ``limits``: null for as many as leave the answer on a screen.
    """

    elsewhere: int = 4
    claims: int = 2
    limits: int | None = None
    where: str = "in the full report"


ON_A_PAGE = Space(elsewhere=12, claims=8, limits=16, where="below")
"""A page has no last line; more than this would no longer be an answer."""


def brief_report(reading: Reading, places: Places | None = None) -> Document:
    """Return the short report of a study."""
    plan = reading.plan
    title = Quote(plan.title, "/plan/title") if plan.title else Quote(plan.name, "/plan/name")
    own = () if places is None else (Section("", (_places(places),)),)
    return Document(text("{}", title), (*brief_sections(reading), *own), _HEIGHT)


def brief_sections(reading: Reading, space: Space = Space()) -> tuple[Section, ...]:
    """Return the sections of the short report, without the places of files."""
    brief = brief_of(reading)
    if reading.is_search or brief is None:
        return _found(reading, space)
    lead = (
        *(
            *warnings(reading),
            _answer(brief),
            *_beside(brief),
            Paragraph(measured_words(reading, brief, space.where), Tone.QUIET),
        ),
        *_tls(brief),
    )
    limits = limit_lines(reading, brief, space.limits, space.where)
    settings = sweep_lines(reading, brief)
    remarks = Judgements((*settings, *limits, *_claims(reading, space), *trust_lines(reading)))
    sections = (
        Section("", lead, _ANSWER_LINES, _LEAD_LINES),
        Section("", tuple(brief_table(brief)), _LEAD_LINES, _LEAD_LINES),
        Section("", (*_elsewhere(reading, brief, space), remarks), _REMARK_LINES),
        Section("", tuple(_start(reading, brief.group.answer.leader))),
    )
    return tuple(one for one in sections if one.blocks)


def _found(reading: Reading, space: Space) -> tuple[Section, ...]:
    """Return the answer of a search for rates."""
    blocks, first = rate_answers(reading)
    table = rates(reading)
    remarks = Judgements((*_claims(reading, space), *trust_lines(reading)))
    sections = (
        Section("", (*warnings(reading), *blocks)),
        *((table,) if table else ()),
        Section("", (remarks,), _REMARK_LINES),
        Section("", tuple(_start(reading, first))),
    )
    return tuple(one for one in sections if one.blocks)


def _answer(brief: Brief) -> Paragraph:
    said = leader_words(brief.group, pointer("groups", brief.place, "answer"))
    if said is not None:
        return Paragraph(said, Tone.STRONG, _ANSWER_LINES)
    reason = Quote(brief.group.answer.reason or "", pointer("answer", "reason"))
    return Paragraph(text("No answer: {}.", reason), Tone.WARNING)


def _beside(brief: Brief) -> Iterator[Block]:
    """Yield what another measure says of those that share the first place."""
    found, at = brief.beside, pointer("answer", "beside")
    if found is None:
        return
    best = [Quote(name, at + pointer("best", k)) for k, name in enumerate(found.best)]
    verb = Name("is" if len(best) == 1 else "are")
    said = (Name(METRICS[found.metric].title), verb, listed(best, most=3))
    times = Figure(found.times, digits(2), at + pointer("times"))
    yield Paragraph(text("{} separates them: best {} {}; the most is {} times the least.", *said, times))


def _tls(brief: Brief) -> Iterator[Block]:
    agreed = agreed_in_all(brief.group)
    if agreed is not None:
        yield Paragraph(text("{}.", agreed), Tone.QUIET)


# --- remarks ----------------------------------------------------------------------------------------------


def _elsewhere(reading: Reading, brief: Brief, space: Space) -> Iterator[Block]:
    lines = [
        ("", _load_line(reading, one, pointer("answer", "elsewhere", k)))
        for k, one in enumerate(brief.elsewhere[: space.elsewhere])
    ]
    more = sum(len(one.groups) for one in brief.elsewhere[space.elsewhere :])
    if more:
        # It counts what is not shown: no value of the report.
        lines.append(("", text("{} more loads: {}", Name(str(more)), space.where)))
    if lines:
        yield Notes(tuple(lines))


def _load_line(reading: Reading, one: Elsewhere, at: str) -> Text:
    loads: list[Part] = [
        load_words(reading.groups[place].workload, pointer("groups", place, "load")) for place in one.groups
    ]
    under = listed(loads, most=3)
    if one.leader is None:
        return text("{}: no answer, {}", under, Quote(one.reason or "", at + pointer("reason")))
    said = text("{}: {} {}", under, Name(one.leader), _lead(reading, one, at))
    return text("{}; better, but not ranked: {}", said, _ahead(one, at)) if one.ahead else said


def _lead(reading: Reading, one: Elsewhere, at: str) -> Text:
    """Return what is known of a leader against the others."""
    if one.alone:
        return text("is the only one to qualify" if one.others_ran else "ran alone")
    if not one.decided:
        return text("has the best figure, without a verdict")
    groups = [reading.groups[place] for place in one.groups]
    if one.ties and all(limited_ties(group) for group in groups):
        held = any(is_limited(group) for group in groups)
        seen = "has the best figure that was seen; the generator limited it too"
        return text(seen if held else "is best of those that the generator did not limit")
    if one.ties:
        tied = counted(Figure(one.ties, count, at + pointer("ties")), "other")
        return text("shares the first place with {}", tied)
    return text("is best but for its stalled trials" if one.stalled else "is best")


def _ahead(one: Elsewhere, at: str) -> Text:
    """Return those that are not ranked though their figures are better, together where the reason is the
    same.
    """
    alike: dict[str, list[int]] = {}
    for place, found in enumerate(one.ahead):
        alike.setdefault(found.reason, []).append(place)
    parts: list[Part] = []
    for reason, places in alike.items():
        names: list[Part] = [Name(one.ahead[place].name) for place in places]
        why = Quote(reason, at + pointer("ahead", places[0], "reason"))
        parts.append(text("{} ({})", listed(names, most=_MOST_AHEAD), why))
    return joined(parts)


def _claims(reading: Reading, space: Space) -> Iterator[Judgement]:
    if not reading.claims:
        return
    yield Judgement("claims", Tone.PLAIN, claim_counts(reading))
    failed = list(failed_claims(reading))
    for words in failed[: space.claims]:
        yield Judgement("", Tone.BAD, words)
    if len(failed) > space.claims:
        more = Name(str(len(failed) - space.claims))
        yield Judgement("", Tone.BAD, text("{} more do not hold: {}", more, space.where))


# --- what to do -------------------------------------------------------------------------------------------


def _start(reading: Reading, leader: str | None) -> Iterator[Block]:
    record = reading.subjects.get(leader or "")
    if record is not None and record.command_line:
        yield Paragraph(text("To start {}:", Name(leader or "")))
        yield Command(record.command_line)


def _places(places: Places) -> Notes:
    page = EMPTY if places.page is None else text("; page: {}", Name(places.page))
    return Notes(
        (
            ("", text("Archive: {}{}", Name(places.archive), page)),
            ("", text("Everything: {}", Name(places.full))),
        )
    )
