"""Remarks on each subject: whether its windows show a steady state, and what else their samples show."""

from collections.abc import Iterator, Sequence
from itertools import product

from prony.figures.missing import Missing
from prony.figures.steadiness import Steadiness
from prony.figures.steady_state import Kind
from prony.figures.summary import NOT_STEADY, CellSummary
from prony.reading.cells import coarsest, is_nearly_full, most, unknown_pace
from prony.reading.study import StudyResults
from prony.report.forms import as_typed, count, percent, signed_percent, whole_percent
from prony.report.tables import cell_at
from prony.report.text import Figure, Name, Quote, Text, counted, listed, pointer, text
from prony.report.words import load_words

_SAID = {
    Kind.WARM_UP: "the warm-up spills over into the window: a longer warm-up would show better figures",
    Kind.SLOWDOWN: "it became slower during the window: a longer window would show worse figures",
    Kind.NONE: "no steady state within the window: a longer window may show other figures",
}
_SAID_OF_SHARES = {
    Kind.WARM_UP: "it lost fewer requests later in the window: a longer warm-up may show better figures",
    Kind.SLOWDOWN: "it lost more requests later in the window: a longer window would show worse figures",
    Kind.NONE: "it lost more or fewer requests late in the window: a longer one may show other figures",
}
_MOST = 6
# The trials of shorter windows see only large changes.
_LONG_WINDOW_S = 6


def pace_notes(reading: StudyResults) -> Iterator[Text]:
    """Yield the subjects that were not steady over their trials, by kind, and how far their means are off;
    what short windows could have shown at all; or that it cannot be said.
    """
    for of_shares, kind in product((False, True), Kind):
        cells = [cell for cell in reading.cells if _changed(cell) == (kind, of_shares)]
        found = [words for cell in cells for words in _bias(reading, cell)]
        if found:
            said = _SAID_OF_SHARES[kind] if of_shares else _SAID[kind]
            yield text(f"{{}}: {said} ({_heeded(cells)}).", listed(found, most=_MOST))
    yield from _visible(reading)
    why = unknown_pace(reading.cells)
    if why is not None:
        reason = Quote(why, unknown_at(reading, why))
        yield text("Whether the pace was steady within the windows is not testable: {}.", reason)


def _changed(cell: CellSummary) -> tuple[Kind, bool] | None:
    """Return how a cell changed, and whether that was in its share of valid replies; None if it did not."""
    found = cell.steadiness
    return None if isinstance(found, Missing) or found.is_steady else (found.kind, found.measure == "share")


def _heeded(cells: Sequence[CellSummary]) -> str:
    reasons = {cell.unqualified for cell in cells}
    if None in reasons:
        return "counted, by force"
    return "no verdict counts it without --force" if NOT_STEADY in reasons else "no verdict counts it"


def _bias(reading: StudyResults, cell: CellSummary) -> Iterator[Text]:
    if isinstance(cell.steadiness, Steadiness):
        at = cell_at(reading, cell) + pointer("steadiness")
        named, off = subject_words(reading, cell), cell.steadiness.bias
        if off is None:
            yield text("{} (it answered nothing at its end)", named)
        else:
            bias = Figure(off, signed_percent, at + pointer("bias"))
            yield text(f"{{}} (mean {cell.steadiness.measure} {{}} off its end)", named, bias)


def _visible(reading: StudyResults) -> Iterator[Text]:
    """Yield the largest change that short windows may hide."""
    found = coarsest(reading.cells, _LONG_WINDOW_S)
    if found is None:
        return
    cell, one = found
    at = cell_at(reading, cell) + pointer("steadiness")
    yield text(
        "In windows of {} only a change of {} or more is seen; the figures may contain smaller ones.",
        counted(Figure(one.seconds, count, at + pointer("seconds")), "second"),
        Figure(one.visible, percent, at + pointer("visible")),
    )


def unknown_at(reading: StudyResults, why: str) -> str:
    """Return where the report's JSON has the reason: at the first cell that has it."""
    return next(
        cell_at(reading, cell) + pointer("steadiness", "missing")
        for cell in reading.cells
        if isinstance(cell.steadiness, Missing) and cell.steadiness.reason == why
    )


def subject_words(reading: StudyResults, cell: CellSummary) -> Text:
    """Return the name of a cell's subject, with its load where the study has several."""
    if len(reading.groups) <= 1:
        return text("{}", Name(cell.name))
    load = load_words(cell.cell.workload, cell_at(reading, cell) + pointer("workload"))
    return text("{} at {}", Name(cell.name), load)


def evidence_notes(reading: StudyResults) -> Iterator[Text]:
    """Yield the subjects whose processes were replaced under load, or whose accept queue was full."""
    replaced = [
        text("{} (up to {})", subject_words(reading, cell), _most(reading, cell, "restarts"))
        for cell in reading.cells
        if most(cell, "restarts")
    ]
    if replaced:
        yield text("Processes were replaced within the window: {}.", listed(replaced, most=_MOST))
    full = [
        text("{} ({})", subject_words(reading, cell), _most(reading, cell, "accept_queue_peak"))
        for cell in reading.cells
        if is_nearly_full(cell)
    ]
    if full:
        yield text(
            "The accept queue was full or nearly full (share of its limit): {}.", listed(full, most=_MOST)
        )


def _most(reading: StudyResults, cell: CellSummary, metric: str) -> Figure:
    form = whole_percent if metric == "accept_queue_peak" else as_typed
    return Figure(most(cell, metric), form, cell_at(reading, cell) + pointer("metrics", metric, "max"))
