"""Remarks on how the generator kept its times: the one pacing of a study, and what it adds to a latency."""

from collections.abc import Iterator

from prony.analysis.summary import CellSummary, Estimate
from prony.model.workload import OpenLoop, Pacing
from prony.reading.study import Reading
from prony.report.forms import day, duration
from prony.report.places import cell_at
from prony.report.text import Figure, Name, Quote, Text, joined, pointer, text
from prony.units import SECOND_NS


def fitness_notes(reading: Reading) -> Iterator[Text]:
    """Yield whether the load engine was fit to measure with on the machine, if it was calibrated there."""
    for k, run in enumerate(reading.runs):
        found = run.facts.generator
        if found is not None:
            at = pointer("runs", k, "facts", "generator")
            made = Figure(found.made_unix_s, _day, at + pointer("made_unix_s"))
            reasons = joined(Quote(why, at + pointer("reasons", n)) for n, why in enumerate(found.reasons))
            why = text(" ({})", reasons) if found.reasons else ""
            yield text("Load engine, calibrated on {}: {}{}.", made, found.level.value, why)
            return


def _day(unix_s: float) -> str:
    return day(unix_s * SECOND_NS)


def pacing_notes(reading: Reading) -> Iterator[Text]:
    """Yield the pacing of the study's open loops, and what economical pacing adds to a response time."""
    cells = [cell for cell in reading.cells if isinstance(cell.cell.workload.loop, OpenLoop)]
    found = {pacing for cell in cells for pacing in _pacings(cell)}
    if found == {Pacing.PRECISE}:
        yield text("Precise pacing at every rate: the generator slept, then spun until a request was due.")
    elif found == {Pacing.ECONOMICAL}:
        yield text("Economical pacing at every rate: the generator only slept{}.", _added(reading))
    elif found:
        yield text(
            "The generator paced some rates precisely and others economically: their response times cannot "
            "be compared."
        )


def _pacings(cell: CellSummary) -> set[Pacing]:
    engines = (trial.engine for trial in cell.counted)
    return {engine.pacing for engine in engines if engine is not None and engine.pacing is not None}


def _added(reading: Reading) -> Text:
    """Return how late it sent in the cell where it was latest at p50, which response times include."""
    lags = [(value.mean, cell) for cell in reading.cells if isinstance(value := _lag(cell, 50), Estimate)]
    if not lags:
        return text("")
    _, worst = max(lags, key=lambda found: found[0])
    parts = [
        text(
            "{} at p{}", Figure(value.mean, duration, _at(reading, worst, percentile)), Name(f"{percentile}")
        )
        for percentile in (50, 99)
        if isinstance(value := _lag(worst, percentile), Estimate)
    ]
    late = parts[0] if len(parts) == 1 else text("{}, {}", *parts)
    return text(", and sent up to {} late (the mean over trials); response times include that", late)


def _lag(cell: CellSummary, percentile: int) -> object:
    return cell.metrics[f"send_lag_p{percentile}"]


def _at(reading: Reading, cell: CellSummary, percentile: int) -> str:
    return cell_at(reading, cell) + pointer("metrics", f"send_lag_p{percentile}", "mean")
