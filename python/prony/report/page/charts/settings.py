"""One metric against a setting: a line for each level of the other settings, a band for its interval."""

from collections.abc import Iterator, Sequence

from prony.model.json_codec import Json
from prony.model.workload import ClosedLoop
from prony.reading.sweeps import Factor, Member, Sweep
from prony.report.page.chart import (
    RATIO,
    ROOM,
    Chart,
    Style,
    axis,
    coloured,
    palette,
    quantity,
    shaped,
    slug,
    spec,
)
from prony.report.page.charts.curves import mean_layers
from prony.report.page.scene import Scene, titled

_CLOSED = ("ok_per_s", "service_ok_p50", "service_ok_p99", "cpu_ns_per_request", "pss_end")
_OPEN = ("response_ok_p50", "response_ok_p99", "cpu_ns_per_request", "pss_end")
# From here on levels are spread over a scale by ratio.
_WIDE = 8


def setting_charts(scene: Scene, place: int, sweep: Sweep) -> Iterator[Chart]:
    """Yield a chart for each metric of a sweep, which is the results' at ``place``, that changes in it."""
    group = scene.reading.groups[sweep.group]
    across = _across(sweep)
    for metric in _CLOSED if isinstance(group.workload.loop, ClosedLoop) else _OPEN:
        rows = list(_rows(scene, sweep, across, metric))
        if len({row["value"] for row in rows if "value" in row}) < 2:
            continue
        factor = sweep.factors[across]
        yield Chart(
            slug(metric, "settings", str(place)),
            titled(metric),
            f"Against {factor.title}: the mean{scene.spread}; small dots are single trials.",
            spec(rows, _layers(factor, Style(palette(row["line"] for row in rows), legend=True), rows)),
        )


def _across(sweep: Sweep) -> int:
    """Return which setting the axis is: the first whose levels are numbers, else the first."""
    return next((k for k, factor in enumerate(sweep.factors) if factor.is_number), 0)


def _rows(scene: Scene, sweep: Sweep, across: int, metric: str) -> Iterator[Json]:
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
    is_wide = levels[0] > 0 and levels[-1] >= _WIDE * levels[0]
    scale = (RATIO if is_wide else {"zero": False, "nice": False}) | {"padding": ROOM}
    ticks = axis(values=levels, grid=False, format="~s")
    return quantity("level", factor.title, axis=ticks) | {"scale": scale}


def _layers(factor: Factor, look: Style, rows: Sequence[Json]) -> list[Json]:
    unit, by_line = next(row["unit"] for row in rows if "unit" in row), {"field": "line"}

    def y(name: str) -> Json:
        return quantity(name, unit or None, zero=True, axis=axis())

    return mean_layers(_axis(factor, rows), y, (coloured(look) | by_line, shaped(look) | by_line))
