"""The ratios as a picture: what Prony costs, as a multiple of each other generator, with intervals."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from peers.cells import CELLS, Measure
from peers.own import PRONY
from peers.results import Result, interval
from prony.report.page.figure import svg

# A first request is no cost, and one of a second would squeeze the others.
_NAMES = [cell.name for cell in CELLS if cell.measure is not Measure.FIRST]
_STEP, _WIDTH = 26, 560


def drawn(results: Sequence[Result]) -> str:
    """Return the picture, as SVG."""
    points = [point for result in results if result.cell in _NAMES for point in points_of(result)]
    cells = [name for name in _NAMES if any(point["cell"] == name for point in points)]
    own = {"type": "quantitative", "scale": {"type": "log", "nice": False}}
    rows = {"field": "cell", "type": "nominal", "sort": cells, "title": None}
    marks = {"field": "generator", "type": "nominal", "title": "Prony, over"}
    shared = {"y": rows, "color": marks}
    along = {**own, "field": "ratio", "title": "ratio (below 1: Prony costs less), 95 % interval"}
    even = {"mark": {"type": "rule", "strokeDash": [4, 3]}, "encoding": {"x": {**own, "datum": 1}}}
    ranges = {"x": {**own, "field": "low"}, "x2": {"field": "high"}, **shared}
    layers = [
        even,
        {"mark": {"type": "rule"}, "encoding": ranges},
        {
            "mark": {"type": "point", "filled": True, "size": 60},
            "encoding": {"x": along, **shared, "shape": marks},
        },
    ]
    return svg(
        {
            "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
            "background": "white",
            "width": _WIDTH,
            "height": {"step": _STEP},
            "data": {"values": points},
            "layer": layers,
        }
    )


def points_of(result: Result) -> Iterator[Mapping[str, str | float]]:
    """Yield the ratios of a cell to each other generator."""
    for program in result.runs:
        ratios = result.ratios(program)
        if program == PRONY or not ratios:
            continue
        centre = median(ratios)
        low, high = interval(ratios) or (centre, centre)
        yield {"cell": result.cell, "generator": program, "ratio": centre, "low": low, "high": high}
