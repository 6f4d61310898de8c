"""An archive as a test of the procedure itself: one subject under several names, or subjects made equal.

Must not know archives or how they are measured.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from prony.analysis.answer import block_logs, criterion
from prony.analysis.compare import Terms
from prony.analysis.noise_floor import BLOCKS, SelfTest, load_class, self_test
from prony.analysis.rates import is_speed
from prony.analysis.rerandomised import Rerandomised, as_equals, rerandomised
from prony.analysis.summary import CellSummary
from prony.analysis.versus import METRICS_COMPARED
from prony.model.shapes import INLINE, at


@dataclass(frozen=True, slots=True)
class Namesakes:
    """Cells under one load that are one subject under several names (``is_real``), or are made so."""

    cells: tuple[CellSummary, ...]
    is_real: bool

    def logs(self, metric: str) -> Mapping[str, Mapping[int, float]]:
        """Return the logarithms of a metric by name and block; of speed, without what does not qualify.

        *Definition*: of subjects that differ, the effects are taken out.
        """
        fit = [one for one in self.cells if one.unqualified is None or not is_speed(metric)]
        known = {cell.name: block_logs(cell, metric) for cell in fit}
        found = {name: values for name, values in known.items() if values}
        return found if self.is_real else as_equals(found)


@dataclass(frozen=True, slots=True)
class Procedure:
    """What the whole procedure makes of ``subject`` under a class of ``load``, in the metric that decides."""

    subject: str
    load: str = field(metadata=at("loop"))
    metric: str
    found: Rerandomised = field(metadata=INLINE)


def namesakes(groups: Iterable[Sequence[CellSummary]]) -> tuple[Namesakes, ...]:
    """Return the cells of each load that are one subject but for its name, if there are any; else all cells
    of each load.
    """
    every = [list(cells) for cells in groups]
    real = [Namesakes(alike, True) for cells in every for alike in _alike(cells)]
    return tuple(real or [Namesakes(tuple(cells), False) for cells in every if len(cells) >= 2])


def _alike(cells: Iterable[CellSummary]) -> list[tuple[CellSummary, ...]]:
    """Return the cells that differ in nothing but their subject's name."""
    found: list[list[CellSummary]] = []
    for cell in cells:
        same = next((one for one in found if _unnamed(one[0]) == _unnamed(cell)), None)
        if same is None:
            found.append([cell])
        else:
            same.append(cell)
    return [tuple(one) for one in found if len(one) >= 2]


def _unnamed(cell: CellSummary) -> object:
    return replace(cell.cell.subject, name=""), cell.cell.workload


def self_tests(found: Sequence[Namesakes]) -> tuple[SelfTest, ...]:
    """Return the self-test for each metric, class of load and number of blocks that there are enough of."""
    loads = dict.fromkeys(load_class(one.cells[0].cell) for one in found)
    is_real = all(one.is_real for one in found)
    tests = (
        self_test(metric, load, _tables(found, metric, load), blocks, is_real=is_real)
        for load in loads
        for metric in METRICS_COMPARED
        for blocks in BLOCKS
    )
    return tuple(one for one in tests if one is not None)


def _tables(found: Iterable[Namesakes], metric: str, load: str) -> list[Mapping[str, Mapping[int, float]]]:
    return [one.logs(metric) for one in found if load_class(one.cells[0].cell) == load]


def procedures(found: Iterable[Namesakes], terms: Terms) -> tuple[Procedure, ...]:
    """Return what the whole procedure makes of names that are drawn again within blocks, for each load."""
    return tuple(one for sakes in found if (one := _procedure(sakes, terms)) is not None)


def _procedure(sakes: Namesakes, terms: Terms) -> Procedure | None:
    metric = criterion([cell for cell in sakes.cells if cell.unqualified is None])
    drawn = rerandomised(sakes.logs(metric), terms) if metric else None
    if metric is None or drawn is None:
        return None
    first, *others = (cell.name for cell in sakes.cells)
    subject = first if sakes.is_real else f"{first} and {len(others)} more"
    return Procedure(subject, load_class(sakes.cells[0].cell), metric, drawn)
