"""Latency by percentile, on the axis of HdrHistogram's plots: each step takes in one more nine.

*Source*: G. Tene, HdrHistogram, "plotFiles.html": requests / (requests that took longer), by ratio.

A trial second by second: the one in the middle of its cell, and the worst. A single stall is seen.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from prony.core.metrics import PERCENTILES
from prony.core.units import MILLISECOND_NS, Scale, seconds
from prony.figures.summary import CellSummary
from prony.model.json_codec import Json
from prony.model.workload import DurationStop, Workload
from prony.reading.groups import Group
from prony.reading.traces import Choice, PercentileCurve, SecondFigures
from prony.report.forms import metric_scale
from prony.report.page.chart import (
    QUIET,
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
    rows_of,
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


# --- second by second -------------------------------------------------------------------------------------


_HEIGHT = 64
# From few to many replies. Colours between colours are calculated: none of these is a page's variable.
_SHADES = ("#c9dff0", "#3d8fc7", "#0a3d66")


@dataclass(frozen=True, slots=True)
class Course:
    """Trials second by second: each with its subject and which one it is. ``which`` says that in words;
    ``key``: see `Scene.key`; ``end_s``: when the window ended, null where that is not known; ``at``: where
    the JSON has the seconds, empty where it has none.
    """

    look: Style
    trials: tuple[tuple[str, str, tuple[SecondFigures, ...]], ...]
    which: str
    key: str
    end_s: float | None
    at: str = ""


def course_of(scene: Scene, group: Group) -> Course:
    """Return the trials of a group that are shown over time."""
    which = (
        "Of each subject the trial in the middle (solid) and the worst (dashed), by the metric that decides"
    )
    return Course(
        scene.look, tuple(_traces(scene, group)), which, scene.key(group), window_end_s(group.workload)
    )


def window_end_s(workload: Workload) -> float | None:
    """Return how long the window of a load is; None where that is not fixed."""
    return seconds(workload.stop.duration_ns) if isinstance(workload.stop, DurationStop) else None


def replies(course: Course) -> Chart | None:
    """Return the valid replies of each second, for each subject; None without series."""
    rows = [row for row in _second_rows(course, Scale(1, "/s")) if "ok" in row]
    if not rows:
        return None
    return Chart(
        slug("seconds", course.key),
        "Every second: valid replies",
        f"{course.which}. Crosses: seconds in which requests failed; grey: after the window.",
        _facets(course, rows, "ok", "/s"),
    )


def slowest(course: Course) -> Chart | None:
    """Return the longest latency of each second, for each subject; None without series."""
    found = [one for _, _, trace in course.trials for one in trace if one.max_ns]
    if not found:
        return None
    scale = metric_scale("response_ok_p50", [float(one.max_ns or 0) for one in found])
    rows = [row for row in _second_rows(course, scale) if "slowest" in row]
    return Chart(
        slug("slowest", course.key),
        "Every second: the slowest reply",
        f"The longest latency of a valid reply in each second, on a scale by ratio. {course.which}.",
        _facets(course, rows, "slowest", scale.unit),
    )


def _traces(scene: Scene, group: Group) -> Iterator[tuple[str, str, tuple[SecondFigures, ...]]]:
    """Yield each subject with which trial it is, and its seconds; the worst one last."""
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


def _second_rows(course: Course, scale: Scale) -> Iterator[Json]:
    for name, which, trace in course.trials:
        for k, one in enumerate(trace):
            at = course.at and course.at + pointer(k)
            row: Json = {"name": name, "trial": which, "second": one.second, "ok": one.ok}
            row |= {"ok_at": at + pointer("ok")} if at else {}
            if one.max_ns:
                row["slowest"] = one.max_ns / scale.size
                places = {"slowest_at": at + pointer("latency", "max"), "slowest_scale": scale.size}
                row |= places if at else {}
            yield row | ({"failed": one.failed} if one.failed else {})


def _names(course: Course, rows: list[Json]) -> list[str]:
    present = {row["name"] for row in rows}
    return [name for name in dict.fromkeys(name for name, _, _ in course.trials) if name in present]


def _drain(course: Course, rows: list[Json]) -> list[Json]:
    """Return the layer that shades the drain: replies of requests that the window had begun."""
    end, last = course.end_s, max(row["second"] for row in rows)
    if end is None or last < end:
        return []
    place = {"x": quantity("from", None) | {"scale": {"nice": False}}, "x2": {"field": "to"}}
    return [layer("rect", place, rows=[{"from": end - 0.5, "to": last}], color=QUIET, opacity=0.1)]


def _across() -> Json:
    ticks = axis(grid=False, format="d")
    return quantity("second", "seconds of the window", axis=ticks) | {"scale": {"nice": False}}


def _facets(course: Course, rows: list[Json], name: str, unit: str) -> Json:
    """Return small charts of all subjects, one below the other, on common axes."""
    look = course.look
    zero = name == "ok"
    scale: Json = {"zero": True, "nice": True} if zero else {"type": "log", "nice": True}
    y = quantity(name, unit, axis={"tickCount": 2, "format": "~s" if zero else "~r"}) | {"scale": scale}
    place = {"x": _across(), "y": y}
    dashes = {"domain": list(dict.fromkeys(row["trial"] for row in rows)), "range": [[1, 0], [3, 2]]}
    dash = {"strokeDash": {"field": "trial", "type": "nominal", "legend": None, "scale": dashes}}
    quiet = {"color": coloured(look) | {"legend": None}}
    said = {"tooltip": tooltip(name="subject", trial="trial", second="second", **{name: "value"})}
    cross: Json = {"shape": "cross", "size": 28, "angle": 45, "opacity": 0.9}
    layers: list[Json] = [
        *_drain(course, rows),
        layer("line", place | quiet | dash, strokeWidth=1.4),
        layer("point", place | said, opacity=0, size=60),
    ]
    if any("failed" in row for row in rows):
        layers.append(layer("point", place | quiet, "failed", **cross))
    return rows_of(rows, _names(course, rows), layers, _HEIGHT)


def heat_map(course: Course) -> Chart | None:
    """Return latency over time as a heat map, of a subject's trials that of the last one, which is the worst;
    None without histograms.
    """
    rows = list(_bins(course))
    if not rows:
        return None
    names = list(dict.fromkeys(row["name"] for row in rows))
    shades = {"range": list(_SHADES), "type": "log"}
    ticks = axis(grid=False) | {"tickCount": 3, "format": "~r"}
    edges = {"low": "from (ms)", "high": "to (ms)"}
    squares = {
        **{"x": _across(), "x2": {"field": "next"}},
        **{"y": quantity("low", "ms", axis=ticks) | {"scale": RATIO}, "y2": {"field": "high"}},
        "color": {"field": "replies", "type": "quantitative", "scale": shades, "title": "replies"},
        "tooltip": tooltip(name="subject", second="second", **edges, replies="replies"),
    }
    return Chart(
        slug("heat", course.key),
        "Every second: all latencies",
        "How many valid replies took how long, second by second; of several trials in the worst.",
        rows_of(rows, names, [layer("rect", squares)], _HEIGHT),
        lazy=True,
    )


def _bins(course: Course) -> Iterator[Json]:
    scale = Scale(MILLISECOND_NS, "ms")
    worst = {name: trace for name, _, trace in course.trials}
    for name, trace in worst.items():
        for one in trace:
            for part in one.bins:
                low, high = (round(edge / scale.size, 4) for edge in (part.low_ns, part.high_ns))
                yield {
                    **{"name": name, "second": one.second, "next": one.second + 1},
                    **{"low": low, "high": high, "replies": part.replies},
                }
