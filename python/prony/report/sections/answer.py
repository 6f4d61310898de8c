"""The last lines of a report: the best subject, how sure that is, and the command that starts it.

The highest rate at which each subject meets an objective: found by search, confirmed in fresh trials.
"""

from collections.abc import Iterable, Iterator, Sequence
from statistics import mode

from prony.core.metrics import METRICS
from prony.figures.answer import Answer
from prony.figures.statistics.compare import HELD_BACK, Comparison, Verdict
from prony.figures.summary import CellSummary
from prony.model.facts import RateStep, Unmet
from prony.model.trial import FaultKind
from prony.reading.groups import Group
from prony.reading.saturation import Confirmed, SearchEnd
from prony.reading.study import StudyResults
from prony.report.document import (
    Block,
    Command,
    Entry,
    Footnotes,
    Notes,
    Paragraph,
    Section,
    Table,
    Tone,
    headed,
)
from prony.report.findings import limit_words
from prony.report.forms import TENFOLD, about_percent, count, in_metric, in_metric_within, rate, whole_percent
from prony.report.sections.claims import claim_counts
from prony.report.sections.effects import effect_words
from prony.report.sections.figures import group_heading
from prony.report.text import EMPTY, Figure, Name, Quote, Text, counted, each_of, joined, pointer, text
from prony.report.words import bound_sign

_LEVEL = Name("95 %")
# More than anybody runs.
_MOST_BLOCKS = 1000


def _figure(group: Group, cell: CellSummary, at: str) -> Text:
    value, metric = group.answer.figure, group.answer.metric or ""
    if value is None:
        return text("—")
    form = in_metric_within(metric, value.half_width or 0.0)
    mean = text("{}{}", bound_sign(cell, metric), Figure(value.mean, form, at + pointer("mean")))
    if value.low is None or value.high is None:
        return text("{} (too few trials for an interval)", mean)
    low, high = each_of(value, at, form, "low", "high")
    return text("{} ({} interval {} to {}, whoever leads)", mean, _LEVEL, low, high)


def _sameness(comparison: Comparison, at: str) -> Text:
    if comparison.verdict in HELD_BACK:
        return text("{}", Quote(comparison.verdict.value, at + pointer("verdict")))
    if comparison.verdict is Verdict.EQUIVALENT:
        return text("equivalent")
    return text("not separated from it")


def _comparison_lines(found: Answer, at: str) -> Iterator[Text]:
    def where(name: str) -> str:
        return at + pointer("comparisons", name)

    for name in found.ties:
        comparison = found.comparisons[name]
        yield text(
            "{}: {} ({})",
            Name(name),
            _sameness(comparison, where(name)),
            effect_words(comparison, where(name)),
        )
    others = [name for name in found.comparisons if name not in found.ties]
    if others:
        (first, *_) = others
        yield text("next: {} ({})", Name(first), effect_words(found.comparisons[first], where(first)))


def _claim(group: Group, at: str) -> Text:
    found = group.answer
    number = Figure(found.blocks, count, at + pointer("blocks"))
    blocks = counted(number, "session") if found.by_session else text("{}", number)
    if found.alone:
        only = "is the only one to qualify" if len(group.cells) > 1 else "ran alone"
        return text("{} (n = {})", Name(only), blocks)
    if not found.decided:
        return text("has the best figure; too few repeats for a verdict (n = {})", blocks)
    if found.ties:
        others = counted(Figure(len(found.ties), count, at + pointer("ties")), "other")
        if limited_ties(group):
            free = "is best of those that the generator did not limit; it limited {} (n = {})"
            held = "has the best figure that was seen; the generator limited it and {} (n = {})"
            return text(held if is_limited(group) else free, others, blocks)
        return text("shares the first place with {} (n = {})", others, blocks)
    if found.leader in group.stalls:
        return text("is best but for its stalled trials (n = {})", blocks)
    return text("is best (n = {})", blocks)


def limited_ties(group: Group) -> bool:
    """Return whether the generator was the limit of all that are not separated from the leader."""
    found = group.answer
    return bool(found.ties) and all(found.comparisons[name].verdict is Verdict.LIMITED for name in found.ties)


def is_limited(group: Group) -> bool:
    """Return whether the leader's figure is a bound: the generator limited it."""
    return any(cell.held_back for cell in group.cells if cell.name == group.answer.leader)


def leader_words(group: Group, at: str) -> Text | None:
    """Return who leads a group, how sure that is, and its figure; None where nobody leads. ``at``: where the
    JSON has its answer.
    """
    found = group.answer
    if found.leader is None or found.metric is None:
        return None
    cell = next(cell for cell in group.cells if cell.name == found.leader)
    figure = _figure(group, cell, at + pointer("figure"))
    parts = (Name(found.leader), _claim(group, at), Name(METRICS[found.metric].title), figure)
    return text("{} {}: {}, {}.", *parts)


def without_leader(group: Group) -> str:
    """Return what a group lacks in which nobody leads: an answer only where nothing was answered."""
    is_answered = any(cell.account.ok or cell.void for cell in group.cells)
    return "verdict" if is_answered else "answer"


