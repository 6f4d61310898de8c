"""Checks of the study's figures: the calibration, other generators.

Other programs that used the CPUs of a study's trials: which, and what to type once they are closed.

Remarks on each subject: whether its windows show a steady state, and what else their samples show.
"""

from collections.abc import Iterator, Sequence
from itertools import product

from prony.core.metrics import METRICS
from prony.core.units import Scale
from prony.figures.drift import Drift
from prony.figures.missing import Missing
from prony.figures.statistics.compare import Verdict
from prony.figures.steadiness import Steadiness
from prony.figures.steady_state import Kind
from prony.figures.summary import NOT_STEADY, CellSummary, means
from prony.model.trial import TrialRole
from prony.reading.cells import coarsest, is_nearly_full, most, unknown_pace
from prony.reading.checks import CrossCheck
from prony.reading.study import StudyResults
from prony.report.document import Block, Column, Command, Entry, Footnotes, Paragraph, Section, Table, Tone
from prony.report.forms import (
    about_percent,
    as_typed,
    confidence,
    count,
    digits,
    estimate,
    metric_scale,
    percent,
    signed_percent,
    whole_percent,
)
from prony.report.sections.effects import bounded_words
from prony.report.tables import cell_at
from prony.report.text import (
    EMPTY,
    Figure,
    Name,
    Part,
    Quote,
    Text,
    counted,
    each_of,
    joined,
    listed,
    pointer,
    text,
)
from prony.report.words import load_words

_COLUMNS = ("subject", "under", "figure", "prony", "generator", "its figure", "difference")
_NUMBERS = ("prony", "its figure")
_TITLES = {"ok_per_s": "ok/s", "service_ok_p50": "p50", "service_ok_p99": "p99"}


# --- the calibration --------------------------------------------------------------------------------------


def calibration_notes(reading: StudyResults) -> Iterator[Text]:
    """Yield what the calibration shows of the machine during the study."""
    found = reading.calibrations
    if found is None:
        return
    if found.uncounted:
        parts = each_of(found, "/drift", count, "uncounted", "trials")
        yield text("{} of {} calibrations did not count.", *parts)
    for metric, drift in found.drifts.items():
        at = pointer("drift", "metrics", metric)
        often = Figure(drift.count, count, at + pointer("count"))
        if drift.change is None:
            yield text(
                "Blocks with calibrations that count: {}, too few to show a drift of the machine.", often
            )
            return
        yield _drifted(metric, drift, at)


def _drifted(metric: str, found: Drift, at: str) -> Text:
    often = counted(Figure(found.count, count, at + pointer("count")), "block")
    head = text("Calibration (the reference server, in {}): {}", often, Name(METRICS[metric].title))
    if found.change is None or found.low is None or found.high is None:
        return text("{} was measured in too few to show a drift.", head)
    change, low, high = each_of(found, at, signed_percent, "change", "low", "high")
    words = "drifted over the study" if found.drifts else "is not shown to have drifted over the study"
    return text("{} {} ({}, {} interval {} to {}).", head, words, change, Name("95 %"), low, high)


def dependence_notes(reading: StudyResults) -> Iterator[Text]:
    """Yield what it costs that blocks may resemble each other, and may be of any shape."""
    found = reading.dependence
    if found is None:
        return
    yield text(
        "Intervals are {} times as wide as normal noise would ask for: neighbouring blocks may resemble each "
        "other (correlation {}, as far as {} show it), and so few cannot show the shape of their noise.",
        Figure(found.widening, digits(2), "/dependence/widening"),
        Figure(found.correlation, digits(1), "/dependence/correlation"),
        counted(Figure(found.blocks, count, "/dependence/blocks"), "block"),
    )


def order_notes(reading: StudyResults) -> Iterator[Text]:
    """Yield whether it matters when in its block a trial ran."""
    found, at = reading.order_effect, "/order_effect"
    if found is None or found.verdict is Verdict.TOO_FEW:
        return
    if found.effect is None or found.low is None or found.high is None:
        return
    effect, low, high = each_of(found, at, signed_percent, "effect", "low", "high")
    yield text(
        "The order within blocks {}: what ran last against what ran first, {} ({} interval {} to {}; more is "
        "better).",
        *(_MATTERED.get(found.verdict, "is not shown to matter"), effect),
        *(Figure(found.level, confidence, at + pointer("level")), low, high),
    )


