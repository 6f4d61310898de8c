"""The page of one load: its figures first, then the charts, then how far to trust it."""

from collections.abc import Iterator, Mapping

from prony.metrics import PERCENTILES
from prony.model.workload import Workload
from prony.page.chart import EVERY, Chapter, Chart, Style, palette
from prony.page.charts.percentiles import Line, percentile_chart
from prony.page.charts.seconds import Course, heat_map, replies, slowest, window_end_s
from prony.page.figure import chapter_html, key_html
from prony.page.markup import section_html
from prony.page.setups import page_with_terms
from prony.reading.load import LoadReading
from prony.reading.traces import PercentileCurve, curves_of, seconds_of
from prony.report.load import load_document
from prony.report.text import pointer

_NAME = "this load"
# Rates, the account and the latencies.
_FIRST = 3


def page_of_load(reading: LoadReading) -> str:
    """Return the page of a load."""
    look = Style(palette((_NAME,)))
    charts = tuple(chart for chart in _charts(reading, look) if chart is not None)
    document = load_document(reading)
    shown, others = document.sections[:_FIRST], document.sections[_FIRST:]
    content = (
        f'<section id="answer" class="answer">{"".join(map(section_html, shown))}</section>',
        key_html(look),
        chapter_html(Chapter("pictures", "Latencies and seconds", charts)) if charts else "",
        *(f"<section>{section_html(section)}</section>" for section in others),
    )
    return page_with_terms(str(document.title), content, charts, first="the figures")


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
