"""The trials in the order in which they ran: whether the machine, or a subject, changed meanwhile."""

from collections.abc import Iterator
from math import fsum

from prony.analysis.drift import CALIBRATED
from prony.analysis.missing import Missing
from prony.metrics import METRICS
from prony.model import Json, Ok, TrialRole
from prony.page.chart import Chart, axis, coloured, quantity, shaped, spec, tooltip
from prony.page.scene import Scene
from prony.report.text import pointer

__all__ = ["order"]

_CALIBRATION = "reference server"


def order(scene: Scene) -> Chart | None:
    """Return each trial's figure against its cell's mean, by its place in the order; null without trials."""
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
    metrics = {
        cell.cell.id: group.answer.metric or "ok_per_s" for group in reading.groups for cell in group.cells
    }
    names = {cell.cell.id: cell.name for cell in reading.cells}
    means: dict[object, float] = {}
    values: dict[int, tuple[str, str, float]] = {}
    for k, trial in enumerate(reading.trials):
        calibrates = trial.role is TrialRole.CALIBRATION
        if not calibrates and (trial.role is not TrialRole.SUBJECT or trial.cell_id not in names):
            continue
        metric = CALIBRATED[1] if calibrates else metrics[trial.cell_id]
        value, name = trial.metrics[metric], _CALIBRATION if calibrates else names[trial.cell_id]
        if not isinstance(trial.outcome, Ok):
            outcome = type(trial.outcome).__name__.lower()
            yield {
                "name": name,
                "place": k + 1,
                "outcome": outcome,
                "said": outcome,
                "at": pointer("order", k),
            }
        elif not isinstance(value, Missing) and value > 0:
            values[k] = (name, metric, value)
    for key in {(name, reading.trials[k].cell_id) for k, (name, _, _) in values.items()}:
        own = [v for k, (name, _, v) in values.items() if (name, reading.trials[k].cell_id) == key]
        means[key] = fsum(own) / len(own)
    for k, (name, metric, value) in values.items():
        change = 100 * (value / means[name, reading.trials[k].cell_id] - 1)
        yield {
            **{"name": name, "place": k + 1, "change": change, "said": f"{change:+.1f} %"},
            **{
                "metric": METRICS[metric].title,
                "block": reading.trials[k].block + 1,
                "at": pointer("order", k),
            },
        }


def _layers(scene: Scene) -> list[Json]:
    look = scene.look
    x = quantity("place", "trial, as they ran", axis=axis(grid=False, format="d")) | {
        "scale": {"nice": False}
    }
    y = quantity("change", "% from its cell's mean", axis=axis())
    said = tooltip(name="subject", metric="metric", said="difference", place="trial", block="block")
    quiet = coloured(look) | {"legend": None}
    own = f"datum.name == '{_CALIBRATION}'"
    return [
        {
            "data": {"values": [{"zero": 0}]},
            "mark": {"type": "rule", "color": "#57606a", "strokeWidth": 1},
            "encoding": {"y": quantity("zero")},
        },
        {
            "transform": [{"filter": f"{own} && isValid(datum.change)"}],
            "mark": {
                "type": "line",
                "color": "#57606a",
                "strokeWidth": 1.4,
                "point": {"color": "#57606a", "size": 16},
            },
            "encoding": {"x": x, "y": y, "tooltip": said},
        },
        {
            "transform": [{"filter": f"!({own}) && isValid(datum.change)"}],
            "mark": {"type": "point", "filled": True, "size": 34, "opacity": 0.9},
            "encoding": {"x": x, "y": y, "color": coloured(look), "shape": shaped(look), "tooltip": said},
        },
        {
            "transform": [{"filter": "isValid(datum.outcome)"}],
            "mark": {"type": "point", "shape": "cross", "angle": 45, "size": 40, "yOffset": -3},
            "encoding": {
                **{"x": x, "y": {"value": "height"}, "color": quiet},
                "tooltip": tooltip(name="subject", said="outcome", place="trial"),
            },
        },
    ]
