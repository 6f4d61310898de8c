"""What a chart is, and the parts that all charts share.

A specification has no data from outside, no address, and no expression but those written here.

The colour and the shape of each subject: the same in every chart, and never the colour alone.

>>> marks = palette(("a", "b"))
>>> marks["a"]
Glyph(colour='#0072b2', shape='circle')
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, floor, log10
from types import MappingProxyType
from typing import Any

from prony.core.safe_text import plain
from prony.model.json_codec import Json
from prony.report.text import Words

COLOURS = (
    *("#0072b2", "#d55e00", "#00896b", "#b35c96", "#b07a00", "#2b97d3", "#7a5a3a", "#6e7781"),
    *("#4b3a9b", "#a8324a", "#5f7d00", "#1f5f5b"),
)
"""The first eight are distinct for all common kinds of colour-blindness; all are dark enough on white for
lines.

*Source*: M. Okabe and K. Ito, "Color Universal Design" (2008); yellow and black are replaced, since neither
shows on both a light and a dark ground, and green, purple and orange are darker for contrast.
"""

SHAPES = (
    *("circle", "square", "triangle-up", "diamond"),
    *("triangle-down", "cross", "triangle-right", "triangle-left"),
)
INK, QUIET, GRID, PAPER = "#1f2328", "#57606a", "#e4e7eb", "#ffffff"
"""Text, lesser text, grid lines, and the ground: a page replaces these and ``COLOURS`` by its own."""

VARIABLES: Mapping[str, str] = MappingProxyType(
    {
        **{colour: f"var(--c{k})" for k, colour in enumerate(COLOURS)},
        **{INK: "var(--ink)", QUIET: "var(--quiet)", GRID: "var(--grid)", PAPER: "var(--paper)"},
    }
)
"""The variable of a page's style that stands for each colour of a chart."""


@dataclass(frozen=True, slots=True)
class Glyph:
    """How a subject looks."""

    colour: str
    shape: str


def palette(names: Iterable[str]) -> Mapping[str, Glyph]:
    """Return the look of each subject; from the thirteenth on, colours return with other shapes."""
    count = len(COLOURS)
    return {
        name: Glyph(COLOURS[k % count], SHAPES[(k + k // count) % len(SHAPES)])
        for k, name in enumerate(dict.fromkeys(names))
    }


EVERY = "all"
"""What the key of a chart ends in that is of the only load."""

WIDTH, HEIGHT = 340, 220
"""Of the plot, in pixels: a chart fits a telephone unscaled."""

# What an axis of numbers takes beside a plot.
_AXIS = 40
_MOST_TICKS = 7
# Letters of a name in a legend.
_IN_TWO_COLUMNS = 28
_THOUSANDS = 10_000
# What spans more than this would hide the lesser subjects on a linear scale.
_DECADES = 20
ROW = 42
"""Of a subject that has its name above its mark, in pixels."""
ROOM = 8
"""Of marks, in pixels, at the edge of a plot."""
RATIO: Json = {"type": "log", "nice": False}
ZOOM: Json = {
    "name": "zoom",
    "select": {"type": "interval", "zoom": "wheel![event.shiftKey]"},
    "bind": "scales",
}
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
"""The first is in the library that draws, the others have its measures: text fits wherever it is shown."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart: ``key`` is unique on a page and names its files; ``about`` says in a sentence what it shows.

    ``lazy``: too large to stand in the page, so drawn on demand.
    """

    key: str
    title: str
    about: str
    spec: Json
    lazy: bool = False


@dataclass(frozen=True, slots=True)
class Chapter:
    """Charts under a heading."""

    key: str
    heading: Words
    charts: tuple[Chart, ...]


@dataclass(frozen=True, slots=True)
class Style:
    """How the subjects of a study look; ``legend``: a chart names them itself, as nothing beside it does."""

    marks: Mapping[str, Glyph]
    legend: bool = False
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.marks))


def slug(*words: str) -> str:
    """Return a key of lower-case letters, digits and hyphens.

    >>> slug("CPU time", "100 connections")
    'cpu-time-100-connections'
    """
    kept = "".join(letter if letter.isascii() and letter.isalnum() else " " for letter in " ".join(words))
    return "-".join(kept.lower().split())


def legible(value: object) -> Any:
    r"""Return a specification without characters that no XML may hold, and that would end what draws it.

    >>> legible({"name": "a\x1b[2Kb\ufffe", "at": [1]})
    {'name': 'ab', 'at': [1]}

    *Source*: XML 1.0, production 2 (Char).
    """
    match value:
        case str():
            return _NO_XML.sub("", plain(value))
        case dict():
            return {key: legible(one) for key, one in value.items()}
        case list():
            return [legible(one) for one in value]
        case _:
            return value


def spec(rows: Sequence[Json], layers: Sequence[Json], **more: object) -> Json:
    """Return a specification of ``layers`` over ``rows``. Each row's ``name`` is a subject, which the page's
    key may hide.
    """
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "background": None,
        "padding": 4,
        "config": _CONFIG,
        "params": [{"name": "hidden", "value": []}],
        "data": {"values": list(rows)},
        "transform": [{"filter": "indexof(hidden, datum.name) < 0"}],
        "layer": list(layers),
        **more,
    }


_CONFIG: Json = {
    "font": FONT,
    "view": {"stroke": None},
    "axis": {
        "labelColor": QUIET,
        "titleColor": QUIET,
        "titleFontWeight": "normal",
        "titleFontSize": 11,
        "labelFontSize": 11,
        "gridColor": GRID,
        "domainColor": GRID,
        "tickColor": GRID,
        "labelOverlap": True,
        "titlePadding": 7,
    },
    "text": {"color": INK, "fontSize": 11},
    "header": {"labelColor": INK, "labelFontSize": 11},
    "legend": {
        "orient": "bottom",
        "columns": 2,
        "labelColor": INK,
        "labelFontSize": 11,
        "labelLimit": 200,
        "title": None,
    },
}


