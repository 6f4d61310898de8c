"""Bars of parts that add up to a whole: CPU and memory of a subject by role, failed requests by kind, the
time of its threads by state; and CPU and memory over the time of a trial.
"""

from collections.abc import Iterator, Sequence

from prony.core.metrics import METRICS
from prony.core.units import MIB, Scale
from prony.diagnosis.time_spent import ThreadState
from prony.figures.summary import CellSummary, Estimate, means
from prony.model.json_codec import Json
from prony.model.observation import Phase
from prony.reading.failures import FailedRequests, failed_by_class
from prony.reading.groups import Group
from prony.report.forms import metric_scale, percent
from prony.report.page.chart import (
    QUIET,
    WIDTH,
    Chart,
    axis,
    layer,
    quantity,
    rows_of,
    slug,
    stacked,
    tooltip,
)
from prony.report.page.charts.dots import ordered
from prony.report.page.scene import Scene, titled
from prony.report.tables import group_at
from prony.report.text import pointer
from prony.report.words import ending_words

_HEIGHT = 56
_UNSEEN = {"cpu_percent": " What several roles may have used between two samples is in the whole alone."}
_SCALES = {"cpu_percent": Scale(1, "%"), "rss_peak": Scale(MIB, "MiB")}
# Roles are few and known by name; their greys and blues say nothing of subjects.
_SHADES = ("#57606a", "#0072b2", "#b07a00", "#00896b", "#b35c96", "#d55e00")


def by_role(scene: Scene, group: Group, metric: str) -> Chart | None:
    """Return stacked bars of a metric by role; None where no subject has several roles."""
    cells = [cell for cell in ordered(group) if cell.roles]
    if not any(len(cell.roles) > 1 for cell in cells):
        return None
    found = [one for cell in cells for one in (roles.get(metric) for roles in cell.roles.values())]
    scale = metric_scale(metric, means(found))
    rows = [row for cell in cells for row in _roles(scene, cell, metric, scale)]
    if not rows:
        return None
    said = tooltip(name="subject", role="role", said="mean")
    return Chart(
        slug(metric, "by role", scene.key(group)),
        f"{titled(metric)}, by role",
        f"Of each role's processes: {METRICS[metric].title}, the mean over the trials."
        f"{_UNSEEN.get(metric, '')}",
        stacked(rows, "name", scale.unit, _shade(rows), said),
    )


def _roles(scene: Scene, cell: CellSummary, metric: str, scale: Scale) -> Iterator[Json]:
    for role, metrics in cell.roles.items():
        value = metrics.get(metric)
        if isinstance(value, Estimate):
            at = scene.places[cell.cell.id] + pointer("roles", role, metric)
            said = f"{value.mean / scale.size:,.4g} {scale.unit}"
            yield {
                **{"name": cell.name, "role": role, "value": value.mean / scale.size, "said": said},
                **{"at": at, "scale": scale.size},
            }


def _shade(rows: list[Json]) -> Json:
    return _key("role", sorted({row["role"] for row in rows}), _SHADES, columns=3, columnPadding=14)


def _key(field: str, names: Sequence[str], shades: Sequence[str], **legend: int) -> Json:
    """Return the encoding of parts by their shade; where they are more than shades, these return."""
    scale = {"domain": list(names), "range": [shades[k % len(shades)] for k in range(len(names))]}
    return {"field": field, "type": "nominal", "scale": scale, "legend": legend}


def _share(name: str, part: str, share: float, at: str) -> Json:
    """Return the row of a part that is a share of its whole."""
    value = {"value": share / _PERCENT, "said": f"{part}: {percent(share)}", "scale": _PERCENT}
    return {"name": name, "at": at} | value


def usage(scene: Scene, group: Group, metric: str) -> Chart | None:
    """Return CPU or memory by role over the time of the trial in the middle, the warm-up shaded."""
    rows = list(_usage(scene, group, metric))
    if not rows:
        return None
    names = list(dict.fromkeys(row["name"] for row in rows))
    unit = rows[0]["unit"]
    ticks = axis(grid=False)
    x = quantity("at_s", "seconds from the opening of the window", axis=ticks) | {"scale": {"nice": False}}
    place = {"x": x, "y": quantity("value", unit, axis={"tickCount": 2})}
    said = {"tooltip": tooltip(name="subject", role="role", phase="part", said="value")}
    layers = [
        *_warmup(rows),
        layer("line", place | {"color": _shade(rows)}, strokeWidth=1.5),
        layer("point", place | said, opacity=0, size=50),
    ]
    what = "CPU" if metric == "cpu_percent" else "resident memory"
    return Chart(
        slug(metric, "over time", scene.key(group)),
        f"Every half second: {what}",
        f"The {what} of each role in the trial in the middle; the warm-up is shaded.",
        rows_of(rows, names, layers, _HEIGHT),
        lazy=True,
    )


