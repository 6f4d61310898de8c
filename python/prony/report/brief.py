"""A study's report in short: the answer, one table, what limits, what was claimed, how far to trust it, and
the command that starts the best.

At most 40 lines of 80 columns for a dozen subjects, so each list of remarks here has its most.

What is known to limit each subject, a line each: why it is not ranked, what failed, what a rule found.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from prony.core.metrics import METRICS
from prony.reading.brief import Brief, Elsewhere, Ranked, brief_of, is_of_the_bench
from prony.reading.failures import failed_alike, failed_by_class
from prony.reading.study import StudyResults
from prony.report.diagnoses import diagnosis_words, found_words, often_words, placed
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
from prony.report.sections.answer import (
    is_limited,
    leader_words,
    limited_ties,
    rate_answers,
    rates,
    unranked_words,
    without_leader,
)
from prony.report.sections.brief_table import brief_table, has_table, shared_app
from prony.report.sections.brief_trust import trust_lines
from prony.report.sections.checks import again_blocks
from prony.report.sections.claims import claim_counts, failed_claims
from prony.report.sections.head import measured_words, warnings
from prony.report.sections.sweeps import sweep_lines
from prony.report.sections.tls import agreed_in_all
from prony.report.tables import kind_words
from prony.report.text import EMPTY, Figure, Name, Part, Quote, Text, counted, joined, listed, pointer, text
from prony.report.words import load_words, outcome_words

# What subjects, other loads and these remarks take together of a screen.
_ROOM = 15
_LEAST = 3
_MOST_NAMES = 3
# Of names before what is said of them, in characters: the rest of the line is for that.
_NAMES_WIDTH = 40
# What limits the best is not cut.
_FIRST_LINES = 2


def limit_lines(reading: StudyResults, brief: Brief, most: int | None, where: str) -> Iterator[Judgement]:
    """Yield the remarks on subjects: what limits each, why some have no figures, and findings beside, by
    rank. ``most``: how many, None for what a screen has room for; ``where``: the others are.
    """
    lines = [*_diagnoses(brief), *_faults(brief), *_limits(brief), *_unmeasured(reading)]
    most = most or max(_LEAST, _ROOM - len(brief.rows) - len(brief.elsewhere))
    shown = lines if len(lines) <= most else lines[: most - 1]
    for k, (tone, words) in enumerate(shown):
        yield Judgement("" if k else "limits", tone, words, least_lines=1 if k else _FIRST_LINES)
    if len(shown) < len(lines):
        # It counts what is not shown: no value of the report.
        more = Name(str(len(lines) - len(shown)))
        yield Judgement("", Tone.QUIET, text("{} more remarks: {}", more, where))


_Line = tuple[Tone, Text]


def _faults(brief: Brief) -> Iterator[_Line]:
    """Yield why subjects are not ranked, and why trials of others do not count."""
    app = _left_out(brief)
    for row in brief.rows:
        at = pointer("groups", brief.place, "cells", row.place)
        name, why = Name(row.cell.name.removesuffix(app)), row.cell.unqualified
        failed = _failed(row, at)
        if why is not None:
            reason = Quote(why, at + pointer("unqualified_reason"))
            said = text("{} is not ranked: {}{}", name, reason, _most_frequent(row, at))
            yield Tone.WARNING, joined((said, *failed), by="; ")
        elif failed:
            yield Tone.WARNING, text("{}: {}", name, *failed)


def _most_frequent(row: Ranked, at: str) -> Text:
    """Return how most of a subject's failed requests ended; empty where so few failed that it does not
    matter.
    """
    ratio = row.cell.error_ratio
    if ratio is None or ratio <= row.cell.allowed_errors:
        return Text()
    return text(" ({})", kind_words(failed_by_class(row.cell)[0], at + pointer("failed_requests", 0)))


def _failed(row: Ranked, at: str) -> tuple[Text, ...]:
    """Return the most frequent reason why trials of a subject do not count; empty where all count."""
    found = failed_alike(row.cell)
    if not found:
        return ()
    first = max(range(len(found)), key=lambda k: len(found[k].blocks))
    of = at + pointer("failed_alike", first)
    number = Figure(len(found[first].blocks), count, of + pointer("blocks"))
    total = counted(Figure(row.cell.total, count, at + pointer("trials")), "trial")
    return (text("{} of {} {}", number, total, outcome_words(found[first].cause, of)),)


def _diagnoses(brief: Brief) -> Iterator[_Line]:
    """Yield what limits each subject, those that are alike in one line. Another one is about the bench."""
    for one in brief.diagnoses:
        cause = one.diagnoses[0].cause_kind
        if cause is not None and is_of_the_bench(cause):
            continue
        said = text("{}: {}", _whose(one.subjects, brief), diagnosis_words(placed(one, brief.place)))
        yield Tone.QUIET if one.diagnoses[0].is_unknown else Tone.PLAIN, said


def _whose(subjects: tuple[str, ...], brief: Brief) -> Text:
    ran = sum(row.cell.ok > 0 for row in brief.rows)
    return text("all of them") if _MOST_NAMES < len(subjects) == ran else _names(subjects, brief)


def _limits(brief: Brief) -> Iterator[_Line]:
    for place, one in brief.limits:
        trials = EMPTY if one.trials == one.of else often_words(one, pointer("shared_findings", place))
        yield Tone.PLAIN, text("{}{}: {}", _names(one.subjects, brief), trials, found_words(one))


def _names(subjects: tuple[str, ...], brief: Brief) -> Text:
    """Return the subjects as the table calls them: so many that a line has room for more than names."""
    app = _left_out(brief)
    names = [name.removesuffix(app) for name in subjects]
    widths = accumulate(len(name) for name in names[:_MOST_NAMES])
    fitting = sum(width <= _NAMES_WIDTH for width in widths)
    parts: list[Part] = [Name(name) for name in names]
    return listed(parts, most=max(1, fitting))


def _left_out(brief: Brief) -> str:
    """Return the end of the names that the table leaves out, and its legend has; empty without a table."""
    return shared_app(brief) if has_table(brief) else ""


def _unmeasured(reading: StudyResults) -> Iterator[_Line]:
    found = reading.unmeasured
    if found:
        parts: list[Part] = [
            text("{} ({})", Name(name), Quote(reason, pointer("unmeasured", name)))
            for name, reason in found.items()
        ]
        yield Tone.WARNING, text("not measured: {}", listed(parts, most=_MOST_NAMES))


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


def brief_report(reading: StudyResults, places: Places | None = None) -> Document:
    """Return the short report of a study."""
    plan = reading.plan
    title = Quote(plan.title, "/plan/title") if plan.title else Quote(plan.name, "/plan/name")
    own = () if places is None else (Section("", (_places(places),)),)
    return Document(text("{}", title), (*brief_sections(reading), *own), _HEIGHT)


def brief_sections(reading: StudyResults, space: Space = Space()) -> tuple[Section, ...]:
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
        Section("", tuple(again_blocks(reading))),
        Section("", tuple(_start(reading, brief.group.answer.leader))),
    )
    return tuple(one for one in sections if one.blocks)


def _found(reading: StudyResults, space: Space) -> tuple[Section, ...]:
    """Return the answer of a search for rates."""
    blocks, first = rate_answers(reading)
    table = rates(reading)
    remarks = Judgements((*_claims(reading, space), *trust_lines(reading)))
    sections = (
        Section("", (*warnings(reading), *blocks)),
        *((table,) if table else ()),
        Section("", (remarks,), _REMARK_LINES),
        Section("", tuple(again_blocks(reading))),
        Section("", tuple(_start(reading, first))),
    )
    return tuple(one for one in sections if one.blocks)


def _answer(brief: Brief) -> Paragraph:
    said = leader_words(brief.group, pointer("groups", brief.place, "answer"))
    if said is not None:
        return Paragraph(said, Tone.STRONG, _ANSWER_LINES)
    said = unranked_words(brief.group, pointer("answer", "reason"))
    return Paragraph(text("No {}", said), Tone.WARNING, _ANSWER_LINES)


def _beside(brief: Brief) -> Iterator[Block]:
    """Yield what another measure says of those that share the first place."""
    found, at = brief.beside, pointer("answer", "beside")
    if found is None:
        return
    best = [Quote(name, at + pointer("best", k)) for k, name in enumerate(found.best)]
    verb = Name("is" if len(best) == 1 else "are")
    said = (Name(METRICS[found.metric].title), verb, listed(best, most=3))
    times = Figure(found.times, digits(2), at + pointer("times"))
    yield Paragraph(text("By {}, they differ: best {} {}; the most is {} times the least.", *said, times))


def _tls(brief: Brief) -> Iterator[Block]:
    agreed = agreed_in_all(brief.group)
    if agreed is not None:
        yield Paragraph(text("{}.", agreed), Tone.QUIET)


# --- remarks ----------------------------------------------------------------------------------------------


def _elsewhere(reading: StudyResults, brief: Brief, space: Space) -> Iterator[Block]:
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


def _load_line(reading: StudyResults, one: Elsewhere, at: str) -> Text:
    loads: list[Part] = [
        load_words(reading.groups[place].workload, pointer("groups", place, "load")) for place in one.groups
    ]
    under = listed(loads, most=3)
    if one.leader is None:
        missing = without_leader(reading.groups[one.groups[0]])
        return text(f"{{}}: no {missing}, {{}}", under, Quote(one.reason or "", at + pointer("reason")))
    said = text("{}: {} {}", under, Name(one.leader), _lead(reading, one, at))
    return text("{}; better, but not ranked: {}", said, _ahead(one, at)) if one.ahead else said


def _lead(reading: StudyResults, one: Elsewhere, at: str) -> Text:
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


def _claims(reading: StudyResults, space: Space) -> Iterator[Judgement]:
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


def _start(reading: StudyResults, leader: str | None) -> Iterator[Block]:
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
