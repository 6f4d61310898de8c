"""The last lines of a report: the best subject, how sure that is, and the command that starts it."""

from collections.abc import Iterable, Iterator
from statistics import mode

from prony.core.metrics import METRICS
from prony.figures.answer import Answer
from prony.figures.statistics.compare import HELD_BACK, Comparison, Verdict
from prony.figures.summary import CellSummary
from prony.model.trial import FaultKind
from prony.reading.groups import Group
from prony.reading.study import StudyResults
from prony.report.document import Block, Command, Notes, Paragraph, Section, Tone
from prony.report.forms import TENFOLD, about_percent, count, in_metric_within
from prony.report.sections.claims import claim_counts
from prony.report.sections.effects import effect_words
from prony.report.sections.figures import group_heading
from prony.report.sections.rates import rate_answers
from prony.report.text import EMPTY, Figure, Name, Quote, Text, counted, each_of, pointer, text
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
