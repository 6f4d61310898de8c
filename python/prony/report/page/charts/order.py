"""The trials in the order in which they ran: whether the machine, or a subject, changed meanwhile."""

from collections.abc import Iterator

from prony.core.metrics import METRICS
from prony.model.json_codec import Json
from prony.model.trial import Ok, TrialRole
from prony.report.forms import signed_percent
from prony.report.page.chart import (
    QUIET,
    Chart,
    axis,
    coloured,
    dot,
    layer,
    quantity,
    shaped,
    spec,
    tooltip,
)
from prony.report.page.scene import Scene
from prony.report.text import pointer

_PERCENT = 0.01

_CALIBRATION = "reference server"


def order(scene: Scene) -> Chart | None:
    """Return each trial's figure against its cell's mean, by its place in the order; None without trials."""
    rows = list(_rows(scene))
    if len(rows) < 2:
        return None
    return Chart(
        "order",
        "Trials in their order",
        "Each trial against the mean of its own cell, in the metric that decides; the line is the reference "
        "server (time per request), which always does the same work: where it moves, the machine did. "
        "Crosses below: trials that do not count.",
        spec(rows, _layers(scene)),
    )


def _rows(scene: Scene) -> Iterator[Json]:
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


def _layers(scene: Scene) -> list[Json]:
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
