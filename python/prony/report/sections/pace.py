"""Remarks on each subject: whether its windows show a steady state, and what else their samples show."""

from collections.abc import Iterator

from prony.analysis.missing import Missing
from prony.analysis.steady_state import Kind
from prony.analysis.summary import CellSummary
from prony.reading.pace import is_nearly_full, most, pace_of, unknown_pace
from prony.reading.study import Reading
from prony.report.forms import as_typed, count, whole_percent
from prony.report.places import cell_at
from prony.report.text import Figure, Name, Quote, Text, listed, pointer, text
from prony.report.words import load_words

__all__ = ["evidence_notes", "pace_notes", "unknown_at"]

_SAID = {
    Kind.WARM_UP: "the warm-up spills over into the window: a longer warm-up would show better figures",
    Kind.SLOWDOWN: "it became slower during the window: a longer window would show worse figures",
    Kind.NONE: "no steady state within the window: a longer window may show other figures",
}
_MOST = 6


def pace_notes(reading: Reading) -> Iterator[Text]:
    """Yield the subjects that were not steady in most of their trials, by kind: one trial may be chance.

    When windows are too short to decide this, one remark says so.
    """
    for kind, said in _SAID.items():
        found = [words for cell in reading.cells for words in _of_kind(reading, cell, kind)]
        if found:
            yield text(f"{{}}: {said}.", listed(found, most=_MOST))
    why = unknown_pace(reading.cells)
    if why is not None:
        reason = Quote(why, unknown_at(reading, why))
        yield text("Prony cannot say whether the pace was steady within the windows: {}.", reason)


def _of_kind(reading: Reading, cell: CellSummary, kind: Kind) -> Iterator[Text]:
    for k, pace in enumerate(pace_of(cell)):
        if pace.kind is kind and pace.most:
            at = cell_at(reading, cell) + pointer("paces", k)
            trials, of = (
                Figure(pace.trials, count, at + pointer("trials")),
                Figure(pace.of, count, at + pointer("of")),
            )
            yield text("{} ({} of {} trials)", _where(reading, cell), trials, of)


def unknown_at(reading: Reading, why: str) -> str:
    """Return where the report's JSON has the reason: at the first trial that has it."""
    return next(
        cell_at(reading, cell) + pointer("pace", trial.block, "missing")
        for cell in reading.cells
        for trial in cell.counted
        if isinstance(trial.steady, Missing) and trial.steady.reason == why
    )


def _where(reading: Reading, cell: CellSummary) -> Text:
    if len(reading.groups) <= 1:
        return text("{}", Name(cell.name))
    load = load_words(cell.cell.workload, cell_at(reading, cell) + pointer("workload"))
    return text("{} at {}", Name(cell.name), load)


def evidence_notes(reading: Reading) -> Iterator[Text]:
    """Yield the subjects whose processes were replaced under load, or whose accept queue was full."""
    replaced = [
        text("{} (up to {})", _where(reading, cell), _most(reading, cell, "restarts"))
        for cell in reading.cells
        if most(cell, "restarts")
    ]
    if replaced:
        yield text("Processes were replaced within the window: {}.", listed(replaced, most=_MOST))
    full = [
        text("{} ({})", _where(reading, cell), _most(reading, cell, "accept_queue_peak"))
        for cell in reading.cells
        if is_nearly_full(cell)
    ]
    if full:
        yield text(
            "The accept queue was full or nearly full (share of its limit): {}.", listed(full, most=_MOST)
        )


def _most(reading: Reading, cell: CellSummary, metric: str) -> Figure:
    form = whole_percent if metric == "accept_queue_peak" else as_typed
    return Figure(most(cell, metric), form, cell_at(reading, cell) + pointer("metrics", metric, "max"))
