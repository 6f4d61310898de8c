"""The last lines of a report: the best subject, how far that can be said, and what starts it."""

from collections.abc import Iterable, Iterator

from prony.analysis.answer import Answer
from prony.analysis.compare import Comparison, Verdict
from prony.analysis.summary import CellSummary, Estimate
from prony.metrics import METRICS, format_metric
from prony.reading.study import Group, Reading
from prony.report.document import Block, Command, Notes, Paragraph, Section, Tone
from prony.report.sections.claims import claim_counts
from prony.report.sections.figures import group_heading
from prony.report.sections.rates import is_search, rate_answers
from prony.report.words import signed_percent

__all__ = ["answer_section"]

# More than this nobody runs, and the number is itself a guess from a few blocks.
_MOST_BLOCKS = 100


def _figure(cell: CellSummary, metric: str) -> str:
    value = cell.metrics[metric]
    if not isinstance(value, Estimate):
        return "—"
    text = format_metric(metric, value.mean)
    if value.low is None or value.high is None:
        return f"{text} (one trial: no interval)"
    low, high = format_metric(metric, max(value.low, 0.0)), format_metric(metric, value.high)
    return f"{text} (95 % interval {low} to {high})"


def _interval(found: Comparison) -> str:
    if found.effect is None:
        return "not compared"
    text = signed_percent(found.effect)
    if found.low is None or found.high is None:
        return text
    low, high = signed_percent(found.low), signed_percent(found.high)
    return f"{text}, {100 * (1 - found.level):.3g} % interval {low} to {high}"


def _sameness(comparison: Comparison) -> str:
    if comparison.verdict is Verdict.EQUIVALENT:
        return "equivalent"
    needed = comparison.blocks_needed
    if needed is None:
        return "not told apart from it"
    if needed > _MOST_BLOCKS:
        return "not told apart from it: too close, or too noisy, to tell"
    return f"not told apart from it, {needed} blocks would tell"


def _comparison_lines(found: Answer) -> Iterator[str]:
    for name in found.ties:
        comparison = found.comparisons[name]
        yield f"{name}: {_sameness(comparison)} ({_interval(comparison)})"
    others = [name for name in found.comparisons if name not in found.ties]
    if others:
        yield f"next: {others[0]} ({_interval(found.comparisons[others[0]])})"


def _answer_blocks(reading: Reading, group: Group) -> Iterator[Block]:
    found = group.answer
    screening = "" if group.primary else " (screening)"
    where = f"{group_heading(group)}{screening}: " if len(reading.measured) > 1 else ""
    if found.leader is None or found.metric is None:
        yield Paragraph(f"{where}no answer: {found.reason}.", Tone.WARNING)
        return
    cell = next(cell for cell in group.cells if cell.name == found.leader)
    title = METRICS[found.metric].title
    if found.decided:
        claim = (
            f"is best (n = {found.blocks})"
            if not found.ties
            else f"leads, not told apart from others (n = {found.blocks})"
        )
    else:
        claim = f"leads; too few repeats for a verdict (n = {found.blocks})"
    yield Paragraph(f"{where}{found.leader} {claim}: {title}, {_figure(cell, found.metric)}.", Tone.STRONG)
    if group.primary:
        yield Notes(tuple(("", line) for line in _comparison_lines(found)))


def _commands(reading: Reading) -> Iterator[Block]:
    """Give the command of each leader once."""
    yield from _commands_of(reading, [group.answer.leader for group in reading.groups if group.primary])


def _commands_of(reading: Reading, names: Iterable[str | None]) -> Iterator[Block]:
    leaders = dict.fromkeys(names)
    for leader in leaders:
        record = reading.subjects.get(leader or "")
        if record is None or not record.command_line:
            continue
        if len(leaders) > 1:
            yield Paragraph(f"{leader}:", Tone.QUIET)
        yield Command(record.command_line)


def answer_section(reading: Reading) -> Section:
    """Return the claims' counts, the answer to each load (those that verdicts were planned for last), and the
    commands that start the best.
    """
    if is_search(reading):
        blocks, first = rate_answers(reading)
        return Section("Answer", (*blocks, *_commands_of(reading, [first])))
    groups = sorted(reading.measured, key=lambda group: group.primary)
    answers = [block for group in groups for block in _answer_blocks(reading, group)]
    counted = (Paragraph(f"{claim_counts(reading)}."),) if reading.claims else ()
    return Section("Answer", (*counted, *answers, *_commands(reading)))
