"""What the charts of a study are made from: its results, its traces and its look; and rows of data.

Each row that stands for a figure has ``at``, the place of its value in the report's JSON, and ``scale``: what
``value`` times it gives.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from prony.core.metrics import METRICS
from prony.core.units import Scale
from prony.figures.missing import Missing
from prony.figures.statistics.compare import LEAST_BLOCKS
from prony.figures.summary import CellSummary, means
from prony.model.json_codec import Json
from prony.reading.groups import Group
from prony.reading.study import StudyResults
from prony.reading.traces import Traces
from prony.report.forms import estimate, metric_scale
from prony.report.page.chart import EVERY, Style, palette
from prony.report.tables import cell_at
from prony.report.text import pointer
from prony.report.words import bound_sign, group_words


@dataclass(frozen=True, slots=True)
class Scene:
    """A study to draw. ``places``: where the JSON has each cell."""

    reading: StudyResults
    traces: Traces
    look: Style
    places: dict[int, str]

    @property
    def spread(self) -> str:
        """What stands around a mean, in words after it."""
        if self.reading.sessions == 1:
            return " with its 95 % interval"
        if self.reading.sessions < LEAST_BLOCKS:
            return ", without an interval over so few sessions"
        return " with its 95 % interval over the sessions"

    def load(self, group: Group) -> str:
        """Return a group's load in words; empty if the study has only one."""
        if len(self.reading.measured) < 2:
            return ""
        return str(group_words(group, self.reading.place(group)))

    def key(self, group: Group) -> str:
        """Return what the keys of a group's charts end in: those of each group differ, also where generators
        have loads of their own.
        """
        if len(self.reading.measured) < 2:
            return EVERY
        return self.load(group) or f"generators {self.reading.place(group)}"

    def scale(self, metric: str, cells: Iterable[CellSummary]) -> Scale:
        """Return the unit of a metric's axis."""
        return metric_scale(metric, means(cell.metrics[metric] for cell in cells))

    def row(self, cell: CellSummary, metric: str, scale: Scale) -> Json | None:
        """Return a cell's figure with its interval; None where there is none."""
        found = cell.metrics[metric]
        if isinstance(found, Missing):
            return None
        at = self.places[cell.cell.id] + pointer("metrics", metric)
        said = f"{bound_sign(cell, metric)}{estimate(found, scale, at)} {scale.unit}".strip()
        row: Json = {"name": cell.name, "value": found.mean / scale.size, "said": said, "n": found.count}
        if found.low is not None and found.high is not None:
            row |= {"low": max(found.low, 0.0) / scale.size, "high": found.high / scale.size}
        return row | {"at": at, "scale": scale.size}

    def trial_rows(self, cell: CellSummary, metric: str, scale: Scale) -> Iterator[Json]:
        """Yield the figure of each trial that counts."""
        for block, metrics in sorted(cell.by_block.items()):
            value = metrics[metric]
            if not isinstance(value, Missing):
                at = self.places[cell.cell.id] + pointer("by_block", block, metric)
                yield {
                    "name": cell.name,
                    "trial": value / scale.size,
                    "said": f"{value / scale.size:,.4g} {scale.unit}".strip(),
                    "block": block + 1,
                    "at": at,
                    "scale": scale.size,
                }


def titled(metric: str) -> str:
    """Return a metric's title as a heading."""
    title = METRICS[metric].title
    return title[:1].upper() + title[1:]


def scene_of(reading: StudyResults, found: Traces, *, legend: bool = False) -> Scene:
    """Return the scene of a study; subjects look as they come in its plan."""
    names = [cell.name for group in reading.groups for cell in group.cells]
    places = {cell.cell.id: cell_at(reading, cell) for cell in reading.cells}
    return Scene(reading, found, Style(palette(names), legend), places)
