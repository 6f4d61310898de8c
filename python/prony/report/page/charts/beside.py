"""Published figures beside those measured here."""

from collections.abc import Collection, Iterator

from prony.core.metrics import METRICS
from prony.core.units import Scale
from prony.figures.summary import Estimate, means
from prony.model.json_codec import Json
from prony.reading.checks import Beside
from prony.report.forms import in_metric, metric_scale
from prony.report.page.chart import (
    RATIO,
    WIDTH,
    Chart,
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
from prony.report.page.charts.ratios import places
from prony.report.page.scene import Scene, titled
from prony.report.text import pointer


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
            yield _chart(scene, metric, role, [_row(scene, k, one, scale) for k, one in own], scale)


def _chart(scene: Scene, metric: str, role: str, rows: list[Json], scale: Scale) -> Chart:
    of = f" of each {role}" if role else ""
    layers, step = _layers(scene, _with_ranges(rows), scale.unit)
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


def _row(scene: Scene, k: int, one: Beside, scale: Scale) -> Json:
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


def _layers(scene: Scene, rows: list[Json], unit: str) -> tuple[list[Json], int]:
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
