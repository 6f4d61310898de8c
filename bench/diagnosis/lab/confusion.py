"""The confusion matrix of planted causes, as a chart: rows what was planted, columns what was named."""

from collections.abc import Iterator

from lab.matrix import HEALTHY, Matrix
from prony.model.json_codec import Json
from prony.report.page.chart import FONT, INK, PAPER, QUIET

_CELL = 20
_RIGHT, _WRONG, _NOTHING = "#1a7f37", "#cf222e", "#9a6700"


def confusion(found: Matrix) -> Json:
    """Return the specification: the darker, the greater the share of a row; right, wrong and unnamed
    apart.
    """
    rows = list(_rows(found))
    planted = [one.cause.name for one in found.rows] + [HEALTHY]
    named = [name for name in planted if any(row["named"] == name for row in rows)]
    named += sorted({row["named"] for row in rows} - set(named))
    labels = {"labelColor": INK, "titleColor": QUIET, "labelLimit": 200, "domain": False, "ticks": False}
    place = {
        "x": {
            "field": "named",
            "type": "nominal",
            "sort": named,
            "title": "named first",
            "axis": {**labels, "labelAngle": -50, "orient": "top"},
        },
        "y": {"field": "planted", "type": "nominal", "sort": planted, "title": "planted", "axis": labels},
    }
    colours = {"domain": ["right", "another cause", "nothing"], "range": [_RIGHT, _WRONG, _NOTHING]}
    return {
        "width": {"step": _CELL},
        "height": {"step": _CELL},
        "background": PAPER,
        "padding": 6,
        "config": {"font": FONT, "view": {"stroke": "#d0d7de"}},
        "data": {"values": rows},
        "layer": [
            {
                "mark": {"type": "rect", "cornerRadius": 2},
                "encoding": {
                    **place,
                    "color": {
                        "field": "kind",
                        "type": "nominal",
                        "scale": colours,
                        "legend": {"orient": "bottom", "title": None},
                    },
                    "opacity": {
                        "field": "share",
                        "type": "quantitative",
                        "scale": {"domain": [0, 1], "range": [0.15, 0.9]},
                        "legend": None,
                    },
                },
            },
            {
                "mark": {"type": "text", "fontSize": 9, "color": INK},
                "encoding": {**place, "text": {"field": "count", "type": "quantitative"}},
            },
        ],
    }


def _rows(found: Matrix) -> Iterator[Json]:
    for one in found.rows:
        for name, count in one.named.items():
            kind = "right" if name == one.cause.name else "nothing" if name == HEALTHY else "another cause"
            share = count / max(one.recall.total, 1)
            yield {"planted": one.cause.name, "named": name, "count": count, "share": share, "kind": kind}
    total = sum(found.healthy.values())
    for name, count in found.healthy.items():
        kind = "right" if name == HEALTHY else "another cause"
        yield {"planted": HEALTHY, "named": name, "count": count, "share": count / total, "kind": kind}
