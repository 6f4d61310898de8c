"""What is known to limit each subject, a line each: why it is not ranked, what failed, what a rule found."""

from collections.abc import Iterator
from itertools import accumulate

from prony.reading.brief import Brief, Ranked, is_of_the_bench
from prony.reading.failures import failed_alike, failed_by_class
from prony.reading.findings import Shared
from prony.reading.study import Reading
from prony.report.causes import outcome_words
from prony.report.diagnoses import diagnosis_words
from prony.report.document import Judgement, Tone
from prony.report.findings import finding_words, shared_words
from prony.report.forms import count
from prony.report.sections.brief_table import shared_app
from prony.report.sections.limits import placed
from prony.report.tables import kind_words
from prony.report.text import Figure, Name, Part, Quote, Text, counted, joined, listed, pointer, text

# What subjects, other loads and these remarks take together of a screen.
_ROOM = 15
_LEAST = 3
_MOST_NAMES = 3
# Of names before what is said of them, in characters: the rest of the line is for that.
_NAMES_WIDTH = 40
# What limits the best is not cut.
_FIRST_LINES = 2


def limit_lines(reading: Reading, brief: Brief, most: int | None, where: str) -> Iterator[Judgement]:
    """Yield the remarks on subjects: what limits each, why some have no figures, and findings beside, by
    rank. ``most``: how many, null for what a screen has room for; ``where``: the others are.
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
        at = pointer("findings", one.found[0])
        said = (shared_words if len(one.subjects) > 1 else finding_words)(one.finding, at)
        trials = _often(one, pointer("shared_findings", place))
        yield Tone.PLAIN, text("{}{}: {}", _names(one.subjects, brief), trials, said)


def _often(one: Shared, at: str) -> Text:
    if one.of <= 1 or one.trials == one.of:
        return Text()
    trials = Figure(one.trials, count, at + pointer("trials"))
    return text(" ({} of {} trials)", trials, Figure(one.of, count, at + pointer("of")))


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
    return shared_app(brief) if any(row.cell.ok for row in brief.rows) else ""


def _unmeasured(reading: Reading) -> Iterator[_Line]:
    found = reading.unmeasured
    if found:
        parts: list[Part] = [
            text("{} ({})", Name(name), Quote(reason, pointer("unmeasured", name)))
            for name, reason in found.items()
        ]
        yield Tone.WARNING, text("not measured: {}", listed(parts, most=_MOST_NAMES))
