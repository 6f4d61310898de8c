"""A load of several archives, or of several sessions: the same cells, the oldest first.

Must not know words. No verdict: between two archives the machine, the day and the versions may differ.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from prony.analysis.summary import CellSummary, Estimate
from prony.model.shapes import at
from prony.model.shown import INTERNAL, shown, shown_as
from prony.model.workload import ClosedLoop, Workload
from prony.reading.groups import Group

_BESIDE = ("ok_per_s", "error_ratio", "cpu_ns_per_request", "pss_end")


@dataclass(frozen=True, slots=True)
class SameSubject:
    """A subject of several editions."""

    figures: tuple[Estimate | None, ...]
    change: float | None


@dataclass(frozen=True, slots=True)
class SameLoad:
    """A load of several editions. ``metric`` decides; ``cells``: by subject, one for each edition, null where
    that has none.
    """

    workload: Workload = field(metadata=at("load"))
    metric: str
    cells: Mapping[str, tuple[CellSummary | None, ...]] = field(metadata=INTERNAL)

    @shown
    def subjects(self) -> Mapping[str, SameSubject]:
        """The subjects that two have, in the deciding metric."""
        return {
            name: SameSubject(tuple(_estimate(cell, self.metric) for cell in row), change(row, self.metric))
            for name, row in self.cells.items()
        }

    @shown_as("metrics")
    def by_metric(self) -> Mapping[str, Mapping[str, tuple[Estimate | None, ...]]]:
        """The figures of all metrics that a page draws, by metric and subject."""
        return {metric: self.figures(metric) for metric in self.metrics}

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that are shown of it: the deciding one first, then tail, rate, errors and cost."""
        tail = "service_ok_p99" if isinstance(self.workload.loop, ClosedLoop) else "response_ok_p99"
        return tuple(dict.fromkeys((self.metric, tail, *_BESIDE)))

    def figures(self, metric: str) -> Mapping[str, tuple[Estimate | None, ...]]:
        """Return each subject's estimates, one for each edition; null where there is none."""
        return {name: tuple(_estimate(cell, metric) for cell in row) for name, row in self.cells.items()}


def _estimate(cell: CellSummary | None, metric: str) -> Estimate | None:
    value = cell.metrics[metric] if cell else None
    return value if isinstance(value, Estimate) else None


def same_load(groups: Mapping[int, Group], editions: int) -> SameLoad:
    """Return the cells of groups with one load, by edition; ``editions``: how many there are."""
    first = next(iter(groups.values()))
    cells: dict[str, list[CellSummary | None]] = {}
    for k, group in groups.items():
        for cell in group.cells:
            if cell.total:
                cells.setdefault(cell.name, [None] * editions)[k] = cell
    common = {name: tuple(row) for name, row in cells.items() if sum(one is not None for one in row) > 1}
    return SameLoad(first.workload, first.answer.metric or "ok_per_s", common)


def known(row: Iterable[CellSummary | None], metric: str) -> list[float]:
    """Return the means that a subject has, the oldest first."""
    values = (_estimate(one, metric) for one in row)
    return [value.mean for value in values if value is not None]


def change(row: Iterable[CellSummary | None], metric: str) -> float | None:
    """Return the last known mean of a subject over its first, less 1; null below two."""
    means = known(row, metric)
    return means[-1] / means[0] - 1 if len(means) > 1 and means[0] else None
