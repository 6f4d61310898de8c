"""Published figures beside those measured here."""

from collections.abc import Iterator

from prony.analysis.summary import Estimate
from prony.metrics import METRICS
from prony.model import Json
from prony.page.chart import WIDTH, Chart, axis, by_ratio, coloured, quantity, shaped, slug, spec, tooltip
from prony.page.scene import Scene, titled
from prony.reading.originals import Beside
from prony.report.forms import in_metric
from prony.report.scales import metric_scale
from prony.report.text import pointer
from prony.units import Scale

__all__ = ["published"]

_ROW = 42


def published(scene: Scene) -> Iterator[Chart]:
    """Yield for each metric its published figures beside the new ones, where a study has one load."""
    found = list(enumerate(scene.reading.originals))
    for metric in dict.fromkeys(one.original.metric for _, one in found):
        own = [(k, one) for k, one in found if one.original.metric == metric and not one.original.role]
        values = [one.measured.mean for _, one in own if isinstance(one.measured, Estimate)]
        scale = metric_scale(metric, [*values, *(one.original.value for _, one in own)])
        rows = [_row(k, one, scale) for k, one in own]
        cells = {one.cell.cell.id for _, one in own}
        if rows and values and len(cells) == len({row["name"] for row in rows}):
            yield Chart(
                slug("published", metric),
                titled(metric),
                f"Hollow: {METRICS[metric].title} as published; filled: measured here. "
                "Another machine, another year: the order is comparable, the values are not.",
                spec(rows, _layers(scene, rows, scale.unit), height={"step": _ROW}),
            )


def _row(k: int, one: Beside, scale: Scale) -> Json:
    at = pointer("originals", k)
    row: Json = {
        **{"name": one.cell.name, "published": one.original.value / scale.size, "scale": scale.size},
        **{
            "said_published": in_metric(one.original.metric)(one.original.value),
            "at": at + pointer("published"),
        },
    }
    if isinstance(one.measured, Estimate):
        said = in_metric(one.original.metric)(one.measured.mean)
        row |= {"measured": one.measured.mean / scale.size, "said_measured": said}
    return row | {"said": f"{row.get('said_measured', '—')}, was {row['said_published']}"}


def _layers(scene: Scene, rows: list[Json], unit: str) -> list[Json]:
    look, names = scene.look, [row["name"] for row in rows]
    lower = {"field": "name", "type": "nominal", "sort": names, "axis": None, "bandPosition": 0.62}
    upper = {**lower, "bandPosition": 0.2}
    values = [row[name] for row in rows for name in ("published", "measured") if name in row]
    wide = min(values) > 0 and max(values) > 20 * min(values)
    scale: Json = {"type": "log", "nice": False} if wide else {"zero": False, "nice": True}
    quiet = coloured(look) | {"legend": None}
    look_shape = shaped(look) | {"legend": None}
    said = tooltip(name="subject", said_measured="measured here", said_published="published")

    def x(name: str) -> Json:
        return quantity(
            name, unit or None, axis=by_ratio(min(values), max(values)) if wide else axis(format="~r")
        ) | {"scale": scale}

    return [
        {
            "mark": {"type": "text", "align": "left", "baseline": "middle", "limit": 215},
            "encoding": {"x": {"value": 0}, "y": upper, "text": {"field": "name"}},
        },
        {
            "mark": {"type": "text", "align": "right", "baseline": "middle", "limit": 130},
            "encoding": {"x": {"value": WIDTH}, "y": upper, "text": {"field": "said"}},
        },
        {
            "transform": [{"filter": "isValid(datum.measured)"}],
            "mark": {"type": "rule", "strokeDash": [2, 2], "opacity": 0.6},
            "encoding": {"x": x("published"), "x2": {"field": "measured"}, "y": lower, "color": quiet},
        },
        {
            "mark": {"type": "point", "filled": False, "size": 60},
            "encoding": {
                "x": x("published"),
                "y": lower,
                "color": quiet,
                "shape": look_shape,
                "tooltip": said,
            },
        },
        {
            "transform": [{"filter": "isValid(datum.measured)"}],
            "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
            "encoding": {
                "x": x("measured"),
                "y": lower,
                "color": quiet,
                "shape": look_shape,
                "tooltip": said,
            },
        },
    ]
