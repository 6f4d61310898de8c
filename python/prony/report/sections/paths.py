"""The paths of a mix: of each subject its requests, errors and latencies by path."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from prony.analysis.summary import CellSummary, Estimate
from prony.metrics import PERCENTILES
from prony.reading.paths import CellPath, OtherPaths, cell_paths, other_paths, shown_paths
from prony.reading.study import Reading
from prony.report.document import Column, Entry, Footnotes, Paragraph, Section, Table, Tone
from prony.report.forms import count, percent
from prony.report.tables import Place, figure_entry, group_at, ranked
from prony.report.text import EMPTY, Figure, Name, Part, Quote, Text, pointer, text
from prony.report.words import bound_sign, group_words
from prony.units import Scale, duration_scale

_SHOWN = ("p50", "p99")


def path_sections(reading: Reading) -> Iterator[Section]:
    """Yield the paths of each load that is a mix, for each of its subjects."""
    groups = [group for group in reading.measured if group.workload.mix is not None]
    for group in groups:
        places = ranked(group.cells, group.answer.metric, group_at(reading, group))
        kept = shown_paths(group.cells)
        cells = [lines for one in places if (lines := _lines(one, kept))]
        under = group_words(group, reading.place(group)) if len(groups) > 1 else EMPTY
        if cells:
            yield _section(text("By path, {}", under) if under else text("By path"), cells)


@dataclass(frozen=True, slots=True)
class _Line:
    """A path of a cell, and where the report's JSON has it."""

    cell: CellSummary
    path: CellPath
    at: str

    def percentile(self, name: str, scale: Scale, notes: Footnotes) -> Entry:
        """Return a percentile of the times of all requests, perhaps a bound of it, or why there is none."""
        percentile = PERCENTILES[name]
        value = self.path.percentiles[percentile]
        shown = figure_entry(value, scale, self.at + pointer("percentiles", percentile), notes)
        if not isinstance(value, Estimate):
            return shown
        from_here, metric = self.path.censored_from, f"{self.path.kind}_all_{name}"
        is_bound = from_here is not None and float(percentile) > from_here
        sign = "≥ " if is_bound else bound_sign(self.cell, metric)
        return Entry(text("{}{}", sign, shown.text), shown.tone)

    def entries(self, scale: Scale, notes: Footnotes) -> tuple[Entry, ...]:
        """Return the cells of its row, without the subject."""
        path = Entry(text("{}", Quote(self.path.path, self.at + pointer("path"))))
        times = (self.percentile(name, scale, notes) for name in _SHOWN)
        return (path, *_counts(self.path, self.at), *times)


@dataclass(frozen=True, slots=True)
class _Others:
    """The paths of a cell that have no row."""

    paths: OtherPaths
    at: str

    def entries(self) -> tuple[Entry, ...]:
        """Return the cells of their row, without the subject."""
        name = Entry("all others", Tone.QUIET)
        return (name, *_counts(self.paths, self.at), *(Entry("", Tone.QUIET) for _ in _SHOWN))


def _counts(found: CellPath | OtherPaths, at: str) -> Iterator[Entry]:
    """Yield what was asked for, the requests, their share and the errors."""
    lost = found.account.lost
    share: Part = "—" if found.share is None else Figure(found.share, percent, at + pointer("share"))
    errors = text("{}", Figure(lost, count, at + pointer("errors")))
    yield Entry(text("{}", Figure(found.asked, percent, at + pointer("asked"))))
    yield Entry(text("{}", Figure(found.account.requests, count, at + pointer("requests"))))
    yield Entry(text("{}", share))
    yield Entry(errors, Tone.BAD if lost else Tone.PLAIN)


@dataclass(frozen=True, slots=True)
class _Lines:
    """The rows of a cell."""

    cell: CellSummary
    shown: tuple[_Line, ...]
    others: _Others | None

    def rows(self, scale: Scale, notes: Footnotes) -> Iterator[tuple[Entry, ...]]:
        """Yield them; the first names the subject."""
        first = Entry(text("{}", Name(self.cell.name)))
        for k, line in enumerate(self.shown):
            yield (Entry("") if k else first, *line.entries(scale, notes))
        if self.others:
            yield (Entry(""), *self.others.entries())


def _lines(one: Place, kept: Collection[int]) -> _Lines | None:
    found = cell_paths(one.cell)
    if not found:
        return None
    lines = (_Line(one.cell, path, one.at + pointer("paths", k)) for k, path in enumerate(found) if k in kept)
    left = other_paths(found, kept)
    return _Lines(one.cell, tuple(lines), _Others(left, one.at + pointer("other_paths")) if left else None)


def _section(heading: Text, cells: Sequence[_Lines]) -> Section:
    notes = Footnotes()
    every = [line.path for lines in cells for line in lines.shown]
    medians = [value.mean for path in every if isinstance(value := path.percentiles["50"], Estimate)]
    scale = duration_scale(medians)
    titles = ("asked", "requests", "share", "errors", *(f"{name} {scale.unit}" for name in _SHOWN))
    columns = (Column("subject", text=True), Column("path", text=True), *(Column(one) for one in titles))
    rows = [row for lines in cells for row in lines.rows(scale, notes)]
    said = f"All paths together are the load. Latencies are {every[0].kind} times of all requests."
    if any(lines.others for lines in cells):
        said = f"{said} Shown are the paths that fail most and the slowest; JSON has all."
    return Section(heading, (Paragraph(said, Tone.QUIET), Table(columns, tuple(rows)), notes.notes()))
