"""The charts of a study as files: SVG and PNG, each naming its subjects, for articles and slides."""

from collections.abc import Iterator

from prony.model import Json
from prony.page.chart import Chart
from prony.page.charts import chapters
from prony.page.render import png, svg
from prony.page.scene import scene_of
from prony.reading.study import Reading
from prony.reading.traces import Traces

__all__ = ["picture_files"]


def picture_files(reading: Reading, found: Traces) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of each file, two for each chart."""
    for chapter in chapters(scene_of(reading, found, legend=True)):
        for chart in chapter.charts:
            own = _titled(chart)
            yield f"{chart.key}.svg", svg(own).encode()
            yield f"{chart.key}.png", png(own)


def _titled(chart: Chart) -> Json:
    return {**chart.spec, "title": {"text": chart.title, "anchor": "start", "fontSize": 13}}
