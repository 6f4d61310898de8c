"""How the others compare with the best, as ratios with their intervals."""

from prony.analysis.compare import Comparison
from prony.metrics import METRICS, Better
from prony.model import Json
from prony.page.chart import WIDTH, Chart, axis, coloured, quantity, shaped, slug, spec, tooltip
from prony.page.scene import Scene
from prony.reading.groups import Group
from prony.report.forms import signed_percent
from prony.report.text import pointer

__all__ = ["ratios"]

_ROW = 42


def ratios(scene: Scene, group: Group) -> Chart | None:
    """Return the forest plot of a group's answer; null where nobody is compared."""
    found = group.answer
    if found.metric is None or found.leader is None:
        return None
    at = pointer("groups", scene.reading.place(group), "answer", "comparisons")
    rows = [_row(name, one, at + pointer(name)) for name, one in found.comparisons.items()]
    known = [row for row in rows if "low" in row]
    if not known:
        return None
    metric, bar = METRICS[found.metric], max(scene.reading.plan.design.margin, group.noise_floor)
    better = "higher is better" if metric.better is Better.HIGHER else "lower is better"
    return Chart(
        slug("ratios", scene.load(group) or "all"),
        f"To {found.leader}",
        f"Ratio in {metric.title} ({better}), with intervals that hold for all pairs together; within "
        "the grey band a difference is of no interest.",
        spec(
            known,
            _layers(scene, [row["name"] for row in known], bar, known),
            height={"step": _ROW},
        ),
    )


def _row(name: str, one: Comparison, at: str) -> Json:
    row: Json = {"name": name, "value": one.effect, "at": at, "verdict": one.verdict.value}
    if one.effect is None or one.low is None or one.high is None:
        return row
    said = f"{signed_percent(one.effect)} ({signed_percent(one.low)} to {signed_percent(one.high)})"
    ratio = {"ratio": 1 + one.effect, "ratio_low": 1 + one.low, "ratio_high": 1 + one.high}
    return row | {"low": one.low, "high": one.high, "said": said} | ratio


def _layers(scene: Scene, names: list[str], bar: float, rows: list[Json]) -> list[Json]:
    look = scene.look
    lower = {"field": "name", "type": "nominal", "sort": names, "axis": None, "bandPosition": 0.62}
    upper = {**lower, "bandPosition": 0.2}
    wide = {"type": "log", "nice": False, "domain": _domain(rows)}
    ticks = axis(format="~g", grid=False)
    said = tooltip(name="subject", said="difference", verdict="verdict")
    quiet = coloured(look) | {"legend": None}

    def x(name: str) -> Json:
        return quantity(name, "ratio", axis=ticks) | {"scale": wide}

    return [
        {
            "data": {"values": [{"from": 1 - bar, "to": 1 + bar}]},
            "mark": {"type": "rect", "color": "#57606a", "opacity": 0.16},
            "encoding": {"x": x("from"), "x2": {"field": "to"}},
        },
        {
            "data": {"values": [{"one": 1}]},
            "mark": {"type": "rule", "color": "#57606a", "strokeWidth": 1},
            "encoding": {"x": x("one")},
        },
        {
            "mark": {"type": "text", "align": "left", "baseline": "middle", "limit": 155},
            "encoding": {"x": {"value": 0}, "y": upper, "text": {"field": "name"}},
        },
        {
            "mark": {"type": "text", "align": "right", "baseline": "middle", "limit": 185, "fontSize": 10},
            "encoding": {"x": {"value": WIDTH}, "y": upper, "text": {"field": "said"}},
        },
        {
            "mark": {"type": "rule", "strokeWidth": 2, "clip": True},
            "encoding": {
                **{"x": x("ratio_low"), "x2": {"field": "ratio_high"}, "y": lower, "color": quiet},
                "tooltip": said,
            },
        },
        {
            "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
            "encoding": {
                **{"x": x("ratio"), "y": lower, "color": quiet, "shape": shaped(look) | {"legend": None}},
                "tooltip": said,
            },
        },
    ]


def _domain(rows: list[Json]) -> list[float]:
    """Return what the axis shows: all intervals, but of hopeless ones only the part within a hundredfold."""
    low = max(min([0.95, *(row["ratio_low"] for row in rows)]), min(row["ratio"] for row in rows) / 100)
    high = min(max([1.05, *(row["ratio_high"] for row in rows)]), max(row["ratio"] for row in rows) * 100)
    return [low * 0.97, high * 1.03]
