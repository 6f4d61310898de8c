"""The paths of a mix, and the groups of users: of each subject requests, errors and latencies by part."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from prony.analysis.summary import CellSummary, Estimate
from prony.metrics import PERCENTILES
from prony.reading.groups import Group
from prony.reading.paths import CellPart, OtherPaths, cell_groups, cell_paths, other_paths, shown_paths
from prony.reading.study import Reading
from prony.report.document import Column, Entry, Footnotes, Paragraph, Section, Table, Tone
from prony.report.forms import count, percent
from prony.report.tables import Place, figure_entry, group_at, ranked
from prony.report.text import EMPTY, Figure, Name, Part, Quote, Text, pointer, text
from prony.report.words import bound_sign, group_words
from prony.units import Scale, duration_scale

_SHOWN = ("p50", "p99")


def path_sections(reading: Reading) -> Iterator[Section]:
    """Yield the paths of each load that is a mix, and its groups of users, for each of its subjects."""
    for kind in ("path", "group"):
        own = [
            one for one in reading.measured if (one.workload.mix if kind == "path" else one.workload.groups)
        ]
        for group in own:
            cells = list(_cells(reading, group, kind))
            under = group_words(group, reading.place(group)) if len(own) > 1 else EMPTY
            if cells:
                yield _section(text(f"By {kind}, {{}}", under) if under else text(f"By {kind}"), kind, cells)


def _cells(reading: Reading, group: Group, kind: str) -> "Iterator[_Lines]":
    kept = shown_paths(group.cells) if kind == "path" else None
    for one in ranked(group.cells, group.answer.metric, group_at(reading, group)):
        found = (cell_paths if kind == "path" else cell_groups)(one.cell)
        if found:
            yield _lines(one, f"{kind}s", found, range(len(found)) if kept is None else kept)


@dataclass(frozen=True, slots=True)
class _Line:
    """A path or group of a cell, and where the report's JSON has it."""

    cell: CellSummary
    part: CellPart
    at: str

    def percentile(self, name: str, scale: Scale, notes: Footnotes) -> Entry:
        """Return a percentile of the times of all requests, perhaps a bound of it, or why there is none."""
        percentile = PERCENTILES[name]
        value = self.part.percentiles[percentile]
        shown = figure_entry(value, scale, self.at + pointer("percentiles", percentile), notes)
        if not isinstance(value, Estimate):
            return shown
        from_here, metric = self.part.censored_from, f"{self.part.kind}_all_{name}"
        is_bound = from_here is not None and float(percentile) > from_here
        sign = "≥ " if is_bound else bound_sign(self.cell, metric)
        return Entry(text("{}{}", sign, shown.text), shown.tone)

    def entries(self, scale: Scale, notes: Footnotes) -> tuple[Entry, ...]:
        """Return the cells of its row, without the subject."""
        part = Entry(text("{}", Quote(self.part.name, self.at + pointer("name"))))
        times = (self.percentile(name, scale, notes) for name in _SHOWN)
        return (part, *_counts(self.part, self.at), *times)


@dataclass(frozen=True, slots=True)
class _Others:
    """The paths of a cell that have no row."""

    paths: OtherPaths
    at: str

    def entries(self) -> tuple[Entry, ...]:
        """Return the cells of their row, without the subject."""
        name = Entry("all others", Tone.QUIET)
        return (name, *_counts(self.paths, self.at), *(Entry("", Tone.QUIET) for _ in _SHOWN))


def _counts(found: CellPart | OtherPaths, at: str) -> Iterator[Entry]:
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


def _lines(one: Place, key: str, found: Sequence[CellPart], kept: Collection[int]) -> _Lines:
    lines = (_Line(one.cell, part, one.at + pointer(key, k)) for k, part in enumerate(found) if k in kept)
    left = other_paths(found, kept)
    return _Lines(one.cell, tuple(lines), _Others(left, one.at + pointer("other_paths")) if left else None)


def _section(heading: Text, kind: str, cells: Sequence[_Lines]) -> Section:
    notes = Footnotes()
    every = [line.part for lines in cells for line in lines.shown]
    if not every:
        said = f"No {kind} failed, and none has enough requests for a median: JSON and --csv have all."
        return Section(heading, (Paragraph(said, Tone.QUIET),))
    medians = [value.mean for path in every if isinstance(value := path.percentiles["50"], Estimate)]
    scale = duration_scale(medians)
    titles = ("asked", "requests", "share", "errors", *(f"{name} {scale.unit}" for name in _SHOWN))
    columns = (Column("subject", text=True), Column(kind, text=True), *(Column(one) for one in titles))
    rows = [row for lines in cells for row in lines.rows(scale, notes)]
    said = f"All {kind}s together are the load. Latencies are {every[0].kind} times of all requests."
    if kind == "group":
        said = f"{said} They have the delay of each group."
    if any(lines.others for lines in cells):
        said = f"{said} Shown are the paths that fail most and the slowest; JSON has all."
    return Section(heading, (Paragraph(said, Tone.QUIET), Table(columns, tuple(rows)), notes.notes()))
