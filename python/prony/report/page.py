"""A report made fit to be shown to others: without paths of the machine, nor its name, in what logs say.

Pure. System paths stay: they say what to change, and are alike on every machine.

>>> without_paths("File /home/me/shop/env/lib/app.py, line 3; see /proc/sys/net/core/somaxconn")
'File …/lib/app.py, line 3; see /proc/sys/net/core/somaxconn'
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from prony.report.document import (
    Block,
    Cell,
    Command,
    Document,
    Judgements,
    Notes,
    Paragraph,
    Section,
    Table,
)

__all__ = ["page", "without_paths"]

# Not within an address (`http://127.0.0.1/a/b`), and at least two folders deep: `/api/items` is a request.
_PATH = re.compile(r"(?<![\w.:/…])(?:/[\w.@+~-]+){3,}/?")
_SYSTEM = ("/proc/", "/sys/", "/dev/", "/usr/", "/etc/", "/bin/", "/lib/", "/sbin/")
_KEPT = 2


def without_paths(text: str) -> str:
    """Return text with the folders of each path left out but for the last."""
    return _PATH.sub(_shortened, text)


def _shortened(match: re.Match[str]) -> str:
    path = match.group(0)
    return path if path.startswith(_SYSTEM) else "…/" + "/".join(path.strip("/").split("/")[-_KEPT:])


def page(document: Document, host: str) -> Document:
    """Return the document as a page for others: ``host`` is the name of a machine that logs may tell."""
    sections = tuple(
        Section(without_paths(section.heading), tuple(_block(block, host) for block in section.blocks))
        for section in _answer_first(document.sections)
    )
    return Document(without_paths(document.title), sections)


def _answer_first(sections: Sequence[Section]) -> Sequence[Section]:
    """Return the last section, which is the answer, first: a page is read from its top, a terminal from its
    end.
    """
    if len(sections) < 2:
        return sections
    head, *others, answer = sections
    return (answer, replace(head, heading="What was measured"), *others)


def _block(block: Block, host: str) -> Block:
    match block:
        case Paragraph(text, tone):
            return Paragraph(without_paths(text), tone)
        case Notes(items):
            return Notes(tuple((mark, without_paths(_unnamed(mark, text, host))) for mark, text in items))
        case Command(text):
            return Command(without_paths(text))
        case Judgements(items):
            return Judgements(tuple(replace(one, detail=without_paths(one.detail)) for one in items))
        case Table(columns, rows):
            return Table(columns, tuple(tuple(map(_cell, row)) for row in rows))
        case _:
            return block


def _cell(cell: Cell) -> Cell:
    return replace(cell, text=without_paths(cell.text))


def _unnamed(mark: str, text: str, host: str) -> str:
    """Return the line of a log (which has its mark) without the machine's name; other words are ours."""
    if not host or not mark.strip().startswith("|"):
        return text
    return re.sub(rf"(?<![\w.-]){re.escape(host)}(?![\w-])", "HOST", text)
