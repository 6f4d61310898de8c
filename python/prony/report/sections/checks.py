"""Checks of the study's figures: the calibration, other generators."""

from collections.abc import Iterator

from prony.core.metrics import METRICS
from prony.core.units import Scale
from prony.figures.drift import Drift
from prony.figures.missing import Missing
from prony.figures.statistics.compare import Verdict
from prony.figures.summary import CellSummary, means
from prony.model.trial import TrialRole
from prony.reading.checks import CrossCheck
from prony.reading.study import StudyResults
from prony.report.document import Column, Entry, Footnotes, Paragraph, Section, Table, Tone
from prony.report.forms import confidence, count, digits, estimate, metric_scale, signed_percent
from prony.report.sections.effects import bounded_words
from prony.report.tables import cell_at
from prony.report.text import Figure, Name, Text, counted, each_of, pointer, text
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