def rows_of(rows: Sequence[Json], names: Sequence[str], layers: Sequence[Json], height: int) -> Json:
    """Return a specification of the same small chart for each subject, one below the other."""
    shared = spec(rows, [])
    header = {
        "title": None,
        "labelOrient": "top",
        "labelAnchor": "start",
        "labelPadding": 2,
        "labelLimit": WIDTH,
    }
    by = {"field": "name", "type": "nominal", "sort": list(names), "header": header}
    return {
        **{key: value for key, value in shared.items() if key not in ("layer", "width", "height")},
        "facet": {"row": by},
        "spec": {"width": WIDTH - _AXIS, "height": height, "layer": list(layers)},
        "spacing": 8,
    }


def coloured(look: Style) -> Json:
    """Return the encoding of a subject by its colour."""
    found = [look.marks[name].colour for name in look.names]
    return _named(look, found)


def shaped(look: Style) -> Json:
    """Return the encoding of a subject by its shape."""
    found = [look.marks[name].shape for name in look.names]
    return _named(look, found)


def _named(look: Style, found: list[str]) -> Json:
    scale = {"domain": list(look.names), "range": found}
    # In all layers of a chart: one without a legend leaves it without. Bands are pale, their key is not.
    legend: Json | None = {"symbolOpacity": 1} if look.legend else None
    if legend and any(len(name) > _IN_TWO_COLUMNS for name in look.names):
        legend |= {"columns": 1, "labelLimit": WIDTH}
    return {"field": "name", "type": "nominal", "scale": scale, "legend": legend}


def quantity(name: str, title: str | None = None, *, zero: bool = False, **more: object) -> Json:
    """Return the encoding of a number by its place on an axis."""
    scale = {"zero": zero, "nice": True}
    return {"field": name, "type": "quantitative", "title": title, "scale": scale, **more}


def axis(**more: object) -> Json:
    """Return an axis of few ticks."""
    return {"tickCount": 5, **more}


def by_ratio(low: float, high: float, steps: Sequence[int] = (1, 2, 5)) -> Json:
    """Return an axis by ratio from ``low`` to ``high``, above 0, with few round numbers.

    >>> by_ratio(0.3, 40)["values"]
    [0.5, 1.0, 2.0, 5.0, 10.0, 20.0]
    """
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    within = [float(f"{step}e{k}") for k in decades for step in steps]
    values = [value for value in within if low <= value <= high]
    if len(values) > _MOST_TICKS and len(steps) > 1:
        return by_ratio(low, high, (1,))
    # Thousands as `10k`, as on the axis of loads; below 1 that would be thousandths, as `500m`.
    form = "~s" if low >= 1 and high >= _THOUSANDS else "~r"
    return axis(values=values, format=form) if len(values) > 1 else axis(format=form)


def by_size(name: str, title: str | None, values: Sequence[float], *, zero: bool = False) -> Json:
    """Return the encoding of a number whose ``values`` are known: by ratio where these span decades, which
    would hide the lesser ones.
    """
    low, high = min(values), max(values)
    if low > 0 and high > _DECADES * low:
        return quantity(name, title, axis=by_ratio(low, high)) | {"scale": RATIO | {"padding": ROOM}}
    return quantity(name, title, zero=zero, axis=axis())


def layer(
    mark: str, encoding: Json, when: str = "", rows: Sequence[Json] | None = None, **look: object
) -> Json:
    """Return a layer: a mark and its ``look``, of the rows for which ``when`` holds, an expression or a field
    that they have. ``rows``: its own, in place of the chart's.
    """
    found: Json = {} if rows is None else {"data": {"values": list(rows)}}
    if when:
        found["transform"] = [{"filter": f"isValid(datum.{when})" if when.isidentifier() else when}]
    return {**found, "mark": {"type": mark, **look}, "encoding": encoding}


def dot(encoding: Json, size: int, when: str = "", **look: Any) -> Json:
    """Return a layer of filled marks."""
    return layer("point", encoding, when, filled=True, size=size, **({"opacity": 1} | look))


def words_at(x: int, y: Json, name: str, most: int, when: str = "", **look: Any) -> Json:
    """Return a layer of text, the field of this name from the left edge, else up to ``x``, in ``most``
    pixels.
    """
    place = {"x": {"value": x}, "y": y, "text": {"field": name}}
    return layer("text", place, when, align="right" if x else "left", baseline="middle", limit=most, **look)


def stacked(rows: Sequence[Json], by: str, title: str, shade: Json, said: list[Json]) -> Json:
    """Return a specification of bars that are named by a field, ``by``, with a part for each row."""
    names = list(dict.fromkeys(row[by] for row in rows))
    y = {"field": by, "type": "nominal", "sort": names, "axis": None}
    label = words_at(0, {**y, "bandPosition": 0.2}, by, WIDTH)
    x = quantity("value", title, zero=True, axis=axis(), stack="zero")
    bar = layer("bar", {"x": x, "y": y, "color": shade, "tooltip": said}, height=12, yOffset=6)
    once = {"transform": [{"aggregate": [], "groupby": [by]}]}
    return spec(rows, [once | label, bar], height={"step": ROW})


def tooltip(**titles: str) -> list[Json]:
    """Return what is said of a point: field to title, as text."""
    return [{"field": name, "type": "nominal", "title": title} for name, title in titles.items()]
