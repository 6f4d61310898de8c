"""What limits the subjects of a load, those that are alike together."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from prony.diagnosis.conclusion import Diagnosis
from prony.model.json_codec import at
from prony.model.shown import INTERNAL, shown
from prony.reading.groups import Group
from prony.reading.study import StudyResults


@dataclass(frozen=True, slots=True)
class Alike:
    """Subjects of a group whose diagnoses differ in numbers only. ``cells``: their places in the group."""

    subjects: tuple[str, ...]
    cells: tuple[int, ...]
    diagnoses: tuple[Diagnosis, ...]


def alike_diagnoses(reading: StudyResults, group: Group, cells: Iterable[int]) -> tuple[Alike, ...]:
    """Return the diagnoses of a group's cells at these places, in the order of the first of each kind; none
    where generators are compared on one server.
    """
    together: dict[object, list[tuple[int, Diagnosis]]] = {}
    for place in () if group.of_generators else cells:
        found = reading.diagnoses.get(group.cells[place].cell.id)
        if found is not None:
            together.setdefault(_key(found), []).append((place, found))
    return tuple(
        Alike(
            tuple(group.cells[place].name for place, _ in same),
            tuple(place for place, _ in same),
            tuple(found for _, found in same),
        )
        for same in together.values()
    )


def _key(found: Diagnosis) -> object:
    cause = None if found.cause is None else found.cause.finding.alike
    following = found.bounds[0].resource if found.bounds else None
    # What a line has where the limit is unknown.
    open_ = (found.ruled_out, found.has_slot_for_each, found.has_few) if found.is_unknown else ()
    return found.kind, found.confidence, cause, found.fills_cpu, following, found.overloaded, open_


@dataclass(frozen=True, slots=True)
class LimitedCell:
    """One subject under one load; ``diagnosis`` null: no trial says what limits it. ``place``: of the group
    in the results. ``pointer``: where the report's JSON has the diagnosis.
    """

    name: str
    group: Group = field(metadata=INTERNAL)
    place: int = field(metadata=INTERNAL)
    pointer: str = field(metadata=at("at"))
    diagnosis: Diagnosis | None

    @shown
    def load(self) -> str:
        """Its load, in words."""
        return self.group.workload.describe()


def limited_cells(reading: StudyResults, subject: str | None = None) -> tuple[LimitedCell, ...]:
    """Return what limits each subject under each load, or one subject."""
    return tuple(
        LimitedCell(
            cell.name,
            group,
            reading.place(group),
            f"/groups/{reading.place(group)}/cells/{place}/diagnosis",
            reading.diagnoses.get(cell.cell.id),
        )
        for group in reading.measured
        for place, cell in enumerate(group.cells)
        if subject in (None, cell.name)
    )
