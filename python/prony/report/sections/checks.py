"""What holds the study's figures against something else: calibration, other generators, found rates."""

from collections.abc import Iterator, Sequence

from prony.analysis.answer import log_ratios
from prony.analysis.compare import Comparison, Terms, Verdict, compare_family
from prony.analysis.drift import CALIBRATED, Drift, drift
from prony.analysis.missing import Missing
from prony.analysis.summary import CellSummary, Estimate
from prony.metrics import METRICS
from prony.model import Ok, TrialRole
from prony.reading.study import Reading
from prony.report.document import Cell, Column, Footnotes, Paragraph, Section, Table, Tone
from prony.report.scales import metric_scale
from prony.report.words import count_words, load_words, signed_percent
from prony.units import format_in

__all__ = ["Check", "calibration_notes", "cross_check", "cross_checks"]

_CHECKED = {"ok_per_s": "ok/s", "service_ok_p50": "p50", "service_ok_p99": "p99"}


# --- the calibration --------------------------------------------------------------------------------------


def calibration_notes(reading: Reading) -> Iterator[str]:
    """Yield what the calibration cell says of the machine while the study ran."""
    trials = [trial for trial in reading.trials if trial.role is TrialRole.CALIBRATION]
    ok = [trial for trial in trials if isinstance(trial.outcome, Ok)]
    if not trials:
        return
    if len(ok) < len(trials):
        yield f"{len(trials) - len(ok)} of {len(trials)} calibrations did not count."
    for metric in CALIBRATED:
        points = [
            (trial.started_unix_ns / 1e9, value)
            for trial in ok
            if not isinstance(value := trial.metrics[metric], Missing) and value > 0
        ]
        found = drift(points, reading.plan.design.margin)
        if found.change is None:
            yield f"Calibrations that count: {found.count}, too few to show a drift of the machine."
            return
        yield _drifted(metric, found)


def _drifted(metric: str, found: Drift) -> str:
    often = count_words(found.count, "time")
    head = f"Calibration (the reference server, {often}): {METRICS[metric].title}"
    if found.change is None or found.low is None or found.high is None:
        return f"{head} was measured too few times to show a drift."
    change, low, high = map(signed_percent, (found.change, found.low, found.high))
    words = "drifted over the study" if found.drifts else "is not shown to have drifted over the study"
    return f"{head} {words} ({change}, 95 % interval {low} to {high})."


# --- other generators -------------------------------------------------------------------------------------

Check = tuple[CellSummary, CellSummary, str, Comparison]


def cross_checks(reading: Reading) -> tuple[Check, ...]:
    """Return each cell, the same under another generator, a metric that both have, and their comparison."""
    checks = reading.added.get(TrialRole.CROSS_CHECK, ())
    pairs = [(own, other) for other in checks for own in reading.cells if _checks(own, other)]
    triples = [
        (own, other, metric) for own, other in pairs for metric in _CHECKED if _both(own, other, metric)
    ]
    family = {k: log_ratios(own, other, metric) for k, (own, other, metric) in enumerate(triples)}
    found = compare_family(family, Terms(margin=reading.plan.design.margin))
    return tuple((*triple, found[k]) for k, triple in enumerate(triples))


def _checks(own: CellSummary, other: CellSummary) -> bool:
    same = own.cell.subject == other.cell.subject and own.cell.workload == other.cell.workload
    return same and own.cell.engine.name != other.cell.engine.name


def _both(own: CellSummary, other: CellSummary, metric: str) -> bool:
    return isinstance(own.metrics[metric], Estimate) and isinstance(other.metrics[metric], Estimate)


def cross_check(reading: Reading) -> Section | None:
    """Return what other generators say of the same cells, beside Prony's own figures; null without any."""
    if not reading.added.get(TrialRole.CROSS_CHECK):
        return None
    notes = Footnotes()
    found = cross_checks(reading)
    columns = (
        *(Column(title, text=True) for title in ("subject", "under", "figure")),
        *(
            Column("prony"),
            Column("generator", text=True),
            Column("its figure"),
            Column("difference", text=True),
        ),
    )
    rows = tuple(_row(check, notes) for check in found)
    lead = Paragraph(
        "The same cells under other generators, in the same blocks. Generators time a request differently: "
        "throughput should agree, latencies need not.",
        Tone.QUIET,
    )
    if not rows:
        return Section("Other generators", (lead, Paragraph("No cell has figures of both.", Tone.WARNING)))
    return Section("Other generators", (lead, Table(columns, rows), notes.notes()))


def _row(check: Check, notes: Footnotes) -> tuple[Cell, ...]:
    own, other, metric, comparison = check
    means = [value.mean for cell in (own, other) if isinstance(value := cell.metrics[metric], Estimate)]
    scale = metric_scale(metric, means)
    name = _CHECKED[metric] + ("" if metric == "ok_per_s" else f", {scale.unit}")
    return (
        *(Cell(own.name), Cell(load_words(own.cell.workload)), Cell(name)),
        *(_figure(own, metric, means), Cell(other.cell.engine.name), _figure(other, metric, means)),
        _difference(comparison, notes),
    )


def _figure(cell: CellSummary, metric: str, means: Sequence[float]) -> Cell:
    value = cell.metrics[metric]
    if isinstance(value, Missing):
        return Cell("—", Tone.QUIET)
    return Cell(format_in(value.mean, metric_scale(metric, means), value.half_width))


def _difference(found: Comparison, notes: Footnotes) -> Cell:
    if found.effect is None:
        return Cell(f"—{notes.mark('no block has both')}", Tone.QUIET)
    text = signed_percent(found.effect)
    if found.low is not None and found.high is not None:
        text += f" ({signed_percent(found.low)} to {signed_percent(found.high)})"
    words = {
        Verdict.EQUIVALENT: "agree",
        Verdict.HIGHER: "differ",
        Verdict.LOWER: "differ",
        Verdict.TOO_FEW: f"n = {found.blocks}: no verdict",
    }.get(found.verdict, found.verdict.value)
    return Cell(f"{text}, {words}", Tone.WARNING if words == "differ" else Tone.PLAIN)
