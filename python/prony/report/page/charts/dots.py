"""One metric of all subjects under one load: the mean with its interval, and every trial as a dot."""

from collections.abc import Sequence

from prony.figures.summary import CellSummary
from prony.model.json_codec import Json
from prony.reading.groups import Group
from prony.report.page.chart import (
    ROW,
    WIDTH,
    Chart,
    axis,
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
