"""A document as Markdown, for pages and issues.

On a page, the first use of each term of the glossary links to its definition at the end: a page must explain
itself wherever it is published. Text may come from servers and logs: control characters are dropped, and
characters that Markdown or HTML would read as markup are escaped.

>>> from prony.report.document import Section
>>> print(markdown(Document("A *title*", (Section("", (Paragraph("1 < 2"),)),))), end="")
# A \\*title\\*
<BLANKLINE>
1 &lt; 2
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from prony.core.glossary import TERMS, anchor, replaced
from prony.report.document import (
    Bars,
    Block,
    Command,
    Document,
    Entry,
    Judgement,
    Judgements,
    Notes,
    Paragraph,
    Table,
    Tone,
    terms_of,
)
from prony.report.text import Words

_MARKUP = re.compile(r"([\\`*_\[\]|~])")
# At the beginning of a line these would begin a list, a quotation or a heading.
_LINE_START = re.compile(r"^(\s*)([-+#>]|\d+\.)(?=\s)")
_LONGEST_BAR = 40


def markdown(document: Document, level: int = 1, with_terms: bool = True) -> str:
    """Return the document as Markdown; its title is a heading of ``level``.

    ``with_terms``: it is a page of its own, to publish anywhere; it defines the terms that it uses, and links
    to them.
    """
    parts = _parts(document, level)
    if with_terms:
        terms = terms_of(document)
        parts = chain(_linked(parts, terms), _terms(terms))
    return "\n\n".join(parts) + "\n"


def _parts(document: Document, level: int) -> Iterator[str]:
    yield f"{'#' * level} {_text(document.title)}"
    for section in document.sections:
        if section.heading:
            yield f"{'#' * (level + 1)} {_text(section.heading)}"
        yield from (text for block in section.blocks if (text := _block(block)))


def _linked(parts: Iterable[str], terms: Iterable[str]) -> Iterator[str]:
    """Yield the parts; in prose, the first use of each term is a link to its definition."""
    left = set(terms)

    def link(term: str, words: str) -> str:
        if term not in left:
            return words
        left.remove(term)
        return f"[{words}](#{anchor(term)})"

    for part in parts:
        yield part if part.startswith(("#", "|", "```")) else replaced(part, link)


def _terms(terms: Sequence[str]) -> Iterator[str]:
    if terms:
        yield "## Terms"
    for term in terms:
        yield f"### {term}"
        yield _text(TERMS[term])


def _block(block: Block) -> str:
    match block:
        case Paragraph(text, tone):
            words = _line(text)
            return f"**{words}**" if tone in (Tone.STRONG, Tone.BAD) else words
        case Notes():
            return _notes(block)
        case Command(text):
            return _code(text)
        case Bars(rows):
            most = max((count.value for _, count in rows), default=0) or 1
            bars = (
                f"{label!s:>12} {'#' * round(_LONGEST_BAR * count.value / most):<{_LONGEST_BAR}} {count}"
                for label, count in rows
            )
            return _code("\n".join(line.rstrip() for line in bars))
        case Judgements(items):
            return "\n".join(map(_judgement, items))
        case Table():
            return "\n".join(_table(block))


def _notes(notes: Notes) -> str:
    if notes.items and all(mark.strip() == "|" for mark, _ in notes.items):
        # The lines of a log.
        return _code("\n".join(str(text) for _, text in notes.items))
    return "\n".join(f"- {f'{mark} ' if mark else ''}{_text(text)}" for mark, text in notes.items)


def _judgement(item: Judgement) -> str:
    detail = f" *{_text(item.detail)}*" if item.detail else ""
    lead = f"**{_text(item.verdict)}**: " if item.verdict else ""
    return f"- {lead}{_text(item.sentence)}.{detail}"


def _table(table: Table) -> Iterator[str]:
    # Markdown has one line of headings: each column has its group's name before its own.
    titles = (
        _text(f"{column.group}: {column.title}" if column.group else column.title) for column in table.columns
    )
    yield f"| {' | '.join(titles)} |"
    first, *others = table.columns
    marks = ("---", *("---" if column.text else "---:" for column in others)) if first else ()
    yield f"|{'|'.join(marks)}|"
    for row in table.rows:
        yield f"| {' | '.join(_entry(entry) for entry in row)} |"


def _entry(entry: Entry) -> str:
    text = _text(entry.text)
    return f"**{text}**" if text and entry.tone in (Tone.STRONG, Tone.BAD) else text


def _line(text: Words) -> str:
    return _LINE_START.sub(r"\1\\\2", _text(text))


def _text(words: Words) -> str:
    plain = "".join(letter if letter.isprintable() else " " for letter in str(words))
    return _MARKUP.sub(r"\\\1", plain.replace("&", "&amp;").replace("<", "&lt;"))


def _code(text: str) -> str:
    """Return the lines unchanged, fenced by more backticks than they contain."""
    lines = ["".join(letter if letter.isprintable() else " " for letter in line) for line in text.split("\n")]
    longest = max((len(run) for line in lines for run in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([f"{fence}text", *lines, fence])
