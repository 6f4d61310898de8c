"""Rows of marks that are compared: the others with the best, as ratios with their intervals; published
figures with those measured here.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from prony.core.metrics import METRICS, Better
from prony.core.units import Scale
from prony.figures.statistics.compare import Comparison
from prony.figures.summary import Estimate, means
from prony.model.json_codec import Json
from prony.reading.checks import Beside
from prony.reading.groups import Group
from prony.report.forms import in_metric, metric_scale, signed_percent
from prony.report.page.chart import (
    QUIET,
    RATIO,
    WIDTH,
    Chart,
    Style,
    axis,
    by_ratio,
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


# --- published figures beside those measured here ---------------------------------------------------------


def published(scene: Scene, curved: Collection[tuple[str, int]]) -> Iterator[Chart]:
    """Yield for each metric, of each role, its published figures beside the new ones; not those that a curve
    shows (``curved``: metric and cell).
    """
    found = [
        (k, one)
        for k, one in enumerate(scene.reading.originals)
        if one.original.role or (one.original.metric, one.cell.cell.id) not in curved
    ]
    for metric, role in dict.fromkeys((one.original.metric, one.original.role) for _, one in found):
        own = [(k, one) for k, one in found if (one.original.metric, one.original.role) == (metric, role)]
        values = means(one.measured for _, one in own)
        if values:
            scale = metric_scale(metric, [*values, *(one.original.value for _, one in own)])
            yield _published_chart(
                scene, metric, role, [_published_row(scene, k, one, scale) for k, one in own], scale
            )


def _published_chart(scene: Scene, metric: str, role: str, rows: list[Json], scale: Scale) -> Chart:
    of = f" of each {role}" if role else ""
    layers, step = _published_layers(scene, _with_ranges(rows), scale.unit)
    return Chart(
        slug("published", metric, role),
        f"{titled(metric)}{of}",
        f"Hollow: {METRICS[metric].title}{of} as published; filled: measured here. "
        "Another machine, another year: the order is comparable, the values are not.",
        spec(rows, layers, height={"step": step}),
    )


def _with_ranges(rows: list[Json]) -> list[Json]:
    """Return the rows, of which the first of a place says all that was published there."""
    said: dict[str, list[str]] = {}
    for row in rows:
        said.setdefault(row["label"], []).append(row["said_published"])
    for row in rows:
        published = said.pop(row["label"], None)
        if published is not None:
            ends = " to ".join(dict.fromkeys((published[0], published[-1])))
            row["said"] = f"{row.get('said_measured', '—')}, was {ends}"
    return rows


def _published_row(scene: Scene, k: int, one: Beside, scale: Scale) -> Json:
    at = pointer("originals", k)
    load = next(scene.load(group) for group in scene.reading.groups if one.cell in group.cells)
    label = ", ".join(part for part in (one.cell.name, load) if part)
    row: Json = {
        **{"name": one.cell.name, "label": label, "published": one.original.value / scale.size},
        **{"scale": scale.size, "said_published": in_metric(one.original.metric)(one.original.value)},
        "at": at + pointer("published"),
    }
    if isinstance(one.measured, Estimate):
        said = in_metric(one.original.metric)(one.measured.mean)
        row |= {"measured": one.measured.mean / scale.size, "said_measured": said}
        row |= {"measured_at": at + pointer("measured"), "measured_scale": scale.size}
    return row


def _published_layers(scene: Scene, rows: list[Json], unit: str) -> tuple[list[Json], int]:
    """Return the layers, and how high a row is."""
    look = scene.look
    lower, upper, figures, step, most = places(dict.fromkeys(row["label"] for row in rows), "label")
    values = [row[name] for row in rows for name in ("published", "measured") if name in row]
    quiet = coloured(look) | {"legend": None}
    said = tooltip(name="subject", said_measured="measured here", said_published="published")
    wide = min(values) > 0 and max(values) > 20 * min(values)
    ticks = by_ratio(min(values), max(values)) if wide else axis(format="~r")
    scale: Json = {"scale": RATIO} if wide else {}
    published, measured = (
        quantity(name, unit or None, axis=ticks) | scale for name in ("published", "measured")
    )
    glyph = {"y": lower, "color": quiet, "shape": shaped(look) | {"legend": None}, "tooltip": said}
    between = {"x": published, "x2": {"field": "measured"}, "y": lower, "color": quiet}
    layers: list[Json] = [
        words_at(0, upper, "label", most),
        words_at(WIDTH, figures, "said", WIDTH // 2, "said"),
        layer("rule", between, "measured", strokeDash=[2, 2], opacity=0.6),
        layer("point", glyph | {"x": published}, filled=False, size=60),
        dot(glyph | {"x": measured}, 60, "measured"),
    ]
    return layers, step
