"""What does not count and why: failed trials with the end of their logs, and what was not measured."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from prony.analysis.failure_rates import Failures, compare_failures
from prony.analysis.multiplicity import holm
from prony.analysis.summary import CellSummary, TrialFigures
from prony.model import Failed, Invalid, TrialRole
from prony.reading.study import Reading
from prony.report.document import Block, Notes, Paragraph, Section
from prony.report.words import count_words, group_words

__all__ = ["unavailable", "uncounted"]

_LEVEL = 0.05
_PERCENTAGE = re.compile(r"\d+(?:\.\d+)? ?%")
_LOG_LINES = 8
_TRACEBACK_LINES = 6
# How the traceback of an exception ends, perhaps in colour: `ModuleNotFoundError: No module named 'flask'`.
_EXCEPTION = re.compile(r"^(?:\x1b\[[\d;]*m)*\w[\w.]*(Error|Exception|Exit|Interrupt)\b")


def _outcome_words(trial: TrialFigures) -> str:
    match trial.outcome:
        case Failed(stage, reason):
            return f"failed at {stage}: {reason}"
        case Invalid(reason):
            return f"not valid: {reason}"
        case _:
            return "ok"


def _telling_lines(text: str) -> list[str]:
    """Return the lines of a log that tell why: the end of its last traceback and the last line, else the
    last lines.

    What a server writes after a traceback, on its way down, says only that it goes down.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    ends = [index for index, line in enumerate(lines) if _EXCEPTION.match(line)]
    if not ends or ends[-1] >= len(lines) - 1:
        return lines[-(_TRACEBACK_LINES + 1 if ends else _LOG_LINES) :]
    first = max(0, ends[-1] - _TRACEBACK_LINES)
    return [*lines[first : ends[-1] + 1], lines[-1]]


def _block_words(blocks: Sequence[int]) -> str:
    """Return which blocks, counted from 1.

    >>> _block_words([0, 1, 2, 4])
    'blocks 1 to 3, 5'
    """
    runs: list[list[int]] = []
    for block in sorted(blocks):
        if runs and block == runs[-1][-1] + 1:
            runs[-1].append(block)
        else:
            runs.append([block])
    words = [f"{run[0] + 1} to {run[-1] + 1}" if len(run) > 1 else str(run[0] + 1) for run in runs]
    return f"block{'s' if len(blocks) > 1 else ''} {', '.join(words)}"


def _failed_alike(cell: CellSummary) -> Iterable[list[TrialFigures]]:
    alike: dict[str, list[TrialFigures]] = {}
    for trial in cell.others:
        alike.setdefault(_without_figures(_outcome_words(trial)), []).append(trial)
    return alike.values()


def _without_figures(words: str) -> str:
    """Return words alike for trials that differ in a figure only: why they do not count is the same."""
    return _PERCENTAGE.sub("… %", words)


def _words_of_all(trials: Sequence[TrialFigures]) -> str:
    words = _outcome_words(trials[0])
    return words if all(_outcome_words(one) == words for one in trials) else _without_figures(words)


def _log(trial: TrialFigures) -> Iterator[Block]:
    """Yield the end of the server's log; it does not tell why the machine spoilt a trial."""
    if isinstance(trial.outcome, Failed):
        yield Notes(tuple(("  |", line) for line in _telling_lines(trial.log.text)))


def uncounted(reading: Reading) -> Section | None:
    """Return the trials that do not count, those that failed alike together; null if all count."""
    blocks: list[Block] = []
    for group in reading.groups:
        under = f", {group_words(group)}" if len(reading.groups) > 1 else ""
        for cell in group.cells:
            for trials in _failed_alike(cell):
                where = _block_words([trial.block for trial in trials])
                often = f"{len(trials)} of {count_words(cell.total, 'trial')}"
                text = f"{cell.name}{under}, {often} ({where}): {_words_of_all(trials)}"
                blocks += [Paragraph(text), *_log(trials[0])]
    remarks = (*_rates(reading), *_repeated(reading))
    if remarks:
        blocks.append(Notes(tuple(("", text) for text in remarks)))
    return Section("Trials that do not count", tuple(blocks)) if blocks else None


def _rates(reading: Reading) -> Iterator[str]:
    """Yield whether a subject's trials fail more often than those of the one that fails least."""
    for group in reading.groups:
        counts = {cell.name: _failures(cell) for cell in group.cells if cell.total}
        least = min(counts, key=lambda name: _share(counts[name]), default="")
        found = {
            name: compare_failures(counts[least], count)
            for name, count in counts.items()
            if _share(count) > _share(counts[least])
        }
        levels = holm({name: one.p_value for name, one in found.items()}, _LEVEL)
        under = f" under {group_words(group)}" if len(reading.groups) > 1 else ""
        for name, one in found.items():
            shown = one.p_value <= levels[name]
            words = "fails more often than" if shown else "is not shown to fail more often than"
            yield (
                f"{name} {words} {least}{under}: {one.second.failed} of {one.second.total} trials, and "
                f"{one.first.failed} of {one.first.total} (Fisher's exact test, p = {one.p_value:.2g})."
            )


def _failures(cell: CellSummary) -> Failures:
    failed = sum(isinstance(trial.outcome, Failed) for trial in cell.others)
    return Failures(failed, cell.ok + failed)


def _share(count: Failures) -> float:
    return count.failed / count.total if count.total else 0.0


def _repeated(reading: Reading) -> Iterator[str]:
    """Yield how many trials were thrown away for their environment and repeated, and why."""
    last = {(trial.cell_id, trial.block, trial.role): trial for trial in reading.trials}
    thrown = [
        trial
        for trial in reading.trials
        if trial.role is TrialRole.SUBJECT
        and isinstance(trial.outcome, Invalid)
        and last[trial.cell_id, trial.block, trial.role] is not trial
    ]
    reasons = Counter(
        _without_figures(trial.outcome.reason) for trial in thrown if isinstance(trial.outcome, Invalid)
    )
    if thrown:
        told = "; ".join(f"{reason} ({count})" for reason, count in reasons.most_common())
        many = count_words(len(thrown), "trial")
        yield f"{many} repeated at the end of the block (the last counts): {told}."


def unavailable(reading: Reading) -> Section | None:
    """Return the subjects that were not measured, with the reason; null if all were."""
    reasons = {record.name: record.unavailable for record in reading.subjects.values() if record.unavailable}
    left_out = {number: why for run in reading.runs for number, why in run.facts.left_out.items()}
    for group in reading.groups:
        for cell in group.cells:
            if not cell.total:
                reasons.setdefault(cell.name, left_out.get(str(cell.cell.id), "no trial was run"))
    items = tuple(("", f"{name}: {reason}") for name, reason in reasons.items())
    return Section("Not measured", (Notes(items),)) if items else None
