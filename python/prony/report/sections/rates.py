"""The highest rate at which each subject meets an objective: found by search, confirmed in fresh trials."""

from prony.model.facts import RateStep, Unmet
from prony.reading.found_rates import Confirmed, SearchEnd
from prony.reading.study import Reading
from prony.report.document import Block, Column, Entry, Footnotes, Notes, Paragraph, Section, Table, Tone
from prony.report.findings import limit_words
from prony.report.forms import count, in_metric, rate, whole_percent
from prony.report.text import EMPTY, Figure, Name, Quote, Text, counted, joined, pointer, text

__all__ = ["rate_answers", "rates"]

_NONE = "No subject met the objective at any rate."
_UNDECIDED = "No rate was found that meets the objective; not every search could decide whether there is one."
_OPEN = "Which rate is the highest is open: {} may have a higher one, for what was found is a bound."


def rate_answers(reading: Reading) -> tuple[list[Block], str | None]:
    """Return the rates that the search found, the highest first, and the subject of the highest; null where
    another's is a bound, and may be higher.
    """
    found = [(k, one) for k, one in enumerate(reading.found_rates) if one.rate_per_s is not None]
    ranked = sorted(found, key=lambda pair: -(pair[1].rate_per_s or 0))
    if not ranked:
        is_open = any(one.end is SearchEnd.UNDECIDED for one in reading.found_rates)
        return [Paragraph(_UNDECIDED if is_open else _NONE, Tone.WARNING)], None
    lines = [_line(one, pointer("found_rates", k)) for k, one in ranked]
    open_ones = [Name(one.subject) for _, one in ranked[1:] if one.at_least]
    if open_ones:
        said = text(_OPEN, joined(open_ones))
        return [Paragraph(said, Tone.STRONG), Notes(tuple(("", line) for line in lines))], None
    blocks: list[Block] = [Paragraph(lines[0], Tone.STRONG)]
    return [*blocks, Notes(tuple(("", line) for line in lines[1:]))], ranked[0][1].subject


def _line(one: Confirmed, at: str) -> Text:
    met, of = Figure(one.met, count, at + pointer("met")), Figure(one.of, count, at + pointer("of"))
    parts = (Name(one.subject), _bounded(one, at), met, of, _undecided(one, at))
    return text("{}: {}/s, met in {} of {} fresh trials{}.", *parts)


def _undecided(one: Confirmed, at: str) -> Text:
    """Return how many fresh trials leave it open; empty where none does."""
    if not one.unknown:
        return EMPTY
    return text("; {} more could not be decided", _unknown(one, at))


def _bounded(one: Confirmed, at: str) -> Text:
    return text("{}{}", "≥ " if one.at_least else "", _rate(one, at))


def _rate(one: Confirmed, at: str) -> Figure:
    return Figure(one.rate_per_s or 0.0, rate, at + pointer("rate_per_s"))


def rates(reading: Reading) -> Section | None:
    """Return the table of the rates; null without a search."""
    found, notes = reading.found_rates, Footnotes()
    if not found:
        return None
    objective = reading.plan.design.find_rate
    lead = text(
        "Prony searched for each rate by doubling and bisection, and then measured it in fresh trials. "
        "The result is the share of those trials that meet the objective, with its exact {} interval.",
        Name("95 %"),
    )
    columns = (
        *(Column("subject", text=True), Column("rate /s"), Column("confirmed")),
        *(Column("interval", text=True), Column("rates tried")),
    )
    rows = tuple(_row(one, pointer("found_rates", k), notes) for k, one in enumerate(found))
    what = Quote(objective, "/plan/design/find_rate") if objective else "the objective"
    heading = text("Highest rate that meets {}", what)
    return Section(heading, (Paragraph(lead, Tone.QUIET), Table(columns, rows), notes.notes()))


def _row(one: Confirmed, at: str, notes: Footnotes) -> tuple[Entry, ...]:
    name = Entry(notes.marked(Name(one.subject), *_end(one, at)))
    tried = Entry(text("{}", Figure(len(one.steps), count, at + pointer("steps"))))
    if one.rate_per_s is None:
        return name, Entry("—", Tone.BAD), Entry(""), Entry(""), tried
    tone = Tone.STRONG if one.met == one.of and one.of and not one.unknown else Tone.WARNING
    return (
        *(name, Entry(_bounded(one, at), tone), Entry(_confirmed(one, at, notes), tone)),
        *(Entry(_interval(one, at)), tried),
    )


def _confirmed(one: Confirmed, at: str, notes: Footnotes) -> Text:
    shares = (Figure(one.met, count, at + pointer("met")), Figure(one.of, count, at + pointer("of")))
    more = (counted(_unknown(one, at), "more fresh trial"),) if one.unknown else ()
    return notes.marked(text("{}/{}", *shares), *(text("{} could not be decided", each) for each in more))


def _unknown(one: Confirmed, at: str) -> Figure:
    return Figure(one.unknown, count, at + pointer("unknown"))


def _interval(one: Confirmed, at: str) -> Text:
    if one.low is None or one.high is None:
        return EMPTY
    low = Figure(one.low, whole_percent, at + pointer("low"))
    return text("{} to {}", low, Figure(one.high, whole_percent, at + pointer("high")))


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
            return (text("{}/s met it; {}/s did not: {}", _rate(one, at), tried, why),)


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
