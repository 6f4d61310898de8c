"""Documents on a terminal: as wide as the terminal, readable without colour.

Control characters are removed from all text, and it is never parsed as markup: a server's log must not
control the reader's terminal.

*Source*: NO_COLOR, no-color.org.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from prony.escapes import plain
from prony.faces.terms import terms_of
from prony.glossary import PLACE
from prony.report.document import (
    Bars,
    Block,
    Column,
    Command,
    Document,
    Entry,
    Judgement,
    Judgements,
    Notes,
    Paragraph,
    Table,
    Tone,
)
from prony.report.text import Figure, Words

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

__all__ = ["TerminalReporter"]

_STYLES = {
    Tone.PLAIN: "",
    Tone.STRONG: "bold",
    Tone.QUIET: "dim",
    Tone.GOOD: "green",
    Tone.WARNING: "yellow",
    Tone.BAD: "red",
}
_GAP = 2
_MARKED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹]*$")
_BAR_WIDTH = 40
# Longer lines of prose are hard to read.
_PROSE_WIDTH = 110


class TerminalReporter:
    """Writes documents to a console; without one, to standard output."""

    def __init__(self, console: "Console | None" = None) -> None:
        from rich.console import Console

        self._console = console or Console(highlight=False, emoji=False, markup=False)

    def write(self, document: Document) -> None:
        """Write ``document``."""
        self._line(_text(document.title, Tone.STRONG))
        for section in document.sections:
            self._line(_text("", Tone.PLAIN))
            if section.heading:
                self._line(_text(section.heading, Tone.STRONG))
            for block in section.blocks:
                self._block(block)

    def write_report(self, document: Document) -> None:
        """Write ``document`` and, in a last line, where the terms that it uses are explained."""
        self.write(document)
        if terms_of(document):
            self._line(_text("", Tone.PLAIN))
            self._line(_text(f"Terms are explained in {PLACE}.", Tone.QUIET))

    def _line(self, text: "Text") -> None:
        self._console.print(text, soft_wrap=True)

    def _block(self, block: Block) -> None:
        match block:
            case Paragraph(text, tone):
                self._prose("", text, tone)
            case Notes(items):
                for mark, text in items:
                    self._prose(f"{mark} " if mark else "", text, Tone.QUIET if mark else Tone.PLAIN)
            case Command(text):
                for command in text.splitlines():
                    self._line(_text(f"    {plain(command)}", Tone.GOOD))
            case Bars(rows):
                for line in _bars(rows):
                    self._line(line)
            case Judgements(items):
                width = max((len(item.verdict) for item in items), default=0) + _GAP
                for item in items:
                    self._judgement(item, width)
            case Table():
                for line in table_lines(block, self._console.width):
                    self._line(line)

    def _judgement(self, item: Judgement, width: int) -> None:
        """Write the verdict in a column of its own, beside sentence and detail."""
        self._prose(item.verdict.ljust(width), item.sentence, item.tone)
        if item.detail:
            self._prose(" " * width, item.detail, Tone.QUIET)

    def _prose(self, lead: str, text: Words, tone: Tone) -> None:
        width = min(self._console.width, _PROSE_WIDTH)
        for number, line in enumerate(_text(text, tone).wrap(self._console, width - len(lead))):
            line.rstrip()
            self._line(_text(" " * len(lead) if number else lead, tone).append_text(line))


def _text(words: Words, tone: Tone) -> "Text":
    from rich.text import Text

    return Text(plain(str(words)), style=_STYLES[tone])


def _bars(rows: Sequence[tuple[Words, Figure]]) -> Iterator["Text"]:
    from rich.cells import cell_len

    most = max((count.value for _, count in rows), default=0)
    label_width = max((cell_len(str(label)) for label, _ in rows), default=0)
    count_width = max((len(str(count)) for _, count in rows), default=0)
    for label, count in rows:
        # Eighths of a cell: a class of few requests must still be visible.
        eighths = round(8 * _BAR_WIDTH * count.value / most) if most else 0
        eighths = max(eighths, 1) if count.value else 0
        bar = "█" * (eighths // 8) + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[eighths % 8]
        line = _text(f"{label!s:>{label_width}} {count!s:>{count_width}} ", Tone.PLAIN)
        yield line.append_text(_text(bar, Tone.GOOD))


# --- tables -----------------------------------------------------------------------------------------------


def _widths(table: Table) -> list[int]:
    from rich.cells import cell_len

    columns = zip(*table.rows, strict=True) if table.rows else ((),) * len(table.columns)
    return [
        max([cell_len(str(column.title)), *(cell_len(plain(str(cell.text))) for cell in cells)])
        for column, cells in zip(table.columns, columns, strict=True)
    ]


def _parts(table: Table, widths: Sequence[int], limit: int) -> list[list[int]]:
    """Return the columns of each part of a table that is wider than ``limit``; each part repeats those that
    name the rows.

    Columns of one group stay together if they fit.
    """
    lead = _naming(table, widths, limit)
    room = limit - sum(_with_gaps(widths[:lead])) + _GAP
    groups: list[list[int]] = []
    for index in range(lead, len(table.columns)):
        same = (
            groups
            and table.columns[index].group
            and str(table.columns[groups[-1][0]].group) == str(table.columns[index].group)
        )
        groups[-1].append(index) if same else groups.append([index])
    parts: list[list[int]] = [[]]
    for group in groups:
        for piece in [group] if _needed(table, group, widths) <= room else [[index] for index in group]:
            if parts[-1] and _needed(table, [*parts[-1], *piece], widths) > room:
                parts.append([])
            parts[-1].extend(piece)
    return [[*range(lead), *part] for part in parts]


def _naming(table: Table, widths: Sequence[int], limit: int) -> int:
    """Return how many columns name the rows: those of words before the first figure, if figures fit beside
    them.

    In a table of words alone, the first column names the rows.
    """
    figures = [index for index, column in enumerate(table.columns) if not column.text]
    lead = max(1, figures[0]) if figures else 1
    widest = max(widths[lead:], default=0)
    return lead if sum(_with_gaps(widths[:lead])) + widest <= limit else 1


def _with_gaps(widths: Sequence[int]) -> Iterator[int]:
    return (width + _GAP for width in widths)


def _needed(table: Table, chosen: Sequence[int], widths: Sequence[int]) -> int:
    columns, own = [table.columns[index] for index in chosen], [widths[index] for index in chosen]
    return sum(_with_gaps(_headed(columns, own)))


def _headed(columns: Sequence[Column], widths: Sequence[int]) -> list[int]:
    """Return ``widths``, wider for columns that are narrower than the heading of their group."""
    headed = list(widths)
    for start, stop in _groups(columns):
        span = sum(_with_gaps(widths[start:stop])) - _GAP
        each, rest = divmod(max(0, len(str(columns[start].group)) - span), stop - start)
        for index in range(start, stop):
            headed[index] += each + (index - start < rest)
    return headed


def _groups(columns: Sequence[Column]) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each group of neighbours."""
    start = 0
    for heading, members in groupby(columns, key=lambda column: str(column.group)):
        stop = start + len(list(members))
        if heading:
            yield start, stop
        start = stop


