"""Documents on a terminal: as wide as the terminal, readable without colour.

Control characters are removed from all text, and it is never parsed as markup: a server's log must not
control the reader's terminal.

*Source*: NO_COLOR, no-color.org.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from prony.core.glossary import PLACE
from prony.core.safe_text import plain
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
    Span,
    Table,
    Tone,
    terms_of,
)
from prony.report.text import Figure, Words

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

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
# Columns of prose in a file, and of a table there.
_IN_A_FILE, _UNSPLIT = 110, 10_000
# Where a part of a sentence ends, not within a list of numbers.
_PART = re.compile(r"[.;:](?= )|,(?= \D)| (?=\()")
_CUT = "…"
_MORE = " (and more)"
_LEAST_NAME, _LEAST_WIDTH = 8, 40
# A table of more lines leaves too little of a screen.
_MOST_FOLDED = 12
# A shorter bar shows no interval, a longer one no more than this.
_LEAST_BAR, _MOST_BAR = 10, 30


class TerminalReporter:
    """Writes documents to a console; without one, to standard output."""

    def __init__(self, console: "Console | None" = None) -> None:
        self._console = console or _console()
        # Where less fits, the terminal breaks the lines.
        width = self._console.width = max(self._console.width, _LEAST_WIDTH)
        self._prose_width = width if self._console.is_terminal else min(width, _IN_A_FILE)

    def write(self, document: Document) -> None:
        """Write ``document``; one with a height, in at most so many lines if it can be."""
        lines: list[Text] = []
        for squeezed in range(1 + _squeezable(document)):
            lines = list(self._lines(document, squeezed))
            if document.height is None or self._height(lines) <= document.height:
                break
        for line in lines:
            self._line(line)

    def _height(self, lines: "Sequence[Text]") -> int:
        """Return how many lines of the terminal these take: it breaks a command that is too long."""
        return sum(max(1, -(-line.cell_len // self._console.width)) for line in lines)

    def _lines(self, document: Document, squeezed: int) -> Iterator["Text"]:
        """Yield the lines of a document; ``squeezed``: how many lines each text that can gives up."""
        yield _text(document.title, Tone.STRONG)
        for section in document.sections:
            yield _text("", Tone.PLAIN)
            if section.heading:
                yield _text(section.heading, Tone.STRONG)
            most = section.most_lines
            most = None if most is None else max(section.least_lines, most - squeezed)
            for block in section.blocks:
                yield from self._block(block, most)

    def write_report(self, document: Document) -> None:
        """Write ``document`` and, in a last line, where the terms that it uses are explained."""
        self.write(document)
        if terms_of(document):
            self._line(_text("", Tone.PLAIN))
            self._line(_text(f"Terms are explained in {PLACE}.", Tone.QUIET))

    def _line(self, text: "Text") -> None:
        self._console.print(text, soft_wrap=True)

    def _block(self, block: Block, most_lines: int | None) -> Iterator["Text"]:
        match block:
            case Paragraph(text, tone, least_lines):
                yield from self._prose("", text, tone, _at_least(least_lines, most_lines))
            case Notes(items):
                for mark, text in items:
                    tone = Tone.QUIET if mark else Tone.PLAIN
                    yield from self._prose(f"{mark} " if mark else "", text, tone, most_lines)
            case Command(text):
                for command in text.splitlines():
                    yield _text(f"    {plain(command)}", Tone.GOOD)
            case Bars(rows):
                yield from _bars(rows)
            case Judgements(items):
                width = max((len(item.verdict) for item in items), default=0) + _GAP
                for item in items:
                    yield from self._judgement(item, width, most_lines)
            case Table():
                yield from table_lines(block, self._console.width, self._shows_bars)

    @property
    def _shows_bars(self) -> bool:
        """Whether bars can be shown, and are of use: on a terminal that has their characters."""
        return self._console.is_terminal and self._console.encoding.lower().startswith("utf")

    def _judgement(self, item: Judgement, width: int, most_lines: int | None) -> Iterator["Text"]:
        """Yield the verdict in a column of its own, beside sentence and detail."""
        most = _at_least(item.least_lines, most_lines)
        yield from self._prose(item.verdict.ljust(width), item.sentence, item.tone, most)
        if item.detail:
            yield from self._prose(" " * width, item.detail, Tone.QUIET, most_lines)

    def _prose(self, lead: str, text: Words, tone: Tone, most_lines: int | None) -> Iterator["Text"]:
        def wrapped(words: Words) -> "list[Text]":
            return list(_text(words, tone).wrap(self._console, self._prose_width - len(lead)))

        lines = wrapped(text)
        if most_lines is not None and len(lines) > most_lines:
            shorter = map(wrapped, _beginnings(str(text)))
            fitting = next((one for one in shorter if len(one) <= most_lines), None)
            lines = fitting or _broken_off(lines[:most_lines], self._prose_width - len(lead))
        for number, line in enumerate(lines):
            line.rstrip()
            yield _text(" " * len(lead) if number else lead, tone).append_text(line)


def _console() -> "Console":
    """Return standard output; where that is no terminal and nobody says its width, tables are not split."""
    from rich.console import Console

    found = Console(highlight=False, emoji=False, markup=False)
    if not found.is_terminal and "COLUMNS" not in os.environ:
        found.width = _UNSPLIT
    return found


def _broken_off(lines: "list[Text]", width: int) -> "list[Text]":
    """Return lines that say at their end that there is more."""
    *whole, last = lines
    kept = last.plain.rstrip()
    if len(kept) > width - len(_MORE):
        kept = kept[: width - len(_MORE)].rpartition(" ")[0]
    return [*whole, _text(f"{kept}{_MORE}", Tone.PLAIN)]


def _beginnings(text: str) -> Iterator[str]:
    """Yield what a text says without its last part, without its last two parts, and so on, but never only
    whom it is about.

    >>> list(_beginnings("wsgiref, bjoern: a queue was full (5 of 10 trials): clients wait 1, 3 or 7 s"))
    ['wsgiref, bjoern: a queue was full (5 of 10 trials).', 'wsgiref, bjoern: a queue was full.']
    """
    about = text.find(": ")
    for end in reversed(list(_PART.finditer(text))):
        head = text[: end.start()]
        if end.start() > about and head.count("(") == head.count(")"):
            yield f"{head}."


def _at_least(least: int, most: int | None) -> int | None:
    return None if most is None else max(least, most)


def _squeezable(document: Document) -> int:
    """Return how many lines the texts of a document can give up at most."""
    return max(
        (one.most_lines - one.least_lines for one in document.sections if one.most_lines is not None),
        default=0,
    )


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
    """Return the line of the groups' headings, each over its columns; None if there are none."""
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


