"""The highest rate at which each subject meets an objective: found by search, confirmed in fresh trials."""

from collections.abc import Iterator, Sequence

from prony.model.facts import RateStep, Unmet
from prony.reading.saturation import Confirmed, SearchEnd
from prony.reading.study import StudyResults
from prony.report.document import Block, Entry, Footnotes, Notes, Paragraph, Section, Table, Tone, headed
from prony.report.findings import limit_words
from prony.report.forms import count, in_metric, rate, whole_percent
from prony.report.text import EMPTY, Figure, Name, Quote, Text, counted, each_of, joined, pointer, text

_LEVEL = Name("95 %")
_LEAD = (
    "rate: half of all trials meet the objective there, as the search and fresh trials say together, with "
    "its {} interval. Most of the fresh trials should meet it at the rate tested, fixed before them."
)
_TIES = " tie: subjects that share a letter are not separated."
_NONE = "No subject met the objective at any rate."
_UNDECIDED = "No rate was found that meets the objective; not every search could decide whether there is one."
_OPEN = "Which rate is the highest is open: {} may have a higher one, for what was found is a bound."
_REFUTED = "Which rate is the highest is open: {} may have a higher one, which fresh trials do not confirm."


def rate_answers(reading: StudyResults) -> tuple[list[Block], str | None]:
    """Return the rates that the search found, the highest first, and the subject of the highest; None where
    another's is a bound, or not confirmed, and may be higher.
    """
    ranked = [(k, one) for k, one in enumerate(reading.found_rates) if one.rate_per_s is not None]
    if not ranked:
        is_open = any(one.end is SearchEnd.UNDECIDED for one in reading.found_rates)
        return [Paragraph(_UNDECIDED if is_open else _NONE, Tone.WARNING)], None
    lines = [_line(one, pointer("found_rates", k)) for k, one in ranked]
    best = ranked[0][1]
    doubt = _doubt(best, [one for _, one in ranked[1:]])
    if doubt is not None or best.is_refuted:
        shown = lines if doubt is not None else lines[1:]
        lead = Paragraph(doubt, Tone.STRONG) if doubt is not None else Paragraph(lines[0], Tone.WARNING)
        return [lead, Notes.of(shown)], None
    blocks: list[Block] = [Paragraph(lines[0], Tone.STRONG)]
    return [*blocks, Notes.of((*lines[1:], *_ties(best, ranked)))], best.subject


def _doubt(best: Confirmed, others: Sequence[Confirmed]) -> Text | None:
    """Return whose rate may be higher than the best; None where there is none."""
    bounds = [Name(one.subject) for one in others if one.at_least]
    if bounds:
        return text(_OPEN, joined(bounds))
    refuted = [one for one in others if one.is_refuted and not best.is_refuted]
    higher = [Name(one.subject) for one in refuted if one.highest_per_s > best.highest_per_s]
    return text(_REFUTED, joined(higher)) if higher else None


def _ties(best: Confirmed, ranked: Sequence[tuple[int, Confirmed]]) -> Iterator[Text]:
    tied = [Name(one.subject) for _, one in ranked[1:] if set(one.letters) & set(best.letters)]
    if tied:
        yield text("Not separated from {}: {}.", Name(best.subject), joined(tied))


def _line(one: Confirmed, at: str) -> Text:
    met, of = each_of(one, at, count, "met", "of")
    undecided = _undecided(one, at)
    if one.boundary is None:
        rest = text("met in {}{} of {} fresh trials{}", "only " if one.is_refuted else "", met, of, undecided)
        return text("{}: {}/s, {}.", Name(one.subject), _bounded(one, at), rest)
    parts = (Name(one.subject), _highest(one, at), _LEVEL, _interval_of_rate(one, at))
    tested = text("{}/s met in {}{} of {}", _rate(one, at), "only " if one.is_refuted else "", met, of)
    return text("{}: {}/s ({} interval {}); {} fresh trials{}.", *parts, tested, undecided)


def _highest(one: Confirmed, at: str) -> Text:
    """Return the rate that half of the trials meet, else the one that was tested, as a bound where it is."""
    if one.boundary is None:
        return _bounded(one, at)
    return text("{}", Figure(one.boundary.rate_per_s, rate, at + pointer("boundary", "rate_per_s")))


def _interval_of_rate(one: Confirmed, at: str) -> Text:
    if one.boundary is None:
        return EMPTY
    return text("{} to {}", *each_of(one.boundary, at + pointer("boundary"), rate, "low_per_s", "high_per_s"))


def _undecided(one: Confirmed, at: str) -> Text:
    """Return how many fresh trials leave it open; empty where none does."""
    if not one.unknown:
        return EMPTY
    return text("; {} more could not be decided", _unknown(one, at))


def _bounded(one: Confirmed, at: str) -> Text:
    return text("{}{}", "≥ " if one.at_least else "", _rate(one, at))


def _rate(one: Confirmed, at: str) -> Figure:
    return Figure(one.rate_per_s or 0.0, rate, at + pointer("rate_per_s"))


