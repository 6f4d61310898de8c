"""One metric against the load: a line for each subject, a band for its interval, published figures beside."""

from collections.abc import Callable, Iterator, Sequence

from prony.core.units import Scale
from prony.model.json_codec import Json
from prony.reading.groups import Group, load_size
from prony.report.page.chart import (
    RATIO,
    ROOM,
    ZOOM,
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
)
from prony.report.page.scene import Scene, titled
from prony.report.sections.grid import over_words
from prony.report.text import pointer

# From here on the loads of a study are spread over a scale by ratio.
_WIDE = 8


def load_curve(scene: Scene, family: Sequence[Group], metric: str) -> Chart | None:
    """Return the chart of a metric over the loads of a family, the lightest first; None without figures."""
    cells = [cell for group in family for cell in group.cells]
    scale = scene.scale(metric, cells)
    rows = [row for group in family for row in _rows(scene, group, metric, scale)]
    originals = list(_published(scene, family, metric, scale))
    trials = [row for group in family for row in _trials(scene, group, metric, scale)]
    if len({row["load"] for row in rows}) < 2 or len({row["value"] for row in rows}) < 2:
        return None
    over = over_words(family[0])
    about = f"Against {over}: the mean of each subject{scene.spread}; small dots are single trials."
    if originals:
        about += " Dashed and hollow: what was published."
    return Chart(
        slug(metric, "against", over, str(scene.reading.place(family[0]))),
        titled(metric),
        about,
        spec(
            [*rows, *originals, *trials],
            _layers(scene, over, _across(rows, over), _up([*rows, *originals, *trials], scale.unit)),
        ),
    )


def _rows(scene: Scene, group: Group, metric: str, scale: Scale) -> Iterator[Json]:
    for cell in group.cells:
        row = scene.row(cell, metric, scale)
        if row is not None:
            yield {**row, "load": load_size(group)}


def _trials(scene: Scene, group: Group, metric: str, scale: Scale) -> Iterator[Json]:
    for cell in group.cells:
        for row in scene.trial_rows(cell, metric, scale):
            yield {**row, "load": load_size(group)}


def _published(scene: Scene, family: Sequence[Group], metric: str, scale: Scale) -> Iterator[Json]:
    sizes = {cell.cell.id: load_size(group) for group in family for cell in group.cells}
    for k, one in enumerate(scene.reading.originals):
        if one.original.metric == metric and not one.original.role and one.cell.cell.id in sizes:
            value = one.original.value / scale.size
            yield {
                "name": one.cell.name,
                "published": value,
                "load": sizes[one.cell.cell.id],
                "said": f"{value:,.4g} {scale.unit}".strip(),
                "at": pointer("originals", k, "published"),
                "scale": scale.size,
            }


def _across(rows: Sequence[Json], over: str) -> Json:
    """Return the axis of loads: those that were measured are its ticks."""
    loads, scale = sorted({row["load"] for row in rows}), {"nice": False, "padding": ROOM}
    if loads[0] > 0 and loads[-1] >= _WIDE * loads[0]:
        ticks = axis(values=loads, grid=False, format="~s")
        return quantity("load", over, axis=ticks) | {"scale": RATIO | scale}
    return quantity("load", over, axis=axis(grid=False)) | {"scale": scale}


def _up(rows: Sequence[Json], unit: str) -> Json:
    """Return the axis of the metric, without its field."""
    values = [row[name] for row in rows for name in ("value", "low", "published", "trial") if name in row]
    return by_size("", unit or None, values, zero=True)


def _layers(scene: Scene, over: str, x: Json, up: Json) -> list[Json]:
    colour, shape = coloured(scene.look), shaped(scene.look)

    def y(name: str) -> Json:
        return {**up, "field": name}

    band, trials, line, means = mean_layers(x, y, (colour, shape), load=over)
    published = {"x": x, "y": y("published"), "color": colour}
    hollow = {"shape": shape, "tooltip": tooltip(name="subject", load=over, said="published")}
    return [
        *(band, trials),
        layer("line", published, "published", strokeDash=[3, 3], strokeWidth=1, opacity=0.8),
        layer("point", published | hollow, "published", size=32, filled=False),
        {"params": [ZOOM], **line},
        means,
    ]


def mean_layers(x: Json, y: Callable[[str], Json], glyph: tuple[Json, Json], **where: str) -> list[Json]:
    """Return a line of means: the band of their intervals, single trials, the line and its marks. ``glyph``:
    by what colour and shape differ; ``where``: what is said of a point's place, field to title.
    """
    colour, shape = glyph
    trial = {"tooltip": tooltip(name="subject", **where, said="trial", block="block")}
    mean = {"shape": shape, "tooltip": tooltip(name="subject", **where, said="mean", n="trials")}
    low, one, value = ({"x": x, "y": y(name), "color": colour} for name in ("low", "trial", "value"))
    return [
        layer("area", low | {"y2": {"field": "high"}}, "low", opacity=0.16, clip=True),
        layer("circle", one | trial, "trial", size=12, opacity=0.5),
        layer("line", value, "value", strokeWidth=1.6),
        dot(value | mean, 44, "value", clip=False),
    ]
