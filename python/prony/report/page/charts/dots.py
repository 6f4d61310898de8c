"""Marks of single trials and of means: one metric of all subjects under one load, with every trial as a dot;
all trials in the order in which they ran, which shows whether the machine, or a subject, changed meanwhile;
and what a subject gives for what it costs, throughput or CPU against tail latency and memory.
"""

from collections.abc import Iterator, Sequence

from prony.core.metrics import METRICS
from prony.figures.summary import CellSummary
from prony.model.json_codec import Json
from prony.model.trial import Ok, TrialRole
from prony.model.workload import ClosedLoop
from prony.reading.groups import Group
from prony.report.forms import signed_percent
from prony.report.page.chart import (
    QUIET,
    ROW,
    WIDTH,
    Chart,
    axis,
    by_size,
    coloured,
    dot,
    layer,
    quantity,
    shaped,
    slug,
    spec,
    tooltip,
    words_at,
)
from prony.report.page.scene import Scene, titled
from prony.report.text import pointer
from prony.report.words import heading

# An axis that shows less than this would make much of nothing.
_FLAT = 0.005


def ordered(group: Group) -> list[CellSummary]:
    """Return the cells of a group in the order of its answer, those without a place last."""
    found = group.answer
    first = [found.first, *found.comparisons] if found.first else []
    places = {name: place for place, name in enumerate(first)}
    return sorted(group.cells, key=lambda cell: places.get(cell.name, len(places)))


def dots(scene: Scene, group: Group, metric: str) -> Chart | None:
    """Return the chart of a metric; None where fewer than two subjects have it, or it is the same for all."""
    cells = [cell for cell in ordered(group) if cell.known(metric)]
    scale = scene.scale(metric, cells)
    means = [row for cell in cells if (row := scene.row(cell, metric, scale)) is not None]
    trials = [row for cell in cells for row in scene.trial_rows(cell, metric, scale)]
    if len(means) < 2 or is_flat([row["trial"] for row in trials]):
        return None
    return Chart(
        slug(metric, scene.key(group)),
        titled(metric),
        f"Mean over the trials{scene.spread}; small dots are single trials.",
        spec(
            [*means, *trials],
            _layers(scene, [cell.name for cell in cells], scale.unit),
            height={"step": ROW},
        ),
    )


def is_flat(values: Sequence[float]) -> bool:
    """Return whether all are about the same, as the replies a second at a fixed rate."""
    return not values or max(values) - min(values) <= _FLAT * abs(max(values))


def _layers(scene: Scene, names: Sequence[str], unit: str) -> list[Json]:
    look = scene.look
    lower = {"field": "name", "type": "nominal", "sort": list(names), "axis": None, "bandPosition": 0.62}
    upper = {**lower, "bandPosition": 0.2}
    quiet = {"y": lower, "color": coloured(look) | {"legend": None}}
    place = quantity("value", unit or None, axis=axis())
    trial = {"x": quantity("trial"), "tooltip": tooltip(name="subject", said="trial", block="block")}
    said = {"tooltip": tooltip(name="subject", said="mean", n="trials")}
    ends = {"x": quantity("low"), "x2": {"field": "high"}}
    return [
        layer("tick", {"x": place, "y": lower}, thickness=0, opacity=0),
        words_at(0, upper, "name", 225, "value"),
        words_at(WIDTH, upper, "said", 125, "value"),
        layer("circle", quiet | trial, "trial", size=18, opacity=0.45),
        layer("rule", quiet | said | ends, "low", strokeWidth=2),
        dot(quiet | said | {"x": place, "shape": shaped(look) | {"legend": None}}, 70, "value"),
    ]


# --- the trials in their order ----------------------------------------------------------------------------


_PERCENT = 0.01

_CALIBRATION = "reference server"


def order(scene: Scene) -> Chart | None:
    """Return each trial's figure against its cell's mean, by its place in the order; None without trials."""
    rows = list(_order_rows(scene))
    if len(rows) < 2:
        return None
    return Chart(
        "order",
        "Trials in their order",
        "Each trial against the mean of its own cell, in the metric that decides; the line is the reference "
        "server (time per request), which always does the same work: where it moves, the machine did. "
        "Crosses below: trials that do not count.",
        spec(rows, _order_layers(scene)),
    )


def _order_rows(scene: Scene) -> Iterator[Json]:
    reading = scene.reading
    names = {cell.cell.id: cell.name for cell in reading.cells}
    for k, (trial, one) in enumerate(zip(reading.trials, reading.order, strict=True)):
        calibrates = trial.role is TrialRole.CALIBRATION
        if one.metric is None:
            continue
        row: Json = {"name": _CALIBRATION if calibrates else names[trial.cell_id], "place": k + 1}
        if not isinstance(trial.outcome, Ok):
            outcome = type(trial.outcome).__name__.lower()
            yield row | {"outcome": outcome, "said": outcome, "at": pointer("order", k)}
        elif one.change is not None:
            figure = {"change": one.change / _PERCENT, "said": signed_percent(one.change), "scale": _PERCENT}
            found = {"metric": METRICS[one.metric].title, "block": trial.block + 1}
            yield row | figure | found | {"at": pointer("order", k, "change")}


