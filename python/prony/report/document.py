"""What a report says, as data: no colours, no widths, no format's markup.

A format (a terminal, a page) decides on the looks. Text may come from servers and logs: formats strip and
escape it.

Which terms of the glossary a document uses: formats link to them, or name the glossary.

>>> terms_of(Document("", (Section("", (Paragraph("5 blocks of 2 cells"),)),)))
('block', 'cell')
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from prony.core.glossary import terms_in
from prony.report.text import Figure, Part, Text, Words, text


class Tone(StrEnum):
    """What a text means to its reader; formats choose how to show it, never by colour alone."""

    PLAIN = "plain"
    STRONG = "strong"
    QUIET = "quiet"
    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text. ``least_lines``: as of a Section, if that has fewer."""

    text: Words
    tone: Tone = Tone.PLAIN
    least_lines: int = 1


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. Neighbours with the same ``group`` share that heading. ``text``: aligned as
    words, not numbers.
    """

    title: Words
    group: Words = ""
    text: bool = False


def headed(*titles: str, words: Collection[str] = ()) -> tuple[Column, ...]:
    """Return columns with these headings, of numbers but where `words` has the heading."""
    return tuple(Column(title, text=title in words) for title in titles)


@dataclass(frozen=True, slots=True)
class Entry:
    """The content of one row and one column of a table."""

    text: Words
    tone: Tone = Tone.PLAIN

    @classmethod
    def of(cls, part: Part, tone: Tone = Tone.PLAIN) -> Self:
        """Return the entry of one part."""
        return cls(text("{}", part), tone)


@dataclass(frozen=True, slots=True)
class Span:
    """A figure with the ends of its interval, for a bar; all of a table's in one unit."""

    value: Figure
    low: Figure
    high: Figure


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under columns; the first column names the row.

    ``in_one``: its columns are read together, so the names give way where lines are limited. ``spans``: a bar
    for each row, null for none, where a face has room for them; empty: no bars.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Entry, ...], ...]
    in_one: bool = False
    spans: tuple[Span | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Notes:
    """Remarks, each with its mark (a footnote's number, or empty)."""

    items: tuple[tuple[str, Words], ...]

    @classmethod
    def of(cls, lines: Iterable[Words]) -> Self:
        """Return notes without marks."""
        return cls(tuple(("", line) for line in lines))


@dataclass(frozen=True, slots=True)
class Command:
    """A command line to copy: never wrapped or shortened."""

    text: str


@dataclass(frozen=True, slots=True)
class Bars:
    """A histogram: label and count of each class, in order."""

    rows: tuple[tuple[Words, Figure], ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """A tested sentence: the verdict, the sentence, and the figures. ``least_lines``: as of a Section, if
    that has fewer.
    """

    verdict: str
    tone: Tone
    sentence: Words
    detail: Words = ""
    least_lines: int = 1


@dataclass(frozen=True, slots=True)
class Judgements:
    """Tested sentences."""

    items: tuple[Judgement, ...]


Block = Paragraph | Table | Notes | Command | Bars | Judgements


@dataclass(frozen=True, slots=True)
class Section:
    """Blocks under a heading; an empty heading is none.

    ``most_lines``: of a text, where lines are limited: the rest of it is in a longer report; null for all.
    ``least_lines``: of a text, where the document would be longer than its ``height``.
    """

    heading: Words
    blocks: tuple[Block, ...]
    most_lines: int | None = None
    least_lines: int = 1


@dataclass(frozen=True, slots=True)
class Document:
    """A report: a title and its sections, in the order in which they are read.

    ``height``: the lines that it should take at most, where lines are limited; null for any number.
    """

    title: Words
    sections: tuple[Section, ...]
    height: int | None = None


_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(slots=True)
class Footnotes:
    """Collects a table's footnotes: the same text gets the same mark.

    >>> notes = Footnotes()
    >>> notes.mark("not read"), notes.mark("no window"), notes.mark("not read")
    ('¹', '²', '¹')
    """

    _texts: dict[str, Words] = field(default_factory=dict)

    def mark(self, words: Words) -> str:
        """Return the mark of the footnote that says ``words``."""
        own = self._texts.setdefault(str(words), words)
        return str(list(self._texts).index(str(own)) + 1).translate(_SUPERSCRIPTS)

    def marked(self, shown: Part, *notes: Words) -> Text:
        """Return what is shown with the marks of its footnotes."""
        return text("{}{}", shown, "".join(map(self.mark, notes)))

    def notes(self) -> Notes:
        """Return the footnotes in the order of their marks."""
        return Notes(tuple((self.mark(words), words) for words in self._texts.values()))


def terms_of(document: Document) -> tuple[str, ...]:
    """Return the terms in the prose of a document, in alphabetical order."""
    return terms_in("\n".join(words for section in document.sections for words in _prose(section)))


def _prose(section: Section) -> Iterator[str]:
    for block in section.blocks:
        yield from _words(block)


def _words(block: Block) -> Iterator[str]:
    match block:
        case Paragraph(text):
            yield str(text)
        case Notes(items):
            yield from (str(text) for mark, text in items if mark.strip() != "|")
        case Judgements(items):
            yield from (f"{item.verdict} {item.sentence} {item.detail}" for item in items)
        case _:
            return