_MATTERED = {
    Verdict.EQUIVALENT: "changed nothing beyond the margin",
    Verdict.HIGHER: "mattered",
    Verdict.LOWER: "mattered",
    Verdict.TRIVIAL: "may have mattered a little",
}


# --- other generators -------------------------------------------------------------------------------------


def cross_check(reading: StudyResults) -> Section | None:
    """Return other generators' figures of the same cells beside Prony's own; None without any."""
    if not reading.added.get(TrialRole.CROSS_CHECK):
        return None
    notes = Footnotes()
    columns = tuple(Column(title, text=title not in _NUMBERS) for title in _COLUMNS)
    checks = enumerate(reading.cross_checks)
    rows = tuple(_row(reading, check, pointer("cross_checks", k), notes) for k, check in checks)
    lead = Paragraph(
        "Other generators measured the same cells in the same blocks. They time a request differently: "
        "throughput should agree, latencies may differ.",
        Tone.QUIET,
    )
    if not rows:
        return Section(
            "Other generators", (lead, Paragraph("No cell has figures of both generators.", Tone.WARNING))
        )
    return Section("Other generators", (lead, Table(columns, rows), notes.notes()))


def _row(reading: StudyResults, check: CrossCheck, at: str, notes: Footnotes) -> tuple[Entry, ...]:
    own, other, metric = check.own, check.other, check.metric
    scale = metric_scale(metric, means(cell.metrics[metric] for cell in (own, other)))
    name = _TITLES[metric] + ("" if metric == "ok_per_s" else f", {scale.unit}")
    load = load_words(own.cell.workload, cell_at(reading, own) + pointer("workload"))
    return (
        *(Entry.of(Name(own.name)), Entry(load), Entry(name)),
        _figure(own, metric, scale, at + pointer("own")),
        Entry.of(Name(other.cell.engine.name)),
        _figure(other, metric, scale, at + pointer("other")),
        _difference(check, at + pointer("comparison"), notes),
    )


def _figure(cell: CellSummary, metric: str, scale: Scale, at: str) -> Entry:
    value = cell.metrics[metric]
    return Entry("—", Tone.QUIET) if isinstance(value, Missing) else Entry(estimate(value, scale, at))


def _difference(check: CrossCheck, at: str, notes: Footnotes) -> Entry:
    found = check.comparison
    if found.effect is None:
        return Entry(notes.marked("—", "no block has figures of both"), Tone.QUIET)
    differ = found.verdict in (Verdict.HIGHER, Verdict.LOWER)
    tone = Tone.WARNING if differ else Tone.PLAIN
    return Entry(text("{}, {}", bounded_words(found, at), _verdict(check, at)), tone)


def _verdict(check: CrossCheck, at: str) -> Text:
    match check.comparison.verdict:
        case Verdict.EQUIVALENT:
            return text("agree")
        case Verdict.HIGHER | Verdict.LOWER:
            return text("differ")
        case Verdict.TOO_FEW:
            return text("n = {}: no verdict", Figure(check.comparison.blocks, count, at + pointer("blocks")))
        case other:
            return text(other.value)


# --- other programs ---------------------------------------------------------------------------------------


def busiest_words(reading: StudyResults) -> Text:
    """Return which programs used most; empty where that is not known."""
    found = reading.others
    if found is None or not found.busiest:
        return EMPTY
    each = [
        text("{} {}", Name(one.name), Figure(one.share, about_percent, f"/others/busiest/{k}/share"))
        for k, one in enumerate(found.busiest)
    ]
    return joined(each)


def again_blocks(reading: StudyResults) -> Iterator[Block]:
    """Yield what to close, and the command to type then, where other programs have moved a figure."""
    found = reading.others
    if found is not None and found.spoilt and found.command:
        names: list[Part] = [Name(one.name) for one in found.busiest]
        closed = listed(names) if names else "them"
        yield Paragraph(text("For figures without other programs close {}, then type:", closed))
        yield Command(found.command)


def others_section(reading: StudyResults) -> Section | None:
    """Return what other programs did, of which something is known beside their share; None: nothing is."""
    found, named = reading.others, busiest_words(reading)
    if found is None or not (named or found.command):
        return None
    share = Figure(found.share, about_percent, "/others/share")
    numbers = each_of(found, "/others", count, "trials", "of")
    said = text("In {} of {} trials other programs used {} of the CPUs' time", *numbers, share)
    words = text("{} ({}).", said, named) if named else text("{}.", said)
    return Section("Other programs", (Paragraph(words), *again_blocks(reading)))


# --- the pace of subjects, and their processes ------------------------------------------------------------


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
