"""One metric as lines of subjects: over the loads of a family, with the published figures of the original;
against a setting, with a line for each level of the other settings; over archives or sessions, with ratios to
the first. A band, or a rule, is the interval.
"""

from collections.abc import Callable, Iterator, Sequence

from prony.core.metrics import METRICS
from prony.core.units import Scale
from prony.figures.across_sessions import OverRatio
from prony.figures.statistics.compare import LEAST_BLOCKS
from prony.figures.summary import means
from prony.model.json_codec import Json
from prony.model.workload import ClosedLoop
from prony.reading.across import Across, LoadOver, Side, SideKind
from prony.reading.groups import Group, load_size
from prony.reading.sweeps import Factor, Member, Sweep
from prony.report.forms import day, estimate, metric_scale, signed_percent
from prony.report.page.chart import (
    RATIO,
    ROOM,
    ZOOM,
    Chapter,
    Chart,
    Style,
    axis,
    by_size,
    coloured,
    dot,
    layer,
    palette,
    quantity,
    shaped,
    slug,
    spec,
    tooltip,
)
from prony.report.page.charts.dots import is_flat
from prony.report.page.charts.ratios import forest, places, ratio_axis
from prony.report.page.scene import Scene, titled
from prony.report.sections.grid import over_words
from prony.report.text import pointer, text
from prony.report.words import load_words, workload_words

# From here on loads, or levels of a setting, are spread over a scale by ratio.
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
    if _are_wide(loads):
        ticks = axis(values=loads, grid=False, format="~s")
        return quantity("load", over, axis=ticks) | {"scale": RATIO | scale}
    return quantity("load", over, axis=axis(grid=False)) | {"scale": scale}


def _are_wide(sizes: Sequence[float]) -> bool:
    return sizes[0] > 0 and sizes[-1] >= _WIDE * sizes[0]


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


# --- against a setting ------------------------------------------------------------------------------------


_CLOSED = ("ok_per_s", "service_ok_p50", "service_ok_p99", "cpu_ns_per_request", "pss_end")
_OPEN = ("response_ok_p50", "response_ok_p99", "cpu_ns_per_request", "pss_end")


def setting_charts(scene: Scene, place: int, sweep: Sweep) -> Iterator[Chart]:
    """Yield a chart for each metric of a sweep, which is the results' at ``place``, that changes in it."""
    group = scene.reading.groups[sweep.group]
    across = _factor_across(sweep)
    for metric in _CLOSED if isinstance(group.workload.loop, ClosedLoop) else _OPEN:
        rows = list(_setting_rows(scene, sweep, across, metric))
        if len({row["value"] for row in rows if "value" in row}) < 2:
            continue
        factor = sweep.factors[across]
        yield Chart(
            slug(metric, "settings", str(place)),
            titled(metric),
            f"Against {factor.title}: the mean{scene.spread}; small dots are single trials.",
            spec(
                rows, _setting_layers(factor, Style(palette(row["line"] for row in rows), legend=True), rows)
            ),
        )


def _factor_across(sweep: Sweep) -> int:
    """Return which setting the axis is: the first whose levels are numbers, else the first."""
    return next((k for k, factor in enumerate(sweep.factors) if factor.is_number), 0)


def _setting_rows(scene: Scene, sweep: Sweep, across: int, metric: str) -> Iterator[Json]:
    cells = scene.reading.groups[sweep.group].cells
    scale = scene.scale(metric, [cells[point.cell] for point in sweep.points])
    for point in sweep.points:
        own = _own(sweep, across, point)
        row = scene.row(cells[point.cell], metric, scale)
        if row is not None:
            yield {**row, **own, "unit": scale.unit}
            yield from ({**trial, **own} for trial in scene.trial_rows(cells[point.cell], metric, scale))


def _own(sweep: Sweep, across: int, point: Member) -> Json:
    """Return the level on the axis, and the line that a point is of: the levels of the other settings."""
    level = sweep.factors[across].levels[point.at[across]]
    others = [
        f"{factor.title}={found.shown}"
        for k, (factor, found) in enumerate(zip(sweep.factors, sweep.levels(point.name), strict=True))
        if k != across
    ]
    shown: float | str = level.shown
    if sweep.factors[across].is_number and level.number is not None:
        shown = level.number
    return {"level": shown, "line": " ".join(others) or sweep.name}


def _axis(factor: Factor, rows: Sequence[Json]) -> Json:
    """Return the axis of a setting: the levels that were measured are its ticks."""
    levels = sorted({row["level"] for row in rows}) if factor.is_number else []
    if not levels:
        names = [level.shown for level in factor.levels]
        return {"field": "level", "type": "ordinal", "sort": names, "title": factor.title}
    scale = (RATIO if _are_wide(levels) else {"zero": False, "nice": False}) | {"padding": ROOM}
    ticks = axis(values=levels, grid=False, format="~s")
    return quantity("level", factor.title, axis=ticks) | {"scale": scale}


def _setting_layers(factor: Factor, look: Style, rows: Sequence[Json]) -> list[Json]:
    unit, by_line = next(row["unit"] for row in rows if "unit" in row), {"field": "line"}

    def y(name: str) -> Json:
        return quantity(name, unit or None, zero=True, axis=axis())

    return mean_layers(_axis(factor, rows), y, (coloured(look) | by_line, shaped(look) | by_line))


# --- over archives or sessions ----------------------------------------------------------------------------


_LEANING = -30


