"""A trial second by second: the one in the middle of its cell, and the worst. A single stall is seen."""

from collections.abc import Iterator

from prony.model import Json
from prony.page.chart import Chart, axis, coloured, quantity, rows_of, slug, tooltip
from prony.page.scene import Scene
from prony.reading.groups import Group
from prony.reading.traces import Choice, SecondFigures
from prony.report.scales import metric_scale
from prony.units import MILLISECOND_NS, Scale

__all__ = ["heat_map", "replies", "slowest"]

_HEIGHT = 64
# From few to many replies. Colours between colours are calculated: none of these is a page's variable.
_SHADES = ("#c9dff0", "#3d8fc7", "#0a3d66")


def replies(scene: Scene, group: Group) -> Chart | None:
    """Return the valid replies of each second, for each subject; null without series."""
    rows = [row for row in _rows(scene, group, Scale(1, "/s")) if "ok" in row]
    if not rows:
        return None
    load = scene.load(group)
    return Chart(
        slug("seconds", load or "all"),
        "Every second: valid replies",
        "Of each subject the trial in the middle (solid) and the worst (dashed), by the metric that "
        "decides. Crosses: seconds in which requests failed.",
        _facets(scene, group, rows, "ok", "/s"),
    )


def slowest(scene: Scene, group: Group) -> Chart | None:
    """Return the longest latency of each second, for each subject; null without series."""
    found = [one for _, _, trace in _traces(scene, group) for one in trace if one.max_ns]
    if not found:
        return None
    scale = metric_scale("response_ok_p50", [float(one.max_ns or 0) for one in found])
    rows = [row for row in _rows(scene, group, scale) if "slowest" in row]
    load = scene.load(group)
    return Chart(
        slug("slowest", load or "all"),
        "Every second: the slowest reply",
        "The longest latency of a valid reply in each second, on a scale by ratio; the same trials.",
        _facets(scene, group, rows, "slowest", scale.unit),
    )


def _traces(scene: Scene, group: Group) -> Iterator[tuple[str, str, tuple[SecondFigures, ...]]]:
    """Yield each subject with which trial it is, and its seconds."""
    for cell in group.cells:
        found = scene.traces.picked.get(cell.cell.id)
        if found is None:
            continue
        shown: dict[Choice, str] = {found.median: "middle"}
        shown.setdefault(found.worst, "worst")
        for choice, which in shown.items():
            trace = scene.traces.trials.get(choice)
            if trace is not None:
                yield cell.name, which, trace.seconds


def _rows(scene: Scene, group: Group, scale: Scale) -> Iterator[Json]:
    for name, which, trace in _traces(scene, group):
        for one in trace:
            row: Json = {"name": name, "trial": which, "second": one.second, "ok": one.ok}
            if one.max_ns:
                row["slowest"] = one.max_ns / scale.size
            yield row | ({"failed": one.failed} if one.failed else {})


def _facets(scene: Scene, group: Group, rows: list[Json], name: str, unit: str) -> Json:
    """Return small charts of all subjects, one below the other, on common axes."""
    look = scene.look
    present = {row["name"] for row in rows}
    names = [cell.name for cell in group.cells if cell.name in present]
    zero = name == "ok"
    scale: Json = {"zero": True, "nice": True} if zero else {"type": "log", "nice": True}
    x = quantity("second", "seconds of the window", axis=axis(grid=False, format="d")) | {
        "scale": {"nice": False}
    }
    y = quantity(name, unit, axis={"tickCount": 2, "format": "~s" if zero else "~r"}) | {"scale": scale}
    dash = {
        **{"field": "trial", "type": "nominal", "legend": None},
        "scale": {"domain": ["middle", "worst"], "range": [[1, 0], [3, 2]]},
    }
    quiet = coloured(look) | {"legend": None}
    layers: list[Json] = [
        {
            "mark": {"type": "line", "strokeWidth": 1.4},
            "encoding": {"x": x, "y": y, "color": quiet, "strokeDash": dash},
        },
        {
            "mark": {"type": "point", "opacity": 0, "size": 60},
            "encoding": {
                **{"x": x, "y": y},
                "tooltip": tooltip(name="subject", trial="trial", second="second", **{name: "value"}),
            },
        },
    ]
    if any("failed" in row for row in rows):
        layers.append(
            {
                "transform": [{"filter": "isValid(datum.failed)"}],
                "mark": {"type": "point", "shape": "cross", "size": 28, "angle": 45, "opacity": 0.9},
                "encoding": {"x": x, "y": y, "color": quiet},
            }
        )
    return rows_of(rows, names, layers, _HEIGHT)


def heat_map(scene: Scene, group: Group) -> Chart | None:
    """Return latency over time as a heat map of each subject's worst trial; null without histograms."""
    rows = list(_bins(scene, group))
    if not rows:
        return None
    names = list(dict.fromkeys(row["name"] for row in rows))
    ratio = {"type": "log", "nice": False}
    shades = {"range": list(_SHADES), "type": "log"}
    layer: Json = {
        "mark": {"type": "rect"},
        "encoding": {
            "x": quantity("second", "seconds of the window", axis=axis(grid=False, format="d"))
            | {"scale": {"nice": False}},
            "x2": {"field": "next"},
            "y": quantity("low", "ms", axis={"tickCount": 3, "format": "~r", "grid": False})
            | {"scale": ratio},
            "y2": {"field": "high"},
            "color": {"field": "replies", "type": "quantitative", "scale": shades, "title": "replies"},
            "tooltip": tooltip(
                name="subject", second="second", low="from (ms)", high="to (ms)", replies="replies"
            ),
        },
    }
    load = scene.load(group)
    return Chart(
        slug("heat", load or "all"),
        "Every second: all latencies",
        "How many valid replies took how long, second by second, in each subject's worst trial.",
        rows_of(rows, names, [layer], _HEIGHT),
        lazy=True,
    )


def _bins(scene: Scene, group: Group) -> Iterator[Json]:
    scale = Scale(MILLISECOND_NS, "ms")
    for cell in group.cells:
        found = scene.traces.picked.get(cell.cell.id)
        trace = scene.traces.trials.get(found.worst) if found else None
        for one in trace.seconds if trace else ():
            for part in one.bins:
                yield {
                    **{"name": cell.name, "second": one.second, "next": one.second + 1},
                    **{
                        "low": round(part.low_ns / scale.size, 4),
                        "high": round(part.high_ns / scale.size, 4),
                    },
                    "replies": part.replies,
                }
