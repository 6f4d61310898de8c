"""The same cells in several archives, the oldest first: what they gave, over versions or days.

Must not know words. No verdict: between two archives the machine, the day and the versions may differ.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from prony.analysis.summary import CellSummary, Estimate
from prony.model.workload import ClosedLoop, Workload
from prony.reading.across import Sessions
from prony.reading.groups import Group
from prony.reading.study import Reading

_BESIDE = ("ok_per_s", "error_ratio", "cpu_ns_per_request", "pss_end")


@dataclass(frozen=True, slots=True)
class Edition:
    """One of several archives: its ``name``, unique among them, and what it says."""

    name: str
    reading: Reading

    @property
    def started_unix_ns(self) -> int:
        """When its first run began; 0 if none did."""
        return min((run.started_unix_ns for run in self.reading.runs), default=0)

    @property
    def prony_version(self) -> str | None:
        """With which Prony its first run was measured; null without a run."""
        return self.reading.runs[0].prony_version if self.reading.runs else None

    def version(self, subject: str) -> str | None:
        """Return the version of a subject's server; null where it is not known."""
        record = self.reading.subjects.get(subject)
        return record.server_version if record else None


@dataclass(frozen=True, slots=True)
class SameLoad:
    """A load of several editions. ``metric`` decides; ``cells``: by subject, one for each edition, null where
    that has none.
    """

    workload: Workload
    metric: str
    cells: Mapping[str, tuple[CellSummary | None, ...]]

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that are shown of it: the deciding one first, then tail, rate, errors and cost."""
        tail = "service_ok_p99" if isinstance(self.workload.loop, ClosedLoop) else "response_ok_p99"
        return tuple(dict.fromkeys((self.metric, tail, *_BESIDE)))

    def figures(self, metric: str) -> Mapping[str, tuple[Estimate | None, ...]]:
        """Return each subject's estimates, one for each edition; null where there is none."""
        return {name: tuple(_estimate(cell, metric) for cell in row) for name, row in self.cells.items()}


@dataclass(frozen=True, slots=True)
class Trend:
    """Several archives, the oldest first, and the loads and subjects that at least two of them have."""

    editions: tuple[Edition, ...]
    loads: tuple[SameLoad, ...]


def trend_of(readings: Iterable[tuple[str, Reading]]) -> Trend:
    """Return what archives have in common. Cells are the same if loop, streams, end and generator of their
    load are, and their subject's name.
    """
    made = (Edition(name, reading) for name, reading in readings)
    editions = tuple(sorted(made, key=lambda one: one.started_unix_ns))
    found: dict[object, dict[int, Group]] = {}
    for k, edition in enumerate(editions):
        for group in edition.reading.measured:
            own = group.workload
            load = (own.loop, own.streams, own.stop, group.asks)
            key = (load, group.engine.name, group.of_generators)
            found.setdefault(key, {})[k] = group
    loads = (_same(groups, len(editions)) for groups in found.values() if len(groups) > 1)
    return Trend(editions, tuple(one for one in loads if one.cells))


def same_loads(found: Sessions) -> tuple[SameLoad, ...]:
    """Return what the sessions of one plan have in common, one for each of their ``loads``."""
    of = ({k: part.groups[one.place] for k, part in enumerate(found.parts)} for one in found.loads)
    made = (_same(groups, len(found.parts)) for groups in of)
    return tuple(replace(one, metric=load.metric) for one, load in zip(made, found.loads, strict=True))


def _estimate(cell: CellSummary | None, metric: str) -> Estimate | None:
    value = cell.metrics[metric] if cell else None
    return value if isinstance(value, Estimate) else None


def _same(groups: Mapping[int, Group], editions: int) -> SameLoad:
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