def _warmup(rows: list[Json]) -> list[Json]:
    """Return the layer that shades the warm-up: one row of each subject has its beginning."""
    warm = [row for row in rows if row["phase"] == "warm-up"]
    first = {row["name"]: row for row in reversed(warm)}
    for row in first.values():
        row["from"] = min(one["at_s"] for one in warm)
    x = quantity("from", None) | {"scale": {"nice": False}}
    shade = layer("rect", {"x": x, "x2": {"datum": 0}}, "from", color=QUIET, opacity=0.1)
    return [shade] if warm else []


def _usage(scene: Scene, group: Group, metric: str) -> Iterator[Json]:
    for cell in ordered(group):
        found = scene.traces.picked.get(cell.cell.id)
        trace = scene.traces.trials.get(found.median) if found else None
        for one in trace.usage if trace else ():
            value = one.cpu_percent if metric == "cpu_percent" else float(one.rss_bytes)
            scale = _SCALES[metric]
            yield {
                **{"name": cell.name, "role": one.role, "at_s": round(one.at_s, 2)},
                **{"value": round(value / scale.size, 2), "unit": scale.unit},
                "phase": {Phase.WARMUP: "warm-up", Phase.WINDOW: "window"}.get(one.phase, "drain"),
                "said": f"{value / scale.size:,.4g} {scale.unit}",
            }


# --- how requests failed ----------------------------------------------------------------------------------


# Kinds are no subjects: these shades are the palette's, but stand for kinds by the key below them.
_OF_KINDS = ("#a40e26", "#b07a00", "#57606a", "#0072b2", "#b35c96", "#00896b", "#7a5a3a", "#2b97d3")
_PERCENT = 0.01


def failures(scene: Scene, groups: Sequence[Group]) -> Chart | None:
    """Return the share of failed requests by kind under the loads of ``groups``; None where none failed."""
    rows = [row for group in groups for cell in group.cells for row in _failed(scene, group, cell)]
    if not rows:
        return None
    said = tooltip(name="subject", said="failed", n="requests")
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    shade = _key("kind", kinds, _OF_KINDS, columns=1, labelLimit=WIDTH)
    under = scene.load(groups[0]) if len(groups) == 1 else "all"
    return Chart(
        slug("failures", under or "all", str(scene.reading.place(groups[0]))),
        "Requests that failed, by kind",
        "Of all requests, over the trials that count; subjects without failed requests are left out.",
        stacked(rows, "label", "% of all requests", shade, said),
    )


def _failed(scene: Scene, group: Group, cell: CellSummary) -> Iterator[Json]:
    label = ", ".join(part for part in (cell.name, scene.load(group)) if part)
    for k, found in enumerate(failed_by_class(cell)):
        at = scene.places[cell.cell.id] + pointer("failed_requests", k, "share")
        row = _share(cell.name, _kind(found), found.share, at)
        yield row | {"label": label, "kind": _kind(found), "n": found.requests}


def _kind(found: FailedRequests) -> str:
    return ending_words(found.endings[0]) if len(found.endings) == 1 else "other kinds"


# --- where the time of threads goes -----------------------------------------------------------------------


# States are no subjects: these shades are the palette's, but stand for states by the key below them.
_OF_STATES = {
    ThreadState.RUNNING: "#00896b",
    ThreadState.READY: "#b07a00",
    ThreadState.LOCK: "#a40e26",
    ThreadState.THREAD: "#b35c96",
    ThreadState.IDLE: "#afb8c1",
    ThreadState.EVENTS: "#8c959f",
    ThreadState.SOCKET: "#2b97d3",
    ThreadState.DOWNSTREAM: "#0072b2",
    ThreadState.SLEEP: "#7a5a3a",
    ThreadState.FILE: "#6639ba",
    ThreadState.FILE_LOCK: "#a475f9",
    ThreadState.CHILD: "#e16f24",
    ThreadState.OTHER: "#57606a",
}


def thread_times(scene: Scene, group: Group) -> Chart | None:
    """Return what the threads of each subject did, as shares of their time; None where nobody looked."""
    rows = list(_times(scene, group))
    if not rows:
        return None
    states = [state for state in ThreadState if any(row["state"] == state.value for row in rows)]
    shade = _key("state", states, [_OF_STATES[one] for one in states], columns=2, labelLimit=WIDTH)
    return Chart(
        slug("threads", scene.load(group), str(scene.reading.place(group))),
        "Where the time of its threads goes",
        "Running and ready to run as the scheduler counts them; what they wait for by looks at them, ten "
        "times a second.",
        stacked(rows, "name", "% of the time of its threads", shade, tooltip(name="subject", said="time")),
    )


def _times(scene: Scene, group: Group) -> Iterator[Json]:
    for place, cell in enumerate(group.cells):
        found = scene.reading.diagnoses.get(cell.cell.id)
        at = group_at(scene.reading, group) + pointer("cells", place, "diagnosis", "time")
        for state, share in found.time.items() if found else ():
            yield _share(cell.name, state.value, share, at + pointer(state.value)) | {"state": state.value}
