"""Latency by percentile, on the axis of HdrHistogram's plots: each step takes in one more nine.

*Source*: G. Tene, HdrHistogram, "plotFiles.html": requests / (requests that took longer), by ratio.
"""

from collections.abc import Iterator, Sequence

from prony.model import Json
from prony.page.chart import Chart, Style, axis, by_ratio, coloured, quantity, shaped, slug, spec, tooltip
from prony.page.scene import Scene
from prony.reading.groups import Group
from prony.reading.traces import PercentileCurve
from prony.report.scales import metric_scale
from prony.units import Scale

__all__ = ["percentile_chart", "percentiles"]

# One in so many takes longer; each has a label.
_TICKS = (1, 2, 10, 100, 1000, 10_000, 100_000)
_LABELS = "{'1':'p0','2':'p50','10':'p90','100':'p99','1000':'p99.9','10000':'p99.99','100000':'p99.999'}"


def percentiles(scene: Scene, group: Group) -> Chart | None:
    """Return the percentiles of a group's latencies, as `percentile_chart` does."""
    curves = [
        (cell.name, curve) for cell in group.cells for curve in scene.traces.curves.get(cell.cell.id, ())
    ]
    return percentile_chart(scene.look, curves, scene.load(group), "the mean over the trials")


def percentile_chart(
    look: Style, curves: Sequence[tuple[str, PercentileCurve]], load: str, over: str
) -> Chart | None:
    """Return latencies by percentile, each curve with its subject: response times, of a closed loop service
    times. ``over``: of what the values are. Null without curves.
    """
    kind = "response" if any(one.kind == "response" for _, one in curves) else "service"
    own = [(name, one) for name, one in curves if one.kind == kind]
    if not own:
        return None
    scale = metric_scale("response_ok_p50", [value for _, one in own for _, value in one.points])
    rows = list(_rows(own, scale))
    about = (
        f"{kind.capitalize()} time of valid replies (solid) and of all requests (dashed, where it differs), "
        f"{over}. A line ends where fewer than ten requests took longer, or where requests failed."
    )
    return Chart(
        slug("percentiles", load or "all"),
        "Latency by percentile",
        about,
        spec(rows, _layers(look, rows, scale)),
    )


def _rows(curves: Sequence[tuple[str, PercentileCurve]], scale: Scale) -> Iterator[Json]:
    valid = {name: one.points for name, one in curves if one.population == "ok"}
    for name, one in curves:
        if one.population == "all" and one.points == valid.get(name):
            continue
        for percentile, value in one.points:
            scaled = value / scale.size
            yield {
                "name": name,
                "of": one.population,
                "line": f"{name} {one.population}",
                "one_in": 100 / (100 - float(percentile)),
                "value": scaled,
                "percentile": f"p{percentile}",
                "said": f"{scaled:,.4g} {scale.unit}",
            }


def _ends(rows: list[Json]) -> tuple[float, float]:
    values = [row["value"] for row in rows]
    return min(values), max(values)


def _layers(look: Style, rows: list[Json], scale: Scale) -> list[Json]:
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
