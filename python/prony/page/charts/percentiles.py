"""Latency by percentile, on the axis of HdrHistogram's plots: each step takes in one more nine.

*Source*: G. Tene, HdrHistogram, "plotFiles.html": requests / (requests that took longer), by ratio.
"""

from collections.abc import Iterator

from prony.model import Json
from prony.page.chart import Chart, axis, by_ratio, coloured, quantity, shaped, slug, spec, tooltip
from prony.page.scene import Scene
from prony.reading.groups import Group
from prony.report.scales import metric_scale
from prony.units import Scale

__all__ = ["percentiles"]

# One in so many takes longer; each has a label.
_TICKS = (1, 2, 10, 100, 1000, 10_000, 100_000)
_LABELS = "{'1':'p0','2':'p50','10':'p90','100':'p99','1000':'p99.9','10000':'p99.99','100000':'p99.999'}"


def percentiles(scene: Scene, group: Group) -> Chart | None:
    """Return the percentiles of a group's latencies: response times, of a closed loop service times."""
    kind = "response" if any(_kinds(scene, group, "response")) else "service"
    values = [value for _, _, points in _kinds(scene, group, kind) for _, value in points]
    if not values:
        return None
    scale = metric_scale("response_ok_p50", values)
    rows = list(_rows(scene, group, kind, scale))
    about = (
        f"{kind.capitalize()} time of valid replies (solid) and of all requests (dashed, where it differs), "
        "the mean over the trials. A line ends where fewer than ten requests took longer, or where "
        "requests failed."
    )
    load = scene.load(group)
    return Chart(
        slug("percentiles", load or "all"),
        "Latency by percentile",
        about,
        spec(rows, _layers(scene, rows, scale)),
    )


def _kinds(scene: Scene, group: Group, kind: str) -> Iterator[tuple[str, str, tuple[tuple[str, float], ...]]]:
    for cell in group.cells:
        for curve in scene.traces.curves.get(cell.cell.id, ()):
            if curve.kind == kind:
                yield cell.name, curve.population, curve.points


def _rows(scene: Scene, group: Group, kind: str, scale: Scale) -> Iterator[Json]:
    valid = {name: points for name, population, points in _kinds(scene, group, kind) if population == "ok"}
    for name, population, points in _kinds(scene, group, kind):
        if population == "all" and points == valid.get(name):
            continue
        for percentile, value in points:
            scaled = value / scale.size
            yield {
                "name": name,
                "of": population,
                "line": f"{name} {population}",
                "one_in": 100 / (100 - float(percentile)),
                "value": scaled,
                "percentile": f"p{percentile}",
                "said": f"{scaled:,.4g} {scale.unit}",
            }


def _ends(rows: list[Json]) -> tuple[float, float]:
    values = [row["value"] for row in rows]
    return min(values), max(values)


def _layers(scene: Scene, rows: list[Json], scale: Scale) -> list[Json]:
    look = scene.look
    ticks = axis(values=list(_TICKS), labelExpr=f"({_LABELS})[datum.value]", grid=False)
    x = quantity("one_in", None, axis=ticks) | {"scale": {"type": "log", "nice": False, "padding": 6}}
    y = quantity("value", scale.unit, axis=by_ratio(*_ends(rows))) | {
        "scale": {"type": "log", "nice": False, "padding": 6}
    }
    dash = {
        **{"field": "of", "type": "nominal", "legend": None},
        "scale": {"domain": ["ok", "all"], "range": [[1, 0], [4, 3]]},
    }
    said = tooltip(name="subject", of="requests", percentile="percentile", said="latency")
    return [
        {
            "params": [
                {
                    "name": "zoom",
                    "select": {"type": "interval", "zoom": "wheel![event.shiftKey]"},
                    "bind": "scales",
                }
            ],
            "mark": {"type": "line", "strokeWidth": 1.6, "clip": True},
            "encoding": {
                **{"x": x, "y": y, "color": coloured(look) | {"legend": None}, "strokeDash": dash},
                "detail": {"field": "line"},
            },
        },
        {
            "transform": [{"filter": "indexof(['p50','p90','p99','p99.9','p99.99'], datum.percentile) >= 0"}],
            "mark": {"type": "point", "filled": True, "size": 40, "opacity": 1},
            "encoding": {"x": x, "y": y, "color": coloured(look), "shape": shaped(look), "tooltip": said},
        },
        {
            "mark": {"type": "point", "opacity": 0, "size": 90},
            "encoding": {"x": x, "y": y, "tooltip": said},
        },
    ]