def _pad(text: "Text", width: int, left: bool) -> "Text":
    from rich.text import Text

    space = Text(" " * max(0, width - text.cell_len))
    return Text.assemble(text, space) if left else Text.assemble(space, text)


def _row(cells: Sequence[Entry], columns: Sequence[Column], widths: Sequence[int]) -> "Text":
    from rich.text import Text

    padded = [
        _pad(_text(cell.text, cell.tone), width, column.text)
        for cell, column, width in zip(cells, columns, widths, strict=True)
    ]
    line = Text(" " * _GAP).join(padded)
    line.rstrip()
    return line


def _group_line(columns: Sequence[Column], widths: Sequence[int]) -> "Text | None":
    """Return the line of the groups' headings, each over its columns; null if there are none."""
    if not any(column.group for column in columns):
        return None
    line = ""
    for start, stop in _groups(columns):
        span = sum(_with_gaps(widths[start:stop])) - _GAP
        title = f" {columns[start].group} "
        title = title.center(span, "─") if len(title) <= span else str(columns[start].group).rjust(span)
        line = line.ljust(sum(_with_gaps(widths[:start]))) + title
    return _text(line.rstrip(), Tone.QUIET)


def _hang_marks(table: Table) -> Table:
    """Return ``table`` with its footnotes' marks to the right of the numbers, so that digits stay under
    digits.
    """
    marks = [
        [len(_MARKED.findall(str(row[index].text))[0]) for row in table.rows]
        for index in range(len(table.columns))
    ]
    rows = tuple(
        tuple(
            cell
            if column.text
            else replace(cell, text=str(cell.text) + " " * (max(marks[index]) - marks[index][number]))
            for index, (cell, column) in enumerate(zip(row, table.columns, strict=True))
        )
        for number, row in enumerate(table.rows)
    )
    return replace(table, rows=rows)


def table_lines(table: Table, limit: int) -> Iterator["Text"]:
    """Yield the lines of ``table`` in at most ``limit`` columns where its widest column allows."""
    table = _hang_marks(table)
    widths = _widths(table)
    for number, part in enumerate(_parts(table, widths, limit)):
        if number:
            yield _text("", Tone.PLAIN)
        columns = [table.columns[index] for index in part]
        own = _headed(columns, [widths[index] for index in part])
        if (groups := _group_line(columns, own)) is not None:
            yield groups
        yield _row([Entry(column.title, Tone.STRONG) for column in columns], columns, own)
        for row in table.rows:
            yield _row([row[index] for index in part], columns, own)
