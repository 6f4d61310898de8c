"""The same cells over archives or sessions: each metric, and ratios to the first with their spread."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from prony.core.metrics import METRICS
from prony.figures.across_sessions import OverRatio
from prony.figures.statistics.compare import LEAST_BLOCKS
from prony.model.json_codec import Json
from prony.reading.across import LoadOver, SameLoad, known
from prony.report.forms import estimate, metric_scale, signed_percent
from prony.report.page.chart import (
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
from prony.report.text import pointer
from prony.report.words import load_words

_LEANING = -30


@dataclass(frozen=True, slots=True)
class Step:
    """A place on the axis of archives or sessions: its label, its day, and the version of a subject in it."""

    label: str
    day: str
    version: Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class Editions:
    """What an axis goes over, the oldest first. ``kind``: what one of them is called."""

    kind: str
    steps: tuple[Step, ...]


def over_editions(look: Style, axis_of: Editions, one: SameLoad, metric: str, at: str) -> Chart | None:
    """Return a metric of the same cells over archives or sessions; None where only one has it, or nothing
    changes. ``at``: where the JSON has the load.
    """
    steps = axis_of.steps
    rows = list(_rows(steps, one, metric, at + pointer("metrics", metric)))
    if len({row["edition"] for row in rows}) < 2 or is_flat([row["value"] for row in rows]):
        return None
    return Chart(
        _key(metric, axis_of, one, at),
        titled(metric),
        f"The mean of each subject in each {axis_of.kind}, the oldest first, with its 95 % interval.",
        spec(rows, _lines(look, axis_of, rows[0]["unit"])),
    )


def _key(what: str, axis_of: Editions, one: SameLoad, at: str) -> str:
    """Return a chart's key; the last part of ``at`` makes it unique: loads may differ in more than words."""
    return slug(what, "over", f"{axis_of.kind}s", str(load_words(one.workload, at)), at.rpartition("/")[2])


def _rows(steps: Sequence[Step], one: SameLoad, metric: str, at: str) -> Iterator[Json]:
    scale = metric_scale(metric, [value for row in one.cells.values() for value in known(row, metric)])
    for name, row in one.figures(metric).items():
        for k, (step, value) in enumerate(zip(steps, row, strict=True)):
            if value is None:
                continue
            said = f"{estimate(value, scale, '')} {scale.unit}".strip()
            found: Json = {"name": name, "edition": step.label, "value": value.mean / scale.size}
            found |= {"said": said, "n": value.count, "unit": scale.unit, "day": step.day}
            found |= {"version": step.version(name) or "not known"}
            if value.low is not None and value.high is not None:
                found |= {"low": max(value.low, 0.0) / scale.size, "high": value.high / scale.size}
            yield found | {"at": at + pointer(name, k), "scale": scale.size}


def _lines(look: Style, axis_of: Editions, unit: str) -> list[Json]:
    editions = [step.label for step in axis_of.steps]
    labels = {"labelAngle": _LEANING if len(editions) > 3 else 0, "labelLimit": 110, "grid": False}
    x = {"field": "edition", "type": "ordinal", "sort": editions, "title": None, "axis": labels}
    y = quantity("value", unit or None, zero=True, axis=axis())
    place = {"x": x, "y": y, "color": coloured(look)}
    titles = {"edition": axis_of.kind, "day": "measured on", "version": "version"}
    said = {"tooltip": tooltip(name="subject", **titles, said="mean", n="trials")}
    ends = {"y": y | {"field": "low"}, "y2": {"field": "high"}}
    return [
        layer("rule", place | ends, "low", strokeWidth=2, opacity=0.4),
        layer("line", place, strokeWidth=1.6),
        dot(place | said | {"shape": shaped(look)}, 44),
    ]


# --- ratios over sessions -----------------------------------------------------------------------------------


def session_ratios(look: Style, axis_of: Editions, one: LoadOver, same: SameLoad, at: str) -> Chart | None:
    """Return the ratios of the others to the first over sessions; None where there are none.

    ``same``: the load that ``one`` is over; ``at``: where the JSON has it.
    """
    steps = axis_of.steps
    rows = [
        row
        for k, found in enumerate(one.rows)
        if found.ratio is not None
        for row in _ratio_rows(found.name, found.ratio, steps, at + pointer("rows", k, "ratio"))
    ]
    if not rows:
        return None
    said = tooltip(name="subject", said="over the sessions", verdict="verdict")
    first, few = one.rows[0].name, len(steps) < LEAST_BLOCKS
    line = "their range, which is no interval" if few else "the 95 % interval over them"
    return Chart(
        _key("ratios", axis_of, same, at),
        f"To {first}, over the sessions",
        f"Ratio in {METRICS[one.metric].title}: the mean over the sessions; small dots are single sessions, "
        f"the line is {line}. Within the grey band a difference is of no interest.",
        forest(look, rows, one.bar, said, (_single(look, rows),)),
    )


def _ratio_rows(name: str, found: OverRatio, steps: Sequence[Step], at: str) -> Iterator[Json]:
    over, effect = found.over, found.over.effect or 0.0
    has_interval = over.low is not None and over.high is not None
    low, high = (over.low, over.high) if has_interval else (over.least, over.most)
    ends = (float(low or 0.0), float(high or 0.0))
    said = f"{signed_percent(effect)} ({signed_percent(ends[0])} to {signed_percent(ends[1])})"
    yield {
        **{"name": name, "value": effect, "said": said, "verdict": over.verdict.value, "at": at},
        **{"ratio": 1 + effect, "ratio_low": 1 + ends[0], "ratio_high": 1 + ends[1]},
    }
    for k, (single, step) in enumerate(zip(found.effects, steps, strict=True)):
        if single is not None:
            own = {"value": single, "said": signed_percent(single), "single": 1 + single}
            yield {"name": name, "session": step.label, "at": at + pointer("effects", k)} | own


def _single(look: Style, rows: list[Json]) -> Json:
    lower = places(dict.fromkeys(row["name"] for row in rows)).marks
    place = {"x": ratio_axis(rows)("single"), "y": lower, "color": coloured(look) | {"legend": None}}
    said = {"tooltip": tooltip(name="subject", session="session", said="difference")}
    return layer("circle", place | said, "single", size=22, opacity=0.6, clip=True)