# What to do before the same command, by what most trials suffered.
_BEFORE = {
    FaultKind.SLEPT: "keep the machine awake (systemd-inhibit)",
    FaultKind.OTHER_LOAD: "end what takes the CPUs (top -o %CPU)",
    FaultKind.STOLEN_TIME: "wait until others take no CPU time (vmstat)",
}


def unranked_words(group: Group, at: str) -> Text:
    """Return why nobody leads a group, and of figures that do not count, how to measure others. ``at``: where
    the JSON has the reason.
    """
    said = text(f"{without_leader(group)}: {{}}.", Quote(group.answer.reason or "", at))
    if not any(cell.void for cell in group.cells):
        return said
    faults = [trial.fault.kind for cell in group.cells for trial in cell.others if trial.fault]
    before = _BEFORE.get(mode(faults)) if faults else None
    marked = "{} What was answered is in brackets, and is no comparison. Next: {}, and type the same command"
    return text(f"{marked} again, with another --out.", said, before or "remove the cause that is named")


def _answer_blocks(reading: StudyResults, group: Group) -> Iterator[Block]:
    place, where = reading.place(group), EMPTY
    if len(reading.measured) > 1:
        where = text("{}{}: ", group_heading(group, place), "" if group.primary else " (screening)")
    yield from answer_lines(group, pointer("groups", place, "answer"), where, _power_line(group, place))


def answer_lines(group: Group, at: str, where: Text, more: Iterable[Text] = ()) -> Iterator[Block]:
    """Yield who leads a group and how the others compare, or why nobody does. ``at``: where the JSON has its
    answer; ``where``: what stands before it; ``more``: what follows of a load that verdicts were planned for.
    """
    found, said = group.answer, leader_words(group, at)
    if said is None:
        yield Paragraph(text("{}no {}", where, unranked_words(group, at + pointer("reason"))), Tone.WARNING)
        if found.by_session and found.first is not None:
            yield Notes.of(_of_few(found, at))
        return
    yield Paragraph(text("{}{}", where, said), Tone.STRONG)
    if group.primary:
        yield Notes.of((*_comparison_lines(found, at), *more))


def _of_few(found: Answer, at: str) -> Iterator[Text]:
    """Yield whose mean is best over sessions that are too few for a verdict, and how the next compares."""
    yield text("{} has the best mean", Name(found.first or ""))
    for name in list(found.comparisons)[:1]:
        where = at + pointer("comparisons", name)
        yield text("next: {} ({})", Name(name), effect_words(found.comparisons[name], where))


def _power_line(group: Group, place: int) -> Iterator[Text]:
    """Yield what difference the study could find: what is not separated may differ by less."""
    found, at = group.power, pointer("groups", place, "power")
    if found is None:
        return
    difference = Figure(found.difference, about_percent, at + pointer("difference"))
    unit = "session" if group.answer.by_session else "block"
    blocks = counted(Figure(found.blocks, count, at + pointer("blocks")), unit)
    more = "more than " if found.difference >= TENFOLD else ""
    said = f"{{}} find a difference of {more}{{}} between two subjects nine times in ten"
    seen = text(said, blocks, difference)
    if found.is_half_within_bar:
        bar = Figure(found.bar, about_percent, at + pointer("bar"))
        yield text("{}; no number of them finds half of it: {} is of no interest.", seen, bar)
        return
    if found.blocks_for_half is None:
        yield text("{}.", seen)
    elif found.blocks_for_half.low > _MOST_BLOCKS:
        yield text("{}; half of it would take more than a thousand.", seen)
    else:
        needed = each_of(found.blocks_for_half, at + pointer("blocks_for_half"), count, "low", "high")
        yield text(f"{{}}; half of it would take {{}} to {{}} {unit}s.", seen, *needed)


def _commands(reading: StudyResults) -> Iterator[Block]:
    """Yield the command of each leader once."""
    yield from _commands_of(reading, [group.answer.leader for group in reading.groups if group.primary])


def _commands_of(reading: StudyResults, names: Iterable[str | None]) -> Iterator[Block]:
    leaders = dict.fromkeys(names)
    for leader in leaders:
        record = reading.subjects.get(leader or "")
        if record is None or not record.command_line:
            continue
        if len(leaders) > 1:
            yield Paragraph(text("{}:", Name(leader or "")), Tone.QUIET)
        yield Command(record.command_line)


def answer_section(reading: StudyResults) -> Section:
    """Return the counts of claims, the answer to each load, and the commands that start the best.

    Loads that verdicts were planned for come last.
    """
    if reading.is_search:
        blocks, first = rate_answers(reading)
        return Section("Answer", (*blocks, *_commands_of(reading, [first])))
    groups = sorted(reading.measured, key=lambda group: group.primary)
    answers = [block for group in groups for block in _answer_blocks(reading, group)]
    counted = (Paragraph(text("{}.", claim_counts(reading))),) if reading.claims else ()
    return Section("Answer", (*counted, *answers, *_commands(reading)))


# --- the rates that a search found ------------------------------------------------------------------------


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
