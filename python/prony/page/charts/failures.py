"""How requests failed: a bar for each subject, a part for each kind."""

from collections.abc import Iterator, Sequence

from prony.analysis.summary import CellSummary
from prony.model.shapes import Json
from prony.page.chart import WIDTH, Chart, axis, quantity, slug, spec, tooltip
from prony.page.scene import Scene, words_at
from prony.reading.failures import FailedRequests, failed_by_class
from prony.reading.groups import Group
from prony.report.forms import percent
from prony.report.text import pointer
from prony.report.words import ending_words

_ROW = 42
# Kinds are no subjects: these shades are the palette's, but stand for kinds by the key below them.
_SHADES = ("#a40e26", "#b07a00", "#57606a", "#0072b2", "#b35c96", "#00896b", "#7a5a3a", "#2b97d3")
_PERCENT = 0.01


def failures(scene: Scene, groups: Sequence[Group]) -> Chart | None:
    """Return the share of failed requests by kind under the loads of ``groups``; null where none failed."""
    rows = [row for group in groups for cell in group.cells for row in _rows(scene, group, cell)]
    if not rows:
        return None
    under = scene.load(groups[0]) if len(groups) == 1 else "all"
    return Chart(
        slug("failures", under or "all", str(scene.reading.place(groups[0]))),
        "Requests that failed, by kind",
        "Of all requests, over the trials that count; subjects without failed requests are left out.",
        spec(rows, _layers(rows), height={"step": _ROW}),
    )


def _rows(scene: Scene, group: Group, cell: CellSummary) -> Iterator[Json]:
    label = ", ".join(part for part in (cell.name, scene.load(group)) if part)
    for k, found in enumerate(failed_by_class(cell)):
        at = scene.places[cell.cell.id] + pointer("failed_requests", k, "share")
        yield {
            **{"name": cell.name, "label": label, "kind": _kind(found), "value": found.share / _PERCENT},
            **{"said": f"{_kind(found)}: {percent(found.share)}", "n": found.requests},
            **{"at": at, "scale": _PERCENT},
        }


def _kind(found: FailedRequests) -> str:
    return ending_words(found.endings[0]) if len(found.endings) == 1 else "other kinds"


def _layers(rows: list[Json]) -> list[Json]:
    kinds, labels = (list(dict.fromkeys(row[name] for row in rows)) for name in ("kind", "label"))
    y = {"field": "label", "type": "nominal", "sort": labels, "axis": None}
    shades = [_SHADES[k % len(_SHADES)] for k in range(len(kinds))]
    shade: Json = {
        **{"field": "kind", "type": "nominal", "scale": {"domain": kinds, "range": shades}},
        "legend": {"columns": 1, "labelLimit": WIDTH},
    }
    return [
        {
            "transform": [{"aggregate": [], "groupby": ["label", "name"]}],
            **words_at(0, {**y, "bandPosition": 0.2}, "label", WIDTH),
        },
        {
            "mark": {"type": "bar", "height": 12, "yOffset": 6},
            "encoding": {
                "x": quantity("value", "% of all requests", zero=True, axis=axis(), stack="zero"),
                **{"y": y, "color": shade},
                "tooltip": tooltip(name="subject", said="failed", n="requests"),
            },
        },
    ]
