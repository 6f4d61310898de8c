"""Latency by percentile, on the axis of HdrHistogram's plots: each step takes in one more nine.

*Source*: G. Tene, HdrHistogram, "plotFiles.html": requests / (requests that took longer), by ratio.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from prony.core.metrics import PERCENTILES
from prony.core.units import Scale
from prony.figures.summary import CellSummary
from prony.model.json_codec import Json
from prony.reading.groups import Group
from prony.reading.traces import PercentileCurve
from prony.report.forms import metric_scale
from prony.report.page.chart import (
    RATIO,
    ZOOM,
    Chart,
    Style,
    axis,
    by_ratio,
    coloured,
    dot,
    layer,
    quantity,
    shaped,
    slug,
    spec,
    tooltip,
)
from prony.report.page.scene import Scene
from prony.report.text import pointer

# One in so many takes longer; each has a label.
_TICKS = (1, 2, 10, 100, 1000, 10_000, 100_000)
_LABELS = "{'1':'p0','2':'p50','10':'p90','100':'p99','1000':'p99.9','10000':'p99.99','100000':'p99.999'}"


def percentiles(scene: Scene, group: Group) -> Chart | None:
    """Return the percentiles of a group's latencies, as `percentile_chart` does."""
    curves = [
        Line(cell.name, curve, _places(scene, cell, curve))
        for cell in group.cells
        for curve in scene.traces.curves.get(cell.cell.id, ())
    ]
    return percentile_chart(scene.look, curves, scene.key(group), "the mean over the trials")


def _places(scene: Scene, cell: CellSummary, curve: PercentileCurve) -> Mapping[str, str]:
    """Return where the JSON has those percentiles that are metrics of a cell."""
    metrics = {name: f"{curve.kind}_{curve.population}_{suffix}" for suffix, name in PERCENTILES.items()}
    known = {name: metric for name, metric in metrics.items() if cell.known(metric)}
    at = scene.places[cell.cell.id]
    return {name: at + pointer("metrics", metric) for name, metric in known.items()}


@dataclass(frozen=True, slots=True)
class Line:
    """A curve of a subject. ``places``: where the JSON has its percentiles, of those that it has."""

    name: str
    curve: PercentileCurve
    places: Mapping[str, str]


def percentile_chart(look: Style, curves: Sequence[Line], key: str, over: str) -> Chart | None:
    """Return latencies by percentile: response times, of a closed loop service times. ``key``: see
    `Scene.key`; ``over``: of what the values are. Null without curves.
    """
    kind = "response" if any(one.curve.kind == "response" for one in curves) else "service"
    own = [one for one in curves if one.curve.kind == kind]
    if not own:
        return None
    scale = metric_scale("response_ok_p50", [value for one in own for _, value in one.curve.points])
    rows = list(_rows(own, scale))
    about = (
        f"{kind.capitalize()} time of valid replies (solid) and of all requests (dashed, where it differs), "
        f"{over}. A line ends where fewer than ten requests took longer, or where requests failed."
    )
    return Chart(
        slug("percentiles", key),
        "Latency by percentile",
        about,
        spec(rows, _layers(look, rows, scale)),
    )


def _rows(lines: Sequence[Line], scale: Scale) -> Iterator[Json]:
    valid = {one.name: one.curve.points for one in lines if one.curve.population == "ok"}
    for line in lines:
        one = line.curve
        if one.population == "all" and one.points == valid.get(line.name):
            continue
        for percentile, value in one.points:
            scaled = value / scale.size
            at = line.places.get(percentile)
            yield {
                "name": line.name,
                "of": one.population,
                "line": f"{line.name} {one.population}",
                "one_in": 100 / (100 - float(percentile)),
                "value": scaled,
                "percentile": f"p{percentile}",
                "said": f"{scaled:,.4g} {scale.unit}",
            } | ({"at": at, "scale": scale.size} if at else {})


def _layers(look: Style, rows: list[Json], scale: Scale) -> list[Json]:
    ticks = axis(
        values=list(_TICKS), labelExpr=f"({_LABELS})[datum.value]", grid=False, labelOverlap="greedy"
    )
    values, padded = [row["value"] for row in rows], {"scale": RATIO | {"padding": 6}}
    x = quantity("one_in", None, axis=ticks) | padded
    place = {"x": x, "y": quantity("value", scale.unit, axis=by_ratio(min(values), max(values))) | padded}
    colour = {"color": coloured(look)}
    said = {"tooltip": tooltip(name="subject", of="requests", percentile="percentile", said="latency")}
    dashes = {"domain": ["ok", "all"], "range": [[1, 0], [4, 3]]}
    dash = {"field": "of", "type": "nominal", "legend": None, "scale": dashes}
    of_each = {"strokeDash": dash, "detail": {"field": "line"}}
    named = "indexof(['p50','p90','p99','p99.9','p99.99'], datum.percentile) >= 0"
    return [
        {"params": [ZOOM], **layer("line", place | colour | of_each, strokeWidth=1.6, clip=True)},
        dot(place | colour | said | {"shape": shaped(look)}, 40, named),
        layer("point", place | said, opacity=0, size=90),
    ]