def over_chapters(found: Across, look: Style, at: str) -> Iterator[Chapter]:
    """Yield for each load its ratios, if there are any, and its metrics. ``at``: where the JSON has them."""
    for k, load in enumerate(found.loads):
        own = at + pointer("loads", k)
        charts = [_ratios(look, found, load, own)]
        charts += [_metric(look, found, load, metric, own) for metric in load.metrics]
        words = workload_words(load.group.workload, own + pointer("load"))
        title = text("{}: over the {}s", words, found.kind.value)
        yield Chapter(f"{found.kind}s-{k}", title, tuple(chart for chart in charts if chart is not None))


def _label(found: Across, side: Side) -> str:
    return side.archive if found.kind is SideKind.ARCHIVE else f"session {side.number}"


def _metric(look: Style, found: Across, one: LoadOver, metric: str, at: str) -> Chart | None:
    """Return a metric of the same cells over archives or sessions; None where only one has it, or nothing
    changes.
    """
    rows = list(_edition_rows(found, one, metric, at + pointer("metrics", metric)))
    if len({row["edition"] for row in rows}) < 2 or is_flat([row["value"] for row in rows]):
        return None
    return Chart(
        _key(metric, found, one, at),
        titled(metric),
        f"The mean of each subject in each {found.kind}, the oldest first, with its 95 % interval.",
        spec(rows, _lines(look, found, rows[0]["unit"])),
    )


def _key(what: str, found: Across, one: LoadOver, at: str) -> str:
    """Return a chart's key; the last part of ``at`` makes it unique: loads may differ in more than words."""
    words = str(load_words(one.group.workload, at))
    return slug(what, "over", f"{found.kind}s", words, at.rpartition("/")[2])


def _edition_rows(over: Across, one: LoadOver, metric: str, at: str) -> Iterator[Json]:
    figures = one.figures(metric)
    scale = metric_scale(metric, [value for row in figures.values() for value in means(row)])
    for name, row in figures.items():
        for k, (side, value) in enumerate(zip(over.sides, row, strict=True)):
            if value is None:
                continue
            said = f"{estimate(value, scale, '')} {scale.unit}".strip()
            found: Json = {"name": name, "edition": _label(over, side), "value": value.mean / scale.size}
            found |= {"said": said, "n": value.count, "unit": scale.unit, "day": day(side.started_unix_ns)}
            found |= {"version": side.versions.get(name) or "not known"}
            if value.low is not None and value.high is not None:
                found |= {"low": max(value.low, 0.0) / scale.size, "high": value.high / scale.size}
            yield found | {"at": at + pointer(name, k), "scale": scale.size}


def _lines(look: Style, found: Across, unit: str) -> list[Json]:
    editions = [_label(found, side) for side in found.sides]
    labels = {"labelAngle": _LEANING if len(editions) > 3 else 0, "labelLimit": 110, "grid": False}
    x = {"field": "edition", "type": "ordinal", "sort": editions, "title": None, "axis": labels}
    y = quantity("value", unit or None, zero=True, axis=axis())
    place = {"x": x, "y": y, "color": coloured(look)}
    titles = {"edition": found.kind.value, "day": "measured on", "version": "version"}
    said = {"tooltip": tooltip(name="subject", **titles, said="mean", n="trials")}
    ends = {"y": y | {"field": "low"}, "y2": {"field": "high"}}
    return [
        layer("rule", place | ends, "low", strokeWidth=2, opacity=0.4),
        layer("line", place, strokeWidth=1.6),
        dot(place | said | {"shape": shaped(look)}, 44),
    ]


# --- ratios over sessions -----------------------------------------------------------------------------------


def _ratios(look: Style, over: Across, one: LoadOver, at: str) -> Chart | None:
    """Return the ratios of the others to the first over sessions; None where there are none."""
    rows = [
        row
        for k, found in enumerate(one.rows)
        if found.ratio is not None
        for row in _ratio_rows(found.name, found.ratio, over, at + pointer("rows", k, "ratio"))
    ]
    if not rows:
        return None
    said = tooltip(name="subject", said="over the sessions", verdict="verdict")
    first, few = one.rows[0].name, len(over.sides) < LEAST_BLOCKS
    line = "their range, which is no interval" if few else "the 95 % interval over them"
    return Chart(
        _key("ratios", over, one, at),
        f"To {first}, over the sessions",
        f"Ratio in {METRICS[one.metric].title}: the mean over the sessions; small dots are single sessions, "
        f"the line is {line}. Within the grey band a difference is of no interest.",
        forest(look, rows, one.bar, said, (_single(look, rows),)),
    )


def _ratio_rows(name: str, found: OverRatio, sides: Across, at: str) -> Iterator[Json]:
    over, effect = found.over, found.over.effect or 0.0
    has_interval = over.low is not None and over.high is not None
    low, high = (over.low, over.high) if has_interval else (over.least, over.most)
    ends = (float(low or 0.0), float(high or 0.0))
    said = f"{signed_percent(effect)} ({signed_percent(ends[0])} to {signed_percent(ends[1])})"
    yield {
        **{"name": name, "value": effect, "said": said, "verdict": over.verdict.value, "at": at},
        **{"ratio": 1 + effect, "ratio_low": 1 + ends[0], "ratio_high": 1 + ends[1]},
    }
    for k, (single, side) in enumerate(zip(found.effects, sides.sides, strict=True)):
        if single is not None:
            own = {"value": single, "said": signed_percent(single), "single": 1 + single}
            yield {"name": name, "session": _label(sides, side), "at": at + pointer("effects", k)} | own


def _single(look: Style, rows: list[Json]) -> Json:
    lower = places(dict.fromkeys(row["name"] for row in rows)).marks
    place = {"x": ratio_axis(rows)("single"), "y": lower, "color": coloured(look) | {"legend": None}}
    said = {"tooltip": tooltip(name="subject", session="session", said="difference")}
    return layer("circle", place | said, "single", size=22, opacity=0.6, clip=True)
