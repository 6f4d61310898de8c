"""Charts as files: SVG and PNG, each naming its subjects, for articles and slides."""

from collections.abc import Iterable, Iterator

from prony.model.shapes import Json
from prony.page.chart import Chapter, Chart
from prony.page.charts import chapters
from prony.page.figure import png, svg
from prony.page.scene import scene_of
from prony.page.several import chapters_of_sessions, chapters_of_trend
from prony.reading.across import Sessions
from prony.reading.study import Reading
from prony.reading.traces import Traces
from prony.reading.trend import Trend


def pictures_of_study(reading: Reading, found: Traces) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of each file, two for each chart of a study."""
    return _files(chapters(scene_of(reading, found, legend=True)))


def pictures_of_sessions(found: Sessions) -> Iterator[tuple[str, bytes]]:
    """Yield likewise the charts of the sessions of one plan."""
    return _files(chapters_of_sessions(found, legend=True))


def pictures_of_trend(trend: Trend) -> Iterator[tuple[str, bytes]]:
    """Yield likewise the charts of archives of different plans."""
    return _files(chapters_of_trend(trend, legend=True))


def _files(found: Iterable[Chapter]) -> Iterator[tuple[str, bytes]]:
    for chapter in found:
        for chart in chapter.charts:
            own = _titled(chart)
            yield f"{chart.key}.svg", svg(own).encode()
            yield f"{chart.key}.png", png(own)


def _titled(chart: Chart) -> Json:
    return {**chart.spec, "title": {"text": chart.title, "anchor": "start", "fontSize": 13}}
