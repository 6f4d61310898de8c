"""What does not count and why: failed trials with the end of their logs, and what was not measured."""

import re
from collections.abc import Iterable, Sequence

from prony.analysis.summary import CellSummary, TrialFigures
from prony.model import Failed, Invalid
from prony.report.document import Block, Notes, Paragraph, Section
from prony.report.reading import Reading

__all__ = ["unavailable", "uncounted"]

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
        alike.setdefault(_outcome_words(trial), []).append(trial)
    return alike.values()


def uncounted(reading: Reading) -> Section | None:
    """Return the trials that do not count, those that failed alike together; null if all count."""
    blocks: list[Block] = []
    for group in reading.groups:
        for cell in group.cells:
            for trials in _failed_alike(cell):
                where = _block_words([trial.block for trial in trials])
                text = f"{cell.name}, {where}: {_outcome_words(trials[0])}"
                lines = _telling_lines(trials[0].log.text)
                blocks += [Paragraph(text), Notes(tuple(("  |", line) for line in lines))]
    return Section("Trials that do not count", tuple(blocks)) if blocks else None


def unavailable(reading: Reading) -> Section | None:
    """Return the subjects that were not measured, with the reason; null if all were."""
    reasons = {record.name: record.unavailable for record in reading.subjects.values() if record.unavailable}
    for group in reading.groups:
        for cell in group.cells:
            if not cell.total:
                reasons.setdefault(cell.name, "no trial was run")
    items = tuple(("", f"{name}: {reason}") for name, reason in reasons.items())
    return Section("Not measured", (Notes(items),)) if items else None
