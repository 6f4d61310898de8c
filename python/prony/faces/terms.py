"""Which terms of the glossary a document uses: faces link to them, or name the glossary.

Must not know what a document says: lines of logs and commands are no prose.

>>> terms_of(Document("", (Section("", (Paragraph("5 blocks of 2 cells"),)),)))
('block', 'cell')
"""

from collections.abc import Iterator

from prony.glossary import terms_in
from prony.report.document import Block, Document, Judgements, Notes, Paragraph, Section


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
