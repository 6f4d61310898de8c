"""The cells of a study's document, by names and loads: what its other parts may refer to.

Pure: the catalogue is not asked. Must not know claims or figures.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property

from prony.model.plan import Cell
from prony.model.subject import App, Interface, Subject, is_named
from prony.model.workload import EngineChoice, Mix, MixPath, RequestFile, RequestOrder, Workload
from prony.study_document import StudyDocument, WorkloadDocument
from prony.workloads import engines_of, in_profile, is_skipped, workloads_of

_ANY_APP = App("", "", "", {})


@dataclass(frozen=True)
class Grid:
    """All cells of all profiles, by profile."""

    profiles: Mapping[str, tuple[Cell, ...]]

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The cells of all profiles."""
        return tuple(cell for cells in self.profiles.values() for cell in cells)

    @cached_property
    def subjects(self) -> tuple[str, ...]:
        """The names of the subjects, each once."""
        return tuple(dict.fromkeys(cell.subject.name for cell in self.cells))

    @cached_property
    def engines(self) -> tuple[str, ...]:
        """The names of the generators, each once."""
        return tuple(dict.fromkeys(cell.engine.name for cell in self.cells))

    def fitting(self, subject: str, engine: str, load: Mapping[str, float]) -> tuple[Cell, ...]:
        """Return the cells whose subject and generator match the globs, under ``load``."""
        return tuple(self._fitting(subject, engine, load))

    def has(self, subject: str, engine: str, load: Mapping[str, float]) -> bool:
        """Return whether there are such cells."""
        return any(True for _ in self._fitting(subject, engine, load))

    def _fitting(self, subject: str, engine: str, load: Mapping[str, float]) -> Iterator[Cell]:
        subjects = {name for name in self.subjects if is_named(name, subject)}
        engines = {name for name in self.engines if fnmatchcase(name, engine)}
        return (
            cell
            for cell in self.cells
            if cell.subject.name in subjects and cell.engine.name in engines and cell.is_under(load)
        )


def grid_of(document: StudyDocument) -> Grid:
    """Return the cells of all profiles of ``document``."""
    return Grid({name: _cells(document, name) for name in document.profiles})


def _cells(document: StudyDocument, name: str) -> tuple[Cell, ...]:
    profile = document.profiles[name]
    # Subjects of the experiment's time are measured where a profile asks for them: they may be referred to.
    measured = (part for part in document.subjects if not part.profiles or name in part.profiles)
    names = dict.fromkeys(subject for part in measured for subject in document.names(part))
    parts = [in_profile(part, profile) for part in document.workloads if not is_skipped(part, profile)]
    found = (
        (subject, _named(part, load), engine)
        for subject in names
        for part in parts
        if part.is_for(subject)
        for engine in engines_of(part, EngineChoice())
        for load in workloads_of(part, _ANY_APP, None)
    )
    return tuple(
        Cell(number, Subject(subject, "", _ANY_APP, Interface.NONE), load, engine)
        for number, (subject, load, engine) in enumerate(found)
    )


def _named(part: WorkloadDocument, load: Workload) -> Workload:
    """Return the load with the name of the file that its requests are from, which is not read here."""
    if part.file is None:
        return load
    file = RequestFile(part.file, "", 0, part.order or RequestOrder.IN_ORDER)
    return replace(load, mix=Mix(part.mix or (MixPath(load.request.path),), file=file))
