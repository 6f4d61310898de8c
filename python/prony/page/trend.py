"""The page of several archives: each metric of the same cells over versions or days."""

from collections.abc import Iterator

from prony.analysis.summary import Estimate
from prony.model import ClosedLoop, Json
from prony.page.chart import Chart, Style, axis, coloured, quantity, shaped, slug, spec, tooltip
from prony.page.charts import Chapter
from prony.page.charts.dots import is_flat
from prony.page.figure import chapter_html, key_html
from prony.page.markup import safe, section_html
from prony.page.palette import palette
from prony.page.scene import titled
from prony.page.setups import terms_html
from prony.page.shell import page
from prony.reading.trend import SameLoad, Trend, known
from prony.report.forms import day, estimate
from prony.report.scales import metric_scale
from prony.report.text import pointer
from prony.report.trend import trend_document
from prony.report.words import workload_words

__all__ = ["page_of_trend"]

_BESIDE = ("ok_per_s", "error_ratio", "cpu_ns_per_request", "pss_end")
_LEANING = -30


def page_of_trend(trend: Trend) -> str:
    """Return the page of several archives."""
    look = Style(palette(name for one in trend.loads for name in one.cells))
    found = [_chapter(trend, look, place) for place in range(len(trend.loads))]
    shown = [chapter for chapter in found if chapter.charts]
    document = trend_document(trend)
    title = str(document.title)
    first, *others = document.sections
    body = "\n".join(
        (
            '<a class="skip" href="#answer">To the archives</a>',
            f"<header><h1>{safe(title)}</h1></header>\n<main>",
            f'<section id="answer" class="answer">{section_html(first)}</section>',
            key_html(look),
            *map(chapter_html, shown),
            *(f"<section>{section_html(section)}</section>" for section in others),
            '<section id="terms"><h2>Terms</h2><!--terms--></section>\n</main>',
            "<footer>Made by Prony. This file is whole: it asks nothing of any network.</footer>",
        )
    )
    charts = [chart for chapter in shown for chart in chapter.charts]
    return page(title, body.replace("<!--terms-->", terms_html(body)), charts)


def _chapter(trend: Trend, look: Style, place: int) -> Chapter:
    one = trend.loads[place]
    words = workload_words(one.workload, pointer("loads", place, "load"))
    tail = "service_ok_p99" if isinstance(one.workload.loop, ClosedLoop) else "response_ok_p99"
    metrics = dict.fromkeys((one.metric, tail, *_BESIDE))
    charts = (_chart(trend, look, place, metric) for metric in metrics)
    return Chapter(f"load-{place}", words, tuple(chart for chart in charts if chart is not None))


def _chart(trend: Trend, look: Style, place: int, metric: str) -> Chart | None:
    one = trend.loads[place]
    rows = list(_rows(trend, one, metric, pointer("loads", place)))
    if len({row["edition"] for row in rows}) < 2 or is_flat([row["value"] for row in rows]):
        return None
    return Chart(
        slug(metric, "over", str(place)),
        titled(metric),
        "The mean of each subject in each archive, the oldest first, with its 95 % interval.",
        spec(rows, _layers(look, [edition.name for edition in trend.editions], rows[0]["unit"])),
    )


def _rows(trend: Trend, one: SameLoad, metric: str, at: str) -> Iterator[Json]:
    scale = metric_scale(metric, [value for row in one.cells.values() for value in known(row, metric)])
    for name, row in one.cells.items():
        for k, (edition, cell) in enumerate(zip(trend.editions, row, strict=True)):
            value = cell.metrics[metric] if cell else None
            if not isinstance(value, Estimate):
                continue
            said = f"{estimate(value, scale, '')} {scale.unit}".strip()
            found: Json = {"name": name, "edition": edition.name, "value": value.mean / scale.size}
            found |= {"said": said, "n": value.count, "unit": scale.unit, "day": day(edition.started_unix_ns)}
            found |= {"version": edition.version(name) or "not known"}
            if value.low is not None and value.high is not None:
                found |= {"low": max(value.low, 0.0) / scale.size, "high": value.high / scale.size}
            # The JSON of a trend has the deciding metric alone.
            own = {"at": at + pointer("subjects", name, "figures", k), "scale": scale.size}
            yield found | own if metric == one.metric else found


def _layers(look: Style, editions: list[str], unit: str) -> list[Json]:
    labels = {"labelAngle": _LEANING if len(editions) > 3 else 0, "labelLimit": 110, "grid": False}
    x = {"field": "edition", "type": "ordinal", "sort": editions, "title": None, "axis": labels}
    y = quantity("value", unit or None, zero=True, axis=axis())
    quiet = coloured(look) | {"legend": None}
    said = tooltip(
        name="subject", edition="archive", day="measured on", version="version", said="mean", n="trials"
    )
    return [
        {
            "transform": [{"filter": "isValid(datum.low)"}],
            "mark": {"type": "rule", "strokeWidth": 2, "opacity": 0.4},
            "encoding": {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}, "color": quiet},
        },
        {
            "mark": {"type": "line", "strokeWidth": 1.6},
            "encoding": {"x": x, "y": y, "color": quiet},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 44, "opacity": 1},
            "encoding": {
                **{"x": x, "y": y, "color": coloured(look), "shape": shaped(look)},
                "tooltip": said,
            },
        },
    ]
