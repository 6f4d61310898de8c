"""What a report says, as data: no colours, no widths, no format's markup.

A face (a terminal, a page) decides how it looks. Text may come from servers and logs: faces strip and
escape it.
"""

from dataclasses import dataclass, field
from enum import StrEnum

__all__ = [
    "Bars",
    "Block",
    "Cell",
    "Column",
    "Command",
    "Document",
    "Footnotes",
    "Judgement",
    "Judgements",
    "Notes",
    "Paragraph",
    "Section",
    "Table",
    "Tone",
]


class Tone(StrEnum):
    """What a text means to its reader; faces choose how to show it, never by colour alone."""

    PLAIN = "plain"
    STRONG = "strong"
    QUIET = "quiet"
    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text."""

    text: str
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. Neighbours with the same ``group`` share that heading. ``text``: aligned as
    words, not numbers.
    """

    title: str
    group: str = ""
    text: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table."""

    text: str
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under columns; the first column names the row."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True)
class Notes:
    """Remarks, each with its mark (a footnote's number, or empty)."""

    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Command:
    """A command line to copy: never wrapped or shortened."""

    text: str


@dataclass(frozen=True, slots=True)
class Bars:
    """A histogram: (label, count, note) for each class, in order."""

    rows: tuple[tuple[str, int, str], ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """A sentence that was put to the test: the verdict, the sentence, and what was found."""

    verdict: str
    tone: Tone
    sentence: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Judgements:
    """Sentences that were put to the test."""

    items: tuple[Judgement, ...]


Block = Paragraph | Table | Notes | Command | Bars | Judgements


@dataclass(frozen=True, slots=True)
class Section:
    """Blocks under a heading; an empty heading is none."""

    heading: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """A report: a title and its sections, in the order in which they are read."""

    title: str
    sections: tuple[Section, ...]


_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(slots=True)
class Footnotes:
    """Collects a table's footnotes: the same text gets the same mark.

    >>> notes = Footnotes()
    >>> notes.mark("not read"), notes.mark("no window"), notes.mark("not read")
    ('¹', '²', '¹')
    """

    _texts: list[str] = field(default_factory=list)

    def mark(self, text: str) -> str:
        """Return the mark of the footnote that says ``text``."""
        if text not in self._texts:
            self._texts.append(text)
        return str(self._texts.index(text) + 1).translate(_SUPERSCRIPTS)

    def notes(self) -> Notes:
        """Return the footnotes in the order of their marks."""
        return Notes(tuple((self.mark(text), text) for text in self._texts))
