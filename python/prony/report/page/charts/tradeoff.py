"""What a subject gives for what it costs: throughput or CPU, tail latency and memory in one picture."""

from prony.core.metrics import METRICS
from prony.figures.summary import CellSummary
from prony.model.json_codec import Json
from prony.model.workload import ClosedLoop
from prony.reading.groups import Group
from prony.report.page.chart import Chart, by_size, coloured, layer, shaped, slug, spec, tooltip
from prony.report.page.scene import Scene
from prony.report.words import heading


def tradeoff(scene: Scene, group: Group) -> Chart | None:
    """Return the trade-off of a group; None where fewer than two subjects have all three figures."""
    closed = isinstance(group.workload.loop, ClosedLoop)
    across = "ok_per_s" if closed else "cpu_ns_per_request"
    up = "service_ok_p99" if closed else "response_ok_p99"
    metrics = (across, up, "pss_end")
    cells = [cell for cell in group.cells if all(map(cell.known, metrics))]
    if len(cells) < 2:
        return None
    rows = [_row(scene, cells, cell, metrics) for cell in cells]
    titles = [METRICS[metric].title for metric in metrics]
    units = [scene.scale(metric, cells).unit for metric in metrics]
    good = "to the right and down" if closed else "to the left and down"
    return Chart(
        slug("tradeoff", scene.key(group)),
        "What it gives and what it costs",
        f"{heading(titles[0])} against {titles[1]}; a larger mark needs more {titles[2]}. Best is {good}.",
        spec(rows, _layers(scene, rows, titles, units)),
    )


def _row(scene: Scene, cells: list[CellSummary], cell: CellSummary, metrics: tuple[str, ...]) -> Json:
    found: Json = {"name": cell.name}
    for axis_name, metric in zip(("x", "y", "size"), metrics, strict=True):
        row = scene.row(cell, metric, scene.scale(metric, cells)) or {}
        found |= {axis_name: row["value"], f"said_{axis_name}": row["said"]}
        found |= {f"{axis_name}_at": row["at"], f"{axis_name}_scale": row["scale"]}
        if "low" in row:
            found |= {f"{axis_name}_low": row["low"], f"{axis_name}_high": row["high"]}
    return found


def _axis(rows: list[Json], name: str, title: str) -> Json:
    keys = (name, f"{name}_low", f"{name}_high")
    return by_size(name, title, [row[key] for row in rows for key in keys if key in row])


def _layers(scene: Scene, rows: list[Json], titles: list[str], units: list[str]) -> list[Json]:
    x = _axis(rows, "x", f"{titles[0]}, {units[0]}")
    y = _axis(rows, "y", f"{titles[1]}, {units[1]}")
    place = {"x": x, "y": y, "color": coloured(scene.look)}
    said = {"tooltip": tooltip(name="subject", said_x=titles[0], said_y=titles[1], said_size=titles[2])}
    glyph = {"shape": shaped(scene.look), "size": memory_size("size")}
    return [
        layer("rule", place | {"y": y | {"field": "y_low"}, "y2": {"field": "y_high"}}, "y_low", opacity=0.5),
        layer("rule", place | {"x": x | {"field": "x_low"}, "x2": {"field": "x_high"}}, "x_low", opacity=0.5),
        layer("point", place | said | glyph, filled=True, opacity=0.9),
    ]


def memory_size(name: str) -> Json:
    """Return the encoding of memory by the size of a mark."""
    sizes = {"range": [30, 320], "zero": True}
    return {"field": name, "type": "quantitative", "legend": None, "scale": sizes}