def rates(reading: StudyResults) -> Section | None:
    """Return the table of the rates; None without a search."""
    found, notes = reading.found_rates, Footnotes()
    if not found:
        return None
    objective = reading.plan.design.find_rate
    has_letters = any(one.letters for one in found)
    titles = (
        "subject",
        "rate /s",
        "interval",
        "tested /s",
        "met",
        "windows",
        *(("tie",) if has_letters else ()),
    )
    columns = headed(*titles, words=("subject", "interval", "tie"))
    rows = tuple(
        (*_row(one, pointer("found_rates", k), notes), *((Entry(one.letters),) if has_letters else ()))
        for k, one in enumerate(found)
    )
    what = Quote(objective, "/plan/design/find_rate") if objective else "the objective"
    heading = text("Highest rate that meets {}", what)
    said = Paragraph(text("{}{}", text(_LEAD, _LEVEL), _TIES if has_letters else ""), Tone.QUIET)
    return Section(heading, (said, Table(columns, rows), notes.notes()))


def _row(one: Confirmed, at: str, notes: Footnotes) -> tuple[Entry, ...]:
    name = Entry(notes.marked(Name(one.subject), *_end(one, at), *_other_tests(one, at)))
    tried = Entry.of(Figure(len(one.steps), count, at + pointer("steps")))
    if one.rate_per_s is None:
        return name, Entry("—", Tone.BAD), Entry(""), Entry(""), Entry(""), tried
    tone = Tone.WARNING if one.is_refuted or not one.of or one.unknown else Tone.STRONG
    return (
        *(name, Entry(_highest(one, at), tone), Entry(_interval_of_rate(one, at))),
        *(Entry.of(_rate(one, at)), Entry(_confirmed(one, at, notes), tone), tried),
    )


def _other_tests(one: Confirmed, at: str) -> Iterator[Text]:
    """Yield what fresh trials said of other rates than the one of the row."""
    for k, test in enumerate(one.tests):
        of = at + pointer("tests", k)
        if test.rate_per_s != one.rate_per_s:
            met = each_of(test, of, count, "met", "of")
            tried = Figure(test.rate_per_s, rate, of + pointer("rate_per_s"))
            yield text("fresh trials at {}/s: met in {} of {}", tried, *met)


def _confirmed(one: Confirmed, at: str, notes: Footnotes) -> Text:
    shares = each_of(one, at, count, "met", "of")
    more = (counted(_unknown(one, at), "more fresh trial"),) if one.unknown else ()
    said = (
        *(text("{} could not be decided", each) for each in more),
        *(text("the share of all such trials: {}", each) for each in _share(one, at)),
    )
    return notes.marked(text("{}/{}", *shares), *said)


def _unknown(one: Confirmed, at: str) -> Figure:
    return Figure(one.unknown, count, at + pointer("unknown"))


def _share(one: Confirmed, at: str) -> Iterator[Text]:
    if one.low is not None and one.high is not None:
        yield text("{} to {} ({})", *each_of(one, at, whole_percent, "low", "high"), _LEVEL)


def _end(one: Confirmed, at: str) -> tuple[Text, ...]:
    """Return what ended a search; empty where nothing was tried."""
    if one.end is SearchEnd.NO_HIGHER_TRIED:
        return (text("{}/s met it, and no higher rate was tried", _rate(one, at)),)
    if one.ended_by is None:
        return ()
    step, at_step = one.ended_by, at + pointer("ended_by")
    tried, why = Figure(step.rate_per_s, rate, at_step + pointer("rate_per_s")), _why(step, at_step)
    match one.end:
        case SearchEnd.UNDECIDED:
            return (text("at {}/s the search could not decide: {}", tried, why),)
        case SearchEnd.NONE_MET:
            return (text("no rate met it, down to {}/s: {}", tried, why),)
        case _:
            return (text("in the search {}/s did not meet it: {}", tried, why),)


def _why(step: RateStep, at: str) -> Text:
    reason = _reason(step, at)
    if step.limit is None:
        return reason
    limit = limit_words(step.limit, at + pointer("limit"))
    if step.met is None and step.unmet is None:
        # The reason is of the generator already.
        return text("{} ({})", reason, limit)
    return text("{} (the generator may have been the limit: {})", reason, limit)


def _reason(step: RateStep, at: str) -> Text:
    if step.unmet is not None:
        missed = _unmet(step.unmet, at + pointer("unmet"))
        is_known = step.met is False or step.limit is not None
        return missed if is_known else text("{} ({})", missed, Quote(step.reason, at + pointer("reason")))
    said = text("{}", Quote(step.reason, at + pointer("reason")))
    return said if step.stage is None else text("it failed at {}: {}", Name(step.stage), said)


def _unmet(unmet: Unmet, at: str) -> Text:
    condition = Quote(unmet.condition, at + pointer("condition"))
    if unmet.value is None:
        return text("not `{}`: {}", condition, Quote(unmet.reason, at + pointer("reason")))
    value = Figure(unmet.value, in_metric(unmet.metric), at + pointer("value"))
    return text("not `{}`: it was {}", condition, value)
