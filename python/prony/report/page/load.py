"""The page of one load: its figures first, then the charts, then how far to trust it."""

from collections.abc import Iterator, Mapping

from prony.core.metrics import PERCENTILES
from prony.model.workload import Workload
from prony.reading.load import LoadReading
from prony.reading.traces import PercentileCurve, curves_of, seconds_of
from prony.report.load import load_document
from prony.report.page.chart import EVERY, Chapter, Chart, Style, palette
from prony.report.page.charts.percentiles import (
    Course,
    Line,
    heat_map,
    percentile_chart,
    replies,
    slowest,
    window_end_s,
)
from prony.report.page.setups import page_of_document
from prony.report.text import pointer

_NAME = "this load"
# Rates, the account and the latencies.
_FIRST = 3


def page_of_load(reading: LoadReading) -> str:
    """Return the page of a load."""
    look = Style(palette((_NAME,)))
    charts = tuple(chart for chart in _charts(reading, look) if chart is not None)
    pictures = Chapter("pictures", "Latencies and seconds", charts)
    return page_of_document(load_document(reading), _FIRST, look, pictures, first="the figures")


def _charts(reading: LoadReading, look: Style) -> Iterator[Chart | None]:
    recording = reading.recording
    workload = recording.spec.workload if recording.spec else None
    curves = [Line(_NAME, one, _places(one)) for one in curves_of(recording)]
    yield percentile_chart(look, curves, EVERY, "of this load")
    end_s = window_end_s(workload) if isinstance(workload, Workload) else None
    seconds = seconds_of(recording, with_bins=True)
    course = Course(
        look, ((_NAME, "load", seconds),), "Each second by what ended in it", EVERY, end_s, "/series"
    )
    yield from (draw(course) for draw in (replies, slowest, heat_map))


def _places(curve: PercentileCurve) -> Mapping[str, str]:
    """Return where a load's JSON has the percentiles that it has."""
    at = pointer("latency", curve.population, f"{curve.kind}_ns", "percentiles")
    return {name: at + pointer(name) for name, _ in curve.points if name in PERCENTILES.values()}
