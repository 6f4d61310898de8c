"""The same cells in several archives, the oldest first: what they gave, over versions or days.

No verdict: between two archives the machine, the day and the versions may differ.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from prony.model.shown import INTERNAL, shown
from prony.reading.across import SameLoad, same_load
from prony.reading.groups import Group
from prony.reading.study import StudyResults


@dataclass(frozen=True, slots=True)
class Edition:
    """One of several archives: its ``name``, unique among them, and what it says."""

    name: str
    reading: StudyResults = field(metadata=INTERNAL)

    @shown
    def started_unix_ns(self) -> int:
        """When its first run began; 0 if none did."""
        return min((run.started_unix_ns for run in self.reading.runs), default=0)

    @shown
    def prony_version(self) -> str | None:
        """With which Prony its first run was measured; None without a run."""
        return self.reading.runs[0].prony_version if self.reading.runs else None

    @shown
    def versions(self) -> Mapping[str, str | None]:
        """The version of each subject's server."""
        return {name: record.server_version for name, record in self.reading.subjects.items()}

    def version(self, subject: str) -> str | None:
        """Return the version of a subject's server; None where it is not known."""
        record = self.reading.subjects.get(subject)
        return record.server_version if record else None


@dataclass(frozen=True, slots=True)
class Trend:
    """Several archives, the oldest first, and the loads and subjects that at least two of them have."""

    editions: tuple[Edition, ...]
    loads: tuple[SameLoad, ...]


def trend_of(readings: Iterable[tuple[str, StudyResults]]) -> Trend:
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
    loads = (same_load(groups, len(editions)) for groups in found.values() if len(groups) > 1)
    return Trend(editions, tuple(one for one in loads if one.cells))
