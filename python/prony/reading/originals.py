"""The figures that an experiment published, each beside the cell that repeats it: context, never a claim."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from prony.analysis.missing import Missing
from prony.analysis.summary import CellSummary, Estimate
from prony.model.claims import Original
from prony.model.shown import INTERNAL, shown_as
from prony.model.subject import is_named


@dataclass(frozen=True, slots=True)
class Published:
    """A published figure, and the cell that repeats it."""

    cell_id: int
    name: str
    metric: str
    role: str | None
    published: float
    note: str | None


@dataclass(frozen=True, slots=True)
class Beside:
    """A published figure, the cell that repeats it, and what was measured there."""

    original: Original = field(metadata=INTERNAL)
    cell: CellSummary = field(metadata=INTERNAL)
    measured: Estimate | Missing

    @shown_as("")
    def published(self) -> Published:
        """Return what was published, and of which cell."""
        said = self.original
        of = self.cell.cell.id, self.cell.name
        return Published(*of, said.metric, said.role or None, said.value, said.note or None)


def beside(cells: Iterable[CellSummary], originals: Sequence[Original]) -> tuple[Beside, ...]:
    """Return each published figure with each cell that repeats it, in the order of the cells."""
    return tuple(
        Beside(original, cell, _measured(original, cell))
        for cell in cells
        for original in originals
        if _repeats(cell, original)
    )


def _measured(original: Original, cell: CellSummary) -> Estimate | Missing:
    """Return the new figure for a published one: of all processes, or of those of its role.

    A subject without processes of that role has no such figure: the figure of all would mean something else.
    """
    if not original.role:
        return cell.metrics[original.metric]
    found = cell.roles.get(original.role, {})
    return found.get(original.metric, Missing(f"no process here has the role {original.role}"))


def _repeats(cell: CellSummary, original: Original) -> bool:
    return (
        is_named(cell.cell.subject.name, original.subject)
        and fnmatchcase(cell.cell.engine.name, original.engine)
        and cell.cell.is_under(original.load)
    )