def table_lines(table: Table, limit: int, shows_bars: bool = False) -> Iterator["Text"]:
    """Yield the lines of ``table`` in at most ``limit`` columns where its widest column allows.

    ``shows_bars``: with its bars, where they fit beside it.
    """
    if table.in_one:
        yield from _lines_in_one(table, limit, shows_bars)
        return
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


# --- a table whose columns stay together ------------------------------------------------------------------


def _lines_in_one(table: Table, limit: int, shows_bars: bool) -> Iterator["Text"]:
    """Yield a table that is never cut between columns: where it is too wide, its names give way."""
    widths = _widths(table)
    room = limit - sum(_with_gaps(widths[1:]))
    widths[0] = max(min(widths[0], room), _LEAST_NAME)
    spare = limit - sum(_with_gaps(widths))
    bars = list(span_bars(table.spans, min(spare, _MOST_BAR))) if shows_bars and spare >= _LEAST_BAR else []
    names = _names([plain(str(row[0].text)) for row in table.rows], widths[0])
    yield _row([Entry(column.title, Tone.STRONG) for column in table.columns], table.columns, widths)
    for number, (name, *others) in enumerate(table.rows):
        first, *more = names[number]
        line = _row([replace(name, text=first), *others], table.columns, widths)
        if bars and bars[number]:
            line.append(" " * (sum(_with_gaps(widths)) - line.cell_len))
            line.append_text(_text(bars[number], Tone.GOOD))
        yield line
        yield from (_text(part, name.tone) for part in more)


def _names(names: Sequence[str], width: int) -> list[list[str]]:
    """Return the lines of each name: folded where that leaves the table short, else cut in the middle if
    they stay distinct.
    """
    folded = [_folded(name, width) for name in names]
    short = [_shortened(name, width) for name in names]
    if sum(map(len, folded)) <= _MOST_FOLDED or len(set(short)) < len(set(names)):
        return folded
    return [[name] for name in short]


def _shortened(name: str, width: int) -> str:
    from rich.cells import cell_len, set_cell_size

    if cell_len(name) <= width:
        return name
    head = (width - len(_CUT)) // 2
    tail = set_cell_size(name[::-1], width - len(_CUT) - head)[::-1]
    return set_cell_size(name, head).rstrip() + _CUT + tail.lstrip()


def _folded(name: str, width: int) -> list[str]:
    """Return a name in one line or two, the second indented: cut before a sign or a space if it can be."""
    from rich.cells import cell_len, set_cell_size

    if cell_len(name) <= width:
        return [name]
    marks = [at for at, sign in enumerate(name) if at and sign in "+@ " and cell_len(name[:at]) <= width]
    cut = marks[-1] if marks else len(set_cell_size(name, width).rstrip()) or 1
    rest = "  " + name[cut:].lstrip()
    if cell_len(rest) > width:
        rest = set_cell_size(rest, width - len(_CUT)).rstrip() + _CUT
    return [name[:cut].rstrip(), rest]


def span_bars(spans: Sequence[Span | None], width: int) -> Iterator[str]:
    """Yield a bar for each figure, from zero on, in one scale; an empty one for None.

    `━` up to the figure `┿`, `┝` and `┤` at the ends of its interval.
    """
    ends = [max(span.high.value, span.value.value) for span in spans if span is not None]
    most = max(ends, default=0.0)
    for span in spans:
        yield _bar(span, width, most) if span is not None and most > 0 else ""


def _bar(span: Span, width: int, most: float) -> str:
    figures = (span.low, span.value, span.high)
    low, value, high = (round((width - 1) * min(max(one.value / most, 0.0), 1.0)) for one in figures)
    cells = ["━" if at <= value else "─" for at in range(max(high, value) + 1)]
    cells[high], cells[low], cells[value] = "┤", "┝", "┿"
    return "".join(cells)