def _order_layers(scene: Scene) -> list[Json]:
    ticks = axis(grid=False, format="d")
    x = quantity("place", "trial, as they ran", axis=ticks) | {"scale": {"nice": False}}
    place = {"x": x, "y": quantity("change", "% from its cell's mean", axis=axis())}
    said = tooltip(name="subject", metric="metric", said="difference", place="trial", block="block")
    colour = coloured(scene.look)
    own, others = (f"datum.name {sign} '{_CALIBRATION}' && isValid(datum.change)" for sign in ("==", "!="))
    line: Json = {"color": QUIET, "strokeWidth": 1.4, "point": {"color": QUIET, "size": 16}}
    last = [
        {"filter": own},
        {"joinaggregate": [{"op": "max", "field": "place", "as": "last"}]},
        {"filter": "datum.place == datum.last"},
    ]
    name = layer("text", place | {"text": {"field": "name"}}, align="right", dy=-9, color=QUIET)
    lost = {"y": {"value": "height"}, "tooltip": tooltip(name="subject", said="outcome", place="trial")}
    cross: Json = {"shape": "cross", "angle": 45, "size": 40, "yOffset": -3}
    return [
        layer("rule", {"y": quantity("zero")}, rows=[{"zero": 0}], color=QUIET, strokeWidth=1),
        layer("line", place | {"tooltip": said}, own, **line),
        {"transform": last, **name},
        dot(place | {"color": colour, "shape": shaped(scene.look), "tooltip": said}, 34, others, opacity=0.9),
        layer("point", {"x": x, "color": colour} | lost, "outcome", **cross),
    ]


# --- what a subject gives for what it costs ---------------------------------------------------------------


def tradeoff(scene: Scene, group: Group) -> Chart | None:
    """Return the trade-off of a group; None where fewer than two subjects have all three figures."""
    closed = isinstance(group.workload.loop, ClosedLoop)
    across = "ok_per_s" if closed else "cpu_ns_per_request"
    up = "service_ok_p99" if closed else "response_ok_p99"
    metrics = (across, up, "pss_end")
    cells = [cell for cell in group.cells if all(map(cell.known, metrics))]
    if len(cells) < 2:
        return None
    rows = [_tradeoff_row(scene, cells, cell, metrics) for cell in cells]
    titles = [METRICS[metric].title for metric in metrics]
    units = [scene.scale(metric, cells).unit for metric in metrics]
    good = "to the right and down" if closed else "to the left and down"
    return Chart(
        slug("tradeoff", scene.key(group)),
        "What it gives and what it costs",
        f"{heading(titles[0])} against {titles[1]}; a larger mark needs more {titles[2]}. Best is {good}.",
        spec(rows, _tradeoff_layers(scene, rows, titles, units)),
    )


def _tradeoff_row(
    scene: Scene, cells: list[CellSummary], cell: CellSummary, metrics: tuple[str, ...]
) -> Json:
    found: Json = {"name": cell.name}
    for axis_name, metric in zip(("x", "y", "size"), metrics, strict=True):
        row = scene.row(cell, metric, scene.scale(metric, cells)) or {}
        found |= {axis_name: row["value"], f"said_{axis_name}": row["said"]}
        found |= {f"{axis_name}_at": row["at"], f"{axis_name}_scale": row["scale"]}
        if "low" in row:
            found |= {f"{axis_name}_low": row["low"], f"{axis_name}_high": row["high"]}
    return found


def _axis(rows: list[Json], name: str, title: str) -> Json:
    keys = (name, f"{name}_low", f"{name}_high")
    return by_size(name, title, [row[key] for row in rows for key in keys if key in row])


def _tradeoff_layers(scene: Scene, rows: list[Json], titles: list[str], units: list[str]) -> list[Json]:
    x = _axis(rows, "x", f"{titles[0]}, {units[0]}")
    y = _axis(rows, "y", f"{titles[1]}, {units[1]}")
    place = {"x": x, "y": y, "color": coloured(scene.look)}
    said = {"tooltip": tooltip(name="subject", said_x=titles[0], said_y=titles[1], said_size=titles[2])}
    glyph = {"shape": shaped(scene.look), "size": memory_size("size")}
    return [
        layer("rule", place | {"y": y | {"field": "y_low"}, "y2": {"field": "y_high"}}, "y_low", opacity=0.5),
        layer("rule", place | {"x": x | {"field": "x_low"}, "x2": {"field": "x_high"}}, "x_low", opacity=0.5),
        layer("point", place | said | glyph, filled=True, opacity=0.9),
    ]


def memory_size(name: str) -> Json:
    """Return the encoding of memory by the size of a mark."""
    sizes = {"range": [30, 320], "zero": True}
    return {"field": name, "type": "quantitative", "legend": None, "scale": sizes}
