"""How the others compare with the best, as ratios with their intervals."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from prony.core.metrics import METRICS, Better
from prony.figures.statistics.compare import Comparison
from prony.model.json_codec import Json
from prony.reading.groups import Group
from prony.report.forms import signed_percent
from prony.report.page.chart import (
    QUIET,
    RATIO,
    WIDTH,
    Chart,
    Style,
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
from prony.report.page.scene import Scene
from prony.report.text import pointer
from prony.report.words import bound_sign

# What a name may have in letters beside a figure; a longer one has a line of its own.
_BESIDE = 26


def ratios(scene: Scene, group: Group) -> Chart | None:
    """Return the forest plot of a group's answer; None where nobody is compared."""
    found = group.answer
    if found.metric is None or found.leader is None:
        return None
    at = pointer("groups", scene.reading.place(group), "answer", "comparisons")
    cells = {cell.name: cell for cell in group.cells}
    rows = [
        _row(name, one, at + pointer(name), bound_sign(cells[name], found.metric))
        for name, one in found.comparisons.items()
    ]
    known = [row for row in rows if "low" in row]
    if not known:
        return None
    metric, bar = METRICS[found.metric], scene.reading.plan.design.margin
    better = "higher is better" if metric.better is Better.HIGHER else "lower is better"
    return Chart(
        slug("ratios", scene.key(group)),
        f"To {found.leader}",
        f"Ratio in {metric.title} ({better}), with intervals that hold for all pairs together; within "
        "the grey band a difference is of no interest.",
        forest(scene.look, known, bar, tooltip(name="subject", said="difference", verdict="verdict"), ()),
    )


def _row(name: str, one: Comparison, at: str, sign: str) -> Json:
    row: Json = {"name": name, "value": one.effect, "at": at, "verdict": one.verdict.value}
    if one.effect is None or one.low is None or one.high is None:
        return row
    said = f"{sign}{signed_percent(one.effect)} ({signed_percent(one.low)} to {signed_percent(one.high)})"
    ratio = {"ratio": 1 + one.effect, "ratio_low": 1 + one.low, "ratio_high": 1 + one.high}
    return row | {"low": one.low, "high": one.high, "said": said} | ratio


def forest(look: Style, rows: Sequence[Json], bar: float, said: list[Json], between: Sequence[Json]) -> Json:
    """Return the specification of a forest plot: each row of ``rows`` that has a ``ratio`` with its interval.

    ``bar``: within it a difference is of no interest; ``said``: of what a pointer finds; ``between``: layers
    under the marks.
    """
    named = [row for row in rows if "ratio" in row]
    lower, upper, figures, step, most = places([row["name"] for row in named])
    x = ratio_axis(rows)
    quiet = {"y": lower, "color": coloured(look) | {"legend": None}, "tooltip": said}
    margin, ends = [{"from": 1 - bar, "to": 1 + bar}], {"x": x("ratio_low"), "x2": {"field": "ratio_high"}}
    band = {"x": x("from"), "x2": {"field": "to"}}
    layers: list[Json] = [
        layer("rect", band, rows=margin, color=QUIET, opacity=0.16),
        layer("rule", {"x": x("one")}, rows=[{"one": 1}], color=QUIET, strokeWidth=1),
        words_at(0, upper, "name", most, "ratio"),
        words_at(WIDTH, figures, "said", 185, "ratio", fontSize=10),
        layer("rule", quiet | ends, "ratio", strokeWidth=2, clip=True),
        *between,
        dot(quiet | {"x": x("ratio"), "shape": shaped(look) | {"legend": None}}, 70, "ratio"),
    ]
    return spec(rows, layers, height={"step": step})


class Columns(NamedTuple):
    """Where a row has its marks, its name and its figures, how high it is, and how wide a name may be."""

    marks: Json
    name: Json
    figures: Json
    step: int
    most: int


def places(names: Iterable[str], field: str = "name") -> Columns:
    """Return the places of rows that are named by ``field``: where a name is long, each has its own line."""
    rows = list(names)
    y: Json = {"field": field, "type": "nominal", "sort": rows, "axis": None}
    is_long = any(len(name) > _BESIDE for name in rows)
    marks, name, figures, step = (0.75, 0.14, 0.42, 56) if is_long else (0.62, 0.2, 0.2, 42)

    def at(band: float) -> Json:
        return {**y, "bandPosition": band}

    return Columns(at(marks), at(name), at(figures), step, WIDTH if is_long else WIDTH // 2 - 15)


def ratio_axis(rows: Sequence[Json]) -> Callable[[str], Json]:
    """Return the axis of ratios, by the field that it shows: intervals and single ratios have room, but of
    hopeless intervals only the part within a hundredfold.
    """
    single = [row[name] for row in rows for name in ("ratio", "single") if name in row]
    low = max(min([0.95, *single, *_ends(rows, "ratio_low")]), min(single) / 100)
    high = min(max([1.05, *single, *_ends(rows, "ratio_high")]), max(single) * 100)
    scale = RATIO | {"domain": [low * 0.97, high * 1.03]}
    ticks = axis(format="~g", grid=False)
    return lambda name: quantity(name, "ratio", axis=ticks) | {"scale": scale}


def _ends(rows: Sequence[Json], name: str) -> list[float]:
    return [row[name] for row in rows if name in row]
