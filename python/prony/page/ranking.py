"""The ranked table of a load: the figures by which one chooses, best first."""

from collections.abc import Iterator

from prony.analysis.compare import Comparison
from prony.analysis.summary import CellSummary, Estimate
from prony.metrics import METRICS, Unit
from prony.model import ClosedLoop
from prony.page.charts.dots import ordered
from prony.page.scene import Scene
from prony.reading.groups import Group
from prony.report.document import Block, Column, Entry, Footnotes, Section, Table, Tone
from prony.report.forms import of_percent, signed_percent
from prony.report.places import group_at
from prony.report.tables import Place, counted_entry, figure_entry
from prony.report.text import Figure, Quote, Text, pointer, text
from prony.report.words import heading, workload_words
from prony.units import Scale

__all__ = ["ranking_section"]

_COST = ("cpu_ns_per_request", "pss_end")
_SHORT = {
    "ok_per_s": "replies",
    "error_ratio": "errors",
    "cpu_ns_per_request": "CPU per request",
    "pss_end": "memory (PSS)",
    "generator_cpu_ns_per_request": "generator's CPU per request",
    "generator_ok_per_cpu_s": "replies per CPU-second",
    "generator_rss_mean": "generator's memory",
}


def ranking_section(scene: Scene, group: Group) -> Section:
    """Return the ranked table of a group; its last lines say why figures are missing."""
    notes, at = Footnotes(), group_at(scene.reading, group)
    metrics = tuple(_metrics(group))
    scales = {metric: scene.scale(metric, group.cells) for metric in metrics}
    columns = (
        Column("subject", text=True),
        *(Column(_title(metric, scales[metric])) for metric in metrics[:1]),
        Column("to the first"),
        *(Column(_title(metric, scales[metric])) for metric in metrics[1:]),
        Column("trials"),
    )
    places = {cell.name: k for k, cell in enumerate(group.cells)}
    cells = [cell for cell in ordered(group) if cell.total]
    rows = [
        _row(scene, group, Place(cell, at + pointer("cells", places[cell.name])), metrics, scales, notes)
        for cell in cells
    ]
    words = "Generators" if group.of_generators else workload_words(group.workload, at + pointer("load"))
    blocks: list[Block] = [Table(columns, tuple(rows))]
    found = notes.notes()
    return Section(words, (*blocks, found) if found.items else tuple(blocks))


def _metrics(group: Group) -> Iterator[str]:
    tail = "service_ok_p99" if isinstance(group.workload.loop, ClosedLoop) else "response_ok_p99"
    cost = ("generator_cpu_ns_per_request", "generator_rss_mean") if group.of_generators else _COST
    wanted = (group.answer.metric or "ok_per_s", "ok_per_s", tail, "error_ratio", *cost)
    yield from dict.fromkeys(wanted)


def _title(metric: str, scale: Scale) -> str:
    kind, _, population = metric.partition("_ok_")
    title = _SHORT.get(metric) or (f"{population}, {kind} time" if population else METRICS[metric].title)
    return f"{heading(title)}, {scale.unit}" if scale.unit else heading(title)


def _row(  # noqa: PLR0913, PLR0917 - one row of one table
    scene: Scene,
    group: Group,
    one: Place,
    metrics: tuple[str, ...],
    scales: dict[str, Scale],
    notes: Footnotes,
) -> tuple[Entry, ...]:
    first, *others = (_entry(one, metric, scales[metric], notes) for metric in metrics)
    name = Quote(one.cell.name, one.at + pointer("name"))
    return (
        Entry(text("{}", name), Tone.STRONG if one.cell.name == group.answer.leader else Tone.PLAIN),
        first,
        Entry(_to_first(scene, group, one.cell)),
        *others,
        counted_entry(one),
    )


def _entry(one: Place, metric: str, scale: Scale, notes: Footnotes) -> Entry:
    value = one.cell.metrics[metric]
    # A share without an interval reads better: errors are counted.
    if METRICS[metric].unit is Unit.RATIO and isinstance(value, Estimate):
        if one.cell.error_ratio is None:
            return Entry("—", Tone.QUIET)
        tone = Tone.PLAIN if one.cell.unqualified is None else Tone.WARNING
        return Entry(
            text("{}", Figure(one.cell.error_ratio, of_percent, one.at + pointer("error_ratio"))), tone
        )
    return figure_entry(value, scale, one.metric(metric), notes)


def _to_first(scene: Scene, group: Group, cell: CellSummary) -> Text | str:
    found: Comparison | None = group.answer.comparisons.get(cell.name)
    if found is None or found.effect is None:
        return "the first" if cell.name == group.answer.leader else "—"
    at = group_at(scene.reading, group) + pointer("answer", "comparisons", cell.name)
    effect = Figure(found.effect, signed_percent, at + pointer("effect"))
    if found.low is None or found.high is None:
        return text("{}", effect)
    low = Figure(found.low, signed_percent, at + pointer("low"))
    high = Figure(found.high, signed_percent, at + pointer("high"))
    return text("{} ({} to {})", effect, low, high)
