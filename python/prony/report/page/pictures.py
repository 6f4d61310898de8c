"""Charts as files: SVG and PNG, each naming its subjects, for articles and slides."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from textwrap import wrap

from prony.reading.across import Sessions
from prony.reading.study import StudyResults
from prony.reading.traces import Traces
from prony.reading.trend import Trend
from prony.report.forms import day
from prony.report.page.chart import QUIET, Chapter, Chart
from prony.report.page.charts import chapters
from prony.report.page.figure import png, svg
from prony.report.page.scene import scene_of
from prony.report.page.several import chapters_of_sessions, chapters_of_trend

# Of a title's line, so that a picture is as wide as its plot.
_COLUMNS = 58


def pictures_of_study(reading: StudyResults, found: Traces) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of each file, two for each chart of a study."""
    return _files(chapters_alone(reading, found))


def chapters_alone(reading: StudyResults, found: Traces) -> Iterator[Chapter]:
    """Yield the charts of a study, each to be read by itself: below its title are its load and its source."""
    plan = reading.plan
    days = dict.fromkeys(day(run.started_unix_ns) for run in reading.runs)
    profile = [f"profile {plan.profile}"] if plan.profile else []
    source = [plan.name, *profile, f"n = {reading.blocks}", *days]
    for chapter in chapters(scene_of(reading, found, legend=True)):
        lines = [str(chapter.heading), ", ".join(source)]
        yield replace(chapter, charts=tuple(_titled(chart, lines) for chart in chapter.charts))


def pictures_of_sessions(found: Sessions) -> Iterator[tuple[str, bytes]]:
    """Yield likewise the charts of the sessions of one plan."""
    return _files(chapters_of_sessions(found, legend=True))


def pictures_of_trend(trend: Trend) -> Iterator[tuple[str, bytes]]:
    """Yield likewise the charts of archives of different plans."""
    return _files(chapters_of_trend(trend, legend=True))


def _files(found: Iterable[Chapter]) -> Iterator[tuple[str, bytes]]:
    for chapter in found:
        for chart in chapter.charts:
            own = chart if "title" in chart.spec else _titled(chart, [str(chapter.heading)])
            yield f"{chart.key}.svg", svg(own.spec).encode()
            yield f"{chart.key}.png", png(own.spec)


def _titled(chart: Chart, lines: Sequence[str]) -> Chart:
    """Return a chart that says what it shows, and in ``lines`` below that of what."""
    folded = [part for line in lines for part in wrap(line, _COLUMNS)]
    title = {"text": wrap(chart.title, _COLUMNS), "subtitle": folded, "subtitleColor": QUIET}
    looks = {"anchor": "start", "fontSize": 13, "subtitleFontSize": 11}
    return replace(chart, spec={**chart.spec, "title": {**title, **looks}})
