"""How requests failed: a bar for each subject, a part for each kind."""

from collections.abc import Iterator, Sequence

from prony.figures.summary import CellSummary
from prony.model.json_codec import Json
from prony.reading.failures import FailedRequests, failed_by_class
from prony.reading.groups import Group
from prony.report.forms import percent
from prony.report.page.chart import WIDTH, Chart, slug, stacked, tooltip
from prony.report.page.scene import Scene
from prony.report.text import pointer
from prony.report.words import ending_words

# Kinds are no subjects: these shades are the palette's, but stand for kinds by the key below them.
_SHADES = ("#a40e26", "#b07a00", "#57606a", "#0072b2", "#b35c96", "#00896b", "#7a5a3a", "#2b97d3")
_PERCENT = 0.01


def failures(scene: Scene, groups: Sequence[Group]) -> Chart | None:
    """Return the share of failed requests by kind under the loads of ``groups``; None where none failed."""
    rows = [row for group in groups for cell in group.cells for row in _rows(scene, group, cell)]
    if not rows:
        return None
    said = tooltip(name="subject", said="failed", n="requests")
    under = scene.load(groups[0]) if len(groups) == 1 else "all"
    return Chart(
        slug("failures", under or "all", str(scene.reading.place(groups[0]))),
        "Requests that failed, by kind",
        "Of all requests, over the trials that count; subjects without failed requests are left out.",
        stacked(rows, "label", "% of all requests", _shade(rows), said),
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


def _shade(rows: list[Json]) -> Json:
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    shades = [_SHADES[k % len(_SHADES)] for k in range(len(kinds))]
    scale = {"domain": kinds, "range": shades}
    return {"field": "kind", "type": "nominal", "scale": scale, "legend": {"columns": 1, "labelLimit": WIDTH}}
