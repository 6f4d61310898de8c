"""CPU and memory of a subject by role: over the trials, and over the time of one."""

from collections.abc import Iterator

from prony.core.metrics import METRICS
from prony.core.units import MIB, Scale
from prony.figures.summary import CellSummary, Estimate, means
from prony.model.json_codec import Json
from prony.model.observation import Phase
from prony.reading.groups import Group
from prony.report.forms import metric_scale
from prony.report.page.chart import QUIET, Chart, axis, layer, quantity, rows_of, slug, stacked, tooltip
from prony.report.page.charts.dots import ordered
from prony.report.page.scene import Scene, titled
from prony.report.text import pointer

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
    names = sorted({row["role"] for row in rows})
    shades = [_SHADES[k % len(_SHADES)] for k in range(len(names))]
    scale = {"domain": names, "range": shades}
    return {"field": "role", "type": "nominal", "scale": scale, "legend": {"columns": 3, "columnPadding": 14}}


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
