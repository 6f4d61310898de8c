"""Charts as files: SVG and PNG, each naming its subjects, for articles and slides."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from textwrap import wrap

from prony.core.units import seconds
from prony.model.workload import ClosedLoop, CountStop, DurationStop, OpenLoop, Workload
from prony.reading.across import Across
from prony.reading.study import StudyResults
from prony.reading.traces import Traces
from prony.report.forms import day
from prony.report.page.chart import QUIET, Chapter, Chart
from prony.report.page.charts import chapters
from prony.report.page.figure import png, svg
from prony.report.page.scene import scene_of
from prony.report.page.study import chapters_of_several

# Of a title's line, so that a picture is as wide as its plot.
_COLUMNS = 58
_MOST = 4


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
        heading = str(chapter.heading)
        load = [] if " loop, " in heading else [loads_words(cell.cell.workload for cell in reading.cells)]
        lines = [heading, *load, ", ".join(source)]
        yield replace(chapter, charts=tuple(_titled(chart, lines) for chart in chapter.charts))


def loads_words(loads: Iterable[Workload]) -> str:
    """Return loads in a line.

    >>> from prony.model.workload import DurationStop
    >>> loads_words(Workload(ClosedLoop(n), DurationStop(10**9)) for n in (100, 10, 1000))
    'closed loop, 10, 100 and 1,000 connections, 1 s'
    """
    found = list(loads)
    connections = {one.loop.connections for one in found if isinstance(one.loop, ClosedLoop)}
    rates = {one.loop.rate_per_s for one in found if isinstance(one.loop, OpenLoop)}
    windows = {seconds(one.stop.duration_ns) for one in found if isinstance(one.stop, DurationStop)}
    counts = {one.stop.requests for one in found if isinstance(one.stop, CountStop)}
    plural = "" if connections == {1} else "s"
    said = [
        *([f"closed loop, {_numbers(connections)} connection{plural}"] if connections else []),
        *([f"open loop, {_numbers(rates)}/s"] if rates else []),
        *([f"{_numbers(windows)} s"] if windows else []),
        *([f"{_numbers(counts)} requests"] if counts else []),
    ]
    return ", ".join(said)


def _numbers(found: Collection[float]) -> str:
    words = [f"{one:,.10g}" for one in sorted(found)]
    if len(words) > _MOST:
        return f"{words[0]} to {words[-1]}"
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def pictures_of_several(found: Across) -> Iterator[tuple[str, bytes]]:
    """Yield likewise the charts of several archives."""
    return _files(chapters_of_several(found, legend=True))


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
