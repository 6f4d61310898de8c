"""Paths of a mix, groups of users, statuses of replies: what each subject had of them, and how long."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from prony.core.metrics import PERCENTILES
from prony.core.units import Scale, duration_scale
from prony.figures.summary import CellSummary, Estimate, means
from prony.reading.cells import (
    CellPart,
    CellStatus,
    OtherPaths,
    cell_groups,
    cell_paths,
    cell_statuses,
    other_paths,
    shown_paths,
)
from prony.reading.groups import Group
from prony.reading.study import StudyResults
from prony.report.document import Column, Entry, Footnotes, Paragraph, Section, Table, Tone
from prony.report.forms import percent
from prony.report.tables import PARTS, Place, figure_entry, group_at, part_entries, ranked, status_entry
from prony.report.text import EMPTY, Figure, Name, Quote, Text, pointer, text
from prony.report.words import bound_sign, group_words

_SHOWN = ("p50", "p99")
_KEYS = {"path": "paths", "group": "groups", "status": "statuses"}


def path_sections(reading: StudyResults) -> Iterator[Section]:
    """Yield the paths of each load that is a mix, its groups of users, and the statuses of its replies where
    there are several, for each of its subjects.
    """
    for kind in _KEYS:
        tables = [(one, list(_cells(reading, one, kind))) for one in reading.measured]
        own = [(group, cells) for group, cells in tables if _says_more(kind, cells)]
        for group, cells in own:
            under = group_words(group, reading.place(group)) if len(own) > 1 else EMPTY
            yield _section(text(f"By {kind}, {{}}", under) if under else text(f"By {kind}"), kind, cells)


def _says_more(kind: str, cells: "Sequence[_Lines]") -> bool:
    """Whether a table has something to say: of replies with one status the whole says it."""
    statuses = {line.part.status for one in cells for line in one.shown if isinstance(line.part, CellStatus)}
    return bool(cells) and (kind != "status" or len(statuses) > 1)


def _cells(reading: StudyResults, group: Group, kind: str) -> "Iterator[_Lines]":
    kept = shown_paths(group.cells) if kind == "path" and group.workload.mix else None
    for one in ranked(group.cells, group.answer.metric, group_at(reading, group)):
        found = _parts(one.cell, kind)
        if found:
            yield _lines(one, _KEYS[kind], found, range(len(found)) if kept is None else kept)


def _parts(cell: CellSummary, kind: str) -> Sequence[CellPart | CellStatus]:
    load = cell.cell.workload
    if kind == "status":
        return cell_statuses(cell)
    if kind == "group":
        return cell_groups(cell) if load.groups else ()
    return cell_paths(cell) if load.mix else ()


@dataclass(frozen=True, slots=True)
class _Line:
    """A path, group or status of a cell, and where the report's JSON has it."""

    cell: CellSummary
    part: CellPart | CellStatus
    at: str

    def percentile(self, name: str, scale: Scale, notes: Footnotes) -> Entry:
        """Return a percentile of the times of all requests, perhaps a bound of it, or why there is none."""
        percentile = PERCENTILES[name]
        value = self.part.percentiles[percentile]
        shown = figure_entry(value, scale, self.at + pointer("percentiles", percentile), notes)
        if not isinstance(value, Estimate):
            return shown
        metric = f"{self.part.kind}_all_{name}"
        # What was never answered has no status.
        from_here = self.part.censored_from if isinstance(self.part, CellPart) else None
        is_bound = from_here is not None and float(percentile) > from_here
        sign = "≥ " if is_bound else bound_sign(self.cell, metric)
        return Entry(text("{}{}", sign, shown.text), shown.tone)

    def entries(self, scale: Scale, notes: Footnotes) -> tuple[Entry, ...]:
        """Return the cells of its row, without the subject."""
        times = (self.percentile(name, scale, notes) for name in _SHOWN)
        return (*self._first(), *_counts(self.part, self.at), *times)

    def _first(self) -> Iterator[Entry]:
        if isinstance(self.part, CellStatus):
            yield status_entry(self.part.status)
        else:
            yield Entry.of(Quote(self.part.name, self.at + pointer("name")))
            yield _asked(self.part, self.at)


@dataclass(frozen=True, slots=True)
class _Others:
    """The paths of a cell that have no row."""

    paths: OtherPaths
    at: str

    def entries(self) -> tuple[Entry, ...]:
        """Return the cells of their row, without the subject."""
        name = Entry("all others", Tone.QUIET)
        counts = _counts(self.paths, self.at)
        return (name, _asked(self.paths, self.at), *counts, *(Entry("", Tone.QUIET) for _ in _SHOWN))


def _asked(found: CellPart | OtherPaths, at: str) -> Entry:
    return Entry.of(Figure(found.asked, percent, at + pointer("asked")))


def _counts(found: CellPart | CellStatus | OtherPaths, at: str) -> tuple[Entry, ...]:
    own = found if isinstance(found, CellStatus) else found.account
    errors = own.errors if isinstance(own, CellStatus) else own.lost
    bodies = found.body_received, pointer("body_received")
    return part_entries(at, own.requests, found.share, errors, bodies)


@dataclass(frozen=True, slots=True)
class _Lines:
    """The rows of a cell."""

    cell: CellSummary
    shown: tuple[_Line, ...]
    others: _Others | None

    def rows(self, scale: Scale, notes: Footnotes) -> Iterator[tuple[Entry, ...]]:
        """Yield them; the first names the subject."""
        first = Entry.of(Name(self.cell.name))
        for k, line in enumerate(self.shown):
            yield (Entry("") if k else first, *line.entries(scale, notes))
        if self.others:
            yield (Entry(""), *self.others.entries())


def _lines(one: Place, key: str, found: Sequence[CellPart | CellStatus], kept: Collection[int]) -> _Lines:
    lines = (_Line(one.cell, part, one.at + pointer(key, k)) for k, part in enumerate(found) if k in kept)
    left = other_paths([part for part in found if isinstance(part, CellPart)], kept)
    return _Lines(one.cell, tuple(lines), _Others(left, one.at + pointer("other_paths")) if left else None)


def _section(heading: Text, kind: str, cells: Sequence[_Lines]) -> Section:
    notes = Footnotes()
    every = [line.part for lines in cells for line in lines.shown]
    if not every:
        said = f"No {kind} failed, and none has enough requests for a median: JSON and --csv have all."
        return Section(heading, (Paragraph(said, Tone.QUIET),))
    scale = duration_scale(means(path.percentiles["50"] for path in every))
    asked = () if kind == "status" else ("asked",)
    titles = (*asked, *PARTS, *(f"{name} {scale.unit}" for name in _SHOWN))
    columns = (Column("subject", text=True), Column(kind, text=True), *(Column(one) for one in titles))
    rows = [row for lines in cells for row in lines.rows(scale, notes)]
    timed = "complete replies" if kind == "status" else "all requests"
    said = f"All {_KEYS[kind]} together are the load. Latencies are {every[0].kind} times of {timed}."
    if kind == "group":
        said = f"{said} They have the delay of each group."
    if any(lines.others for lines in cells):
        said = f"{said} Shown are the paths that fail most and the slowest; JSON has all."
    return Section(heading, (Paragraph(said, Tone.QUIET), Table(columns, tuple(rows)), notes.notes()))
