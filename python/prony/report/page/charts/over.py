"""The same cells over archives or sessions: each metric, and ratios to the first with their spread."""

from collections.abc import Iterator

from prony.core.metrics import METRICS
from prony.figures.across_sessions import OverRatio
from prony.figures.statistics.compare import LEAST_BLOCKS
from prony.figures.summary import means
from prony.model.json_codec import Json
from prony.reading.across import Across, LoadOver, Side, SideKind
from prony.report.forms import day, estimate, metric_scale, signed_percent
from prony.report.page.chart import (
    Chapter,
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
)
from prony.report.page.charts.dots import is_flat
from prony.report.page.charts.ratios import forest, places, ratio_axis
from prony.report.page.scene import titled
from prony.report.text import pointer, text
from prony.report.words import load_words, workload_words

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
    rows = list(_rows(found, one, metric, at + pointer("metrics", metric)))
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


def _rows(over: Across, one: LoadOver, metric: str, at: str) -> Iterator[Json]:
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
