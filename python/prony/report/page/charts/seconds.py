"""A trial second by second: the one in the middle of its cell, and the worst. A single stall is seen."""

from collections.abc import Iterator
from dataclasses import dataclass

from prony.core.units import MILLISECOND_NS, Scale, seconds
from prony.model.json_codec import Json
from prony.model.workload import DurationStop, Workload
from prony.reading.groups import Group
from prony.reading.traces import Choice, SecondFigures
from prony.report.forms import metric_scale
from prony.report.page.chart import (
    QUIET,
    RATIO,
    Chart,
    Style,
    axis,
    coloured,
    layer,
    quantity,
    rows_of,
    slug,
    tooltip,
)
from prony.report.page.scene import Scene
from prony.report.text import pointer

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
    rows = [row for row in _rows(course, Scale(1, "/s")) if "ok" in row]
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
    rows = [row for row in _rows(course, scale) if "slowest" in row]
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


def _rows(course: Course, scale: Scale) -> Iterator[Json]:
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
