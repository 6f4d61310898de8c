"""The page of a search for settings: the answer, the race as a picture, and what else there is."""

from collections.abc import Iterator

from prony.core.metrics import METRICS
from prony.model.json_codec import Json
from prony.report.forms import byte_size, duration, in_metric, metric_scale, signed_percent
from prony.report.page.chart import (
    EVERY,
    INK,
    Chapter,
    Chart,
    Style,
    axis,
    coloured,
    dot,
    layer,
    palette,
    quantity,
    rows_of,
    shaped,
    slug,
    spec,
    tooltip,
)
from prony.report.page.charts.dots import memory_size
from prony.report.page.setups import page_of_document
from prony.report.text import pointer
from prony.report.tune import answer_document, objective
from prony.tune.reading import RacedSetting, TuneReading

_PERCENT = 0.01
# The first paragraph and its command, and what both carry.
_FIRST = 2


def page_of_tune(found: TuneReading) -> str:
    """Return the page of a search."""
    look = Style(palette(one.setting for one in found.searched))
    charts = tuple(chart for chart in (_race(found, look), _tradeoff(found, look)) if chart is not None)
    return page_of_document(answer_document(found), _FIRST, look, Chapter("pictures", "The search", charts))


# --- the race ---------------------------------------------------------------------------------------------


def _race(found: TuneReading, look: Style) -> Chart | None:
    """Return candidates against blocks, with bounds, and after which stage each was left."""
    rows = [row for k, one in enumerate(found.searched) for row in _race_rows(found, k, one)]
    if len(rows) < 2:
        return None
    said = tooltip(name="setting", said="against the incumbent", stage="stage", block="block")
    # The same place for all, so that settings stand below each other.
    ends = [row[key] for row in rows for key in ("change", "low", "high") if key in row]
    scale = {"scale": {"domain": [min(ends), max(ends)], "nice": True}}
    x = quantity("change", f"% {objective(found.metric)} against {found.incumbent}", axis=axis()) | scale
    setting = {"x": x, "color": coloured(look), "tooltip": said}
    bounds = setting | {"x": x | {"field": "low"}, "x2": {"field": "high"}}
    left = {"x": {"value": "width"}, "y": {"value": 0}, "text": {"field": "left"}}
    single = "!isValid(datum.low) && isValid(datum.change)"
    layers = [
        layer("rule", bounds, "low", strokeWidth=3, opacity=0.5),
        dot(setting | {"shape": shaped(look)}, 30, single, opacity=0.8),
        layer("text", left, "left", align="right", baseline="bottom", color=INK),
    ]
    return Chart(
        slug("race", EVERY),
        "The race",
        "Each setting against the incumbent: a point is a trial against the incumbent's in its block, the "
        "bar the bounds that hold for all pairs of settings together. A setting is dropped when another is "
        "better beyond them, or when it breaks a condition.",
        rows_of(rows, look.names, layers, 26),
    )


def _race_rows(found: TuneReading, k: int, one: RacedSetting) -> Iterator[Json]:
    at = pointer("searched", k)
    for place, trial in enumerate(one.trials):
        if trial.change is not None:
            yield {
                **{
                    "name": one.setting,
                    "change": trial.change / _PERCENT,
                    "said": signed_percent(trial.change),
                },
                **{"stage": _stage(found, trial.stage), "block": trial.block + 1},
                **{"at": at + pointer("trials", place, "change"), "scale": _PERCENT},
            }
    change = one.change
    if change is not None and change.low is not None and change.high is not None:
        yield {
            **{"name": one.setting, "change": change.value / _PERCENT, "low": change.low / _PERCENT},
            **{"high": change.high / _PERCENT, "stage": "all", "block": "all"},
            "said": " to ".join(signed_percent(end) for end in change.ends),
            **{"at": at + pointer("change"), "scale": _PERCENT},
        }
    if one.beaten_after is not None:
        yield {"name": one.setting, "left": f"dropped after {_stage(found, one.beaten_after)}"}


def _stage(found: TuneReading, place: int) -> str:
    name = found.stages[place].name.value if place < len(found.stages) else "stage"
    return f"{place + 1} ({name})"


# --- what it gives and costs ------------------------------------------------------------------------------


def _tradeoff(found: TuneReading, look: Style) -> Chart | None:
    """Return rate, latency and memory of all settings; those that no other beats are filled."""
    known = [
        (k, one, (one.rate, one.latency, one.memory))
        for k, one in enumerate(found.searched)
        if one.rate is not None and one.latency is not None and one.memory is not None
    ]
    if len(known) < 2:
        return None
    scale = metric_scale(found.latency_metric, [one.latency or 0.0 for _, one, _ in known])
    rows: list[Json] = []
    for k, one, (rate, latency, memory) in known:
        at = pointer("searched", k)
        rows.append(
            {
                **{"name": one.setting, "rate": rate, "rate_at": at + pointer("rate"), "rate_scale": 1},
                **{"latency": (latency or 0.0) / scale.size, "latency_at": at + pointer("latency")},
                **{"latency_scale": scale.size, "memory": memory, "memory_at": at + pointer("memory")},
                **{"memory_scale": 1, "front": one.on_front, "said_rate": in_metric("ok_per_s")(rate or 0.0)},
                **{"said_latency": duration(latency or 0.0), "said_memory": byte_size(memory or 0.0)},
            }
        )
    title = METRICS[found.latency_metric].title
    said = tooltip(name="setting", said_rate="requests/s", said_latency=title, said_memory="memory")
    encoding = {
        "x": quantity("rate", "requests/s", axis=axis()),
        "y": quantity("latency", f"{title}, {scale.unit}", axis=axis()),
        "color": coloured(look),
        "shape": shaped(look),
        "size": memory_size("memory"),
        "tooltip": said,
    }
    layers = [
        layer("point", encoding, f"{sign}datum.front", filled=is_filled, opacity=0.9)
        for sign, is_filled in (("", True), ("!", False))
    ]
    return Chart(
        slug("tradeoff", EVERY),
        "What each gives and what it costs",
        "As the search saw it: a larger mark needs more memory, a filled one is beaten by no other in rate, "
        "latency and memory together. Best is to the right and down.",
        spec(rows, layers),
    )
