"""The highest rate at which each subject meets an objective: found by search, confirmed in fresh trials."""

from prony.reading.found_rates import Confirmed
from prony.reading.study import Reading
from prony.report.document import Block, Column, Entry, Footnotes, Notes, Paragraph, Section, Table, Tone
from prony.report.forms import count, rate, whole_percent
from prony.report.text import EMPTY, Figure, Name, Quote, Text, pointer, text

__all__ = ["rate_answers", "rates"]


def rate_answers(reading: Reading) -> tuple[list[Block], str | None]:
    """Return the rates that the search found, the highest first, and the subject of the highest."""
    found = [(k, one) for k, one in enumerate(reading.found_rates) if one.rate_per_s is not None]
    ranked = sorted(found, key=lambda pair: -(pair[1].rate_per_s or 0))
    if not ranked:
        return [Paragraph("No subject met the objective at any rate.", Tone.WARNING)], None
    lines = [_line(one, pointer("found_rates", k)) for k, one in ranked]
    blocks: list[Block] = [Paragraph(lines[0], Tone.STRONG)]
    return [*blocks, Notes(tuple(("", line) for line in lines[1:]))], ranked[0][1].subject


def _line(one: Confirmed, at: str) -> Text:
    met, of = Figure(one.met, count, at + pointer("met")), Figure(one.of, count, at + pointer("of"))
    parts = (Name(one.subject), _rate(one, at), met, of)
    return text("{}: {}/s, met in {} of {} fresh trials.", *parts)


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
    stopped = (text("{}", Quote(one.stopped, at + pointer("stopped"))),) if one.stopped else ()
    name = Entry(notes.marked(Name(one.subject), *stopped))
    tried = Entry(text("{}", Figure(len(one.steps), count, at + pointer("steps"))))
    if one.rate_per_s is None:
        return name, Entry("—", Tone.BAD), Entry(""), Entry(""), tried
    met, of = Figure(one.met, count, at + pointer("met")), Figure(one.of, count, at + pointer("of"))
    tone = Tone.STRONG if one.met == one.of and one.of else Tone.WARNING
    return (
        *(name, Entry(text("{}", _rate(one, at)), tone), Entry(text("{}/{}", met, of), tone)),
        *(Entry(_interval(one, at)), tried),
    )


def _interval(one: Confirmed, at: str) -> Text:
    if one.low is None or one.high is None:
        return EMPTY
    low = Figure(one.low, whole_percent, at + pointer("low"))
    return text("{} to {}", low, Figure(one.high, whole_percent, at + pointer("high")))
