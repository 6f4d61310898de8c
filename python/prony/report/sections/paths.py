"""The paths of a mix: of each subject its requests, errors and latencies by path."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from prony.analysis.summary import CellSummary, Estimate
from prony.metrics import PERCENTILES
from prony.reading.paths import CellPath, cell_paths
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
        cells = [lines for one in places if (lines := _lines(one))]
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

    def counts(self) -> Iterator[Entry]:
        """Yield what was asked for, the requests, their share and the errors."""
        share, lost = self.path.share, self.path.account.lost
        found: Part = "—" if share is None else Figure(share, percent, self.at + pointer("share"))
        requests = Figure(self.path.account.requests, count, self.at + pointer("requests"))
        errors = text("{}", Figure(lost, count, self.at + pointer("errors")))
        yield Entry(text("{}", Figure(self.path.asked, percent, self.at + pointer("asked"))))
        yield Entry(text("{}", requests))
        yield Entry(text("{}", found))
        yield Entry(errors, Tone.BAD if lost else Tone.PLAIN)


def _lines(one: Place) -> list[_Line]:
    found = enumerate(cell_paths(one.cell))
    return [_Line(one.cell, path, one.at + pointer("paths", k)) for k, path in found]


def _section(heading: Text, cells: Sequence[Sequence[_Line]]) -> Section:
    notes = Footnotes()
    every = [line.path for lines in cells for line in lines]
    medians = [value.mean for path in every if isinstance(value := path.percentiles["50"], Estimate)]
    scale = duration_scale(medians)
    titles = ("asked", "requests", "share", "errors", *(f"{name} {scale.unit}" for name in _SHOWN))
    columns = (Column("subject", text=True), Column("path", text=True), *(Column(one) for one in titles))
    rows = (_row(line, scale, notes, is_first=not k) for lines in cells for k, line in enumerate(lines))
    said = f"All paths together are the load. Latencies are {every[0].kind} times of all requests."
    return Section(heading, (Paragraph(said, Tone.QUIET), Table(columns, tuple(rows)), notes.notes()))


def _row(line: _Line, scale: Scale, notes: Footnotes, *, is_first: bool) -> tuple[Entry, ...]:
    return (
        Entry(text("{}", Name(line.cell.name))) if is_first else Entry(""),
        Entry(text("{}", Quote(line.path.path, line.at + pointer("path")))),
        *line.counts(),
        *(line.percentile(name, scale, notes) for name in _SHOWN),
    )
