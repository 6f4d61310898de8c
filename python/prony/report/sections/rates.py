"""The highest rate of each subject that meets an objective: found by a search, confirmed in fresh trials."""

from prony.analysis.failure_rates import clopper_pearson
from prony.model import TrialRole
from prony.model.facts import FoundRate
from prony.reading.study import Reading
from prony.report.document import Block, Cell, Column, Footnotes, Notes, Paragraph, Section, Table, Tone

__all__ = ["found_rates", "is_search", "rate_answers", "rates"]


def found_rates(reading: Reading) -> tuple[FoundRate, ...]:
    """Return what the last run found of each subject; empty without a search."""
    return next((run.facts.found_rates for run in reversed(reading.runs) if run.facts.found_rates), ())


def is_search(reading: Reading) -> bool:
    """Return whether the study searched for rates instead of running its cells."""
    ran = any(trial.role is TrialRole.SUBJECT for trial in reading.trials)
    return bool(found_rates(reading)) and not ran


def rate_answers(reading: Reading) -> tuple[list[Block], str | None]:
    """Return what the search found, the highest rate first, and the subject that has it."""
    found = [(one.rate_per_s, one) for one in found_rates(reading) if one.rate_per_s is not None]
    ranked = sorted(found, key=lambda one: -one[0])
    if not ranked:
        return [Paragraph("No subject met the objective at any rate.", Tone.WARNING)], None
    lines = [
        f"{one.subject}: {rate:,.5g}/s, met in {one.met} of {one.of} fresh trials" for rate, one in ranked
    ]
    blocks: list[Block] = [Paragraph(f"{lines[0]}.", Tone.STRONG)]
    return [*blocks, Notes(tuple(("", f"{line}.") for line in lines[1:]))], ranked[0][1].subject


def rates(reading: Reading) -> Section | None:
    """Return the rates that were found; null without a search."""
    found, notes = found_rates(reading), Footnotes()
    if not found:
        return None
    objective = reading.plan.design.find_rate
    lead = (
        "Each rate was searched for by doubling and bisection, and then measured afresh: the share of those "
        "trials that meet the objective is what holds, with its exact 95 % interval."
    )
    columns = (
        *(Column("subject", text=True), Column("rate /s"), Column("confirmed")),
        *(Column("interval", text=True), Column("rates tried")),
    )
    rows = tuple(_row(one, notes) for one in found)
    heading = f"Highest rate that meets {objective}" if objective else "Highest rate that meets the objective"
    return Section(heading, (Paragraph(lead, Tone.QUIET), Table(columns, rows), notes.notes()))


def _row(found: FoundRate, notes: Footnotes) -> tuple[Cell, ...]:
    rate, met, of, tried = found.rate_per_s, found.met, found.of, len(found.steps)
    name = Cell(f"{found.subject}{notes.mark(found.stopped) if found.stopped else ''}")
    if rate is None:
        return name, Cell("—", Tone.BAD), Cell(""), Cell(""), Cell(f"{tried}")
    interval = Cell("")
    if of:
        low, high = clopper_pearson(met, of)
        interval = Cell(f"{low:.0%} to {high:.0%}")
    tone = Tone.STRONG if met == of and of else Tone.WARNING
    return name, Cell(f"{rate:,.5g}", tone), Cell(f"{met}/{of}", tone), interval, Cell(f"{tried}")
