"""A report that can be published: the lines of logs without the machine's paths and its name.

Pure. System paths stay: they show what to change, and are the same on every machine.

>>> without_paths("File /home/me/shop/env/lib/app.py, line 3; see /proc/sys/net/core/somaxconn")
'File …/lib/app.py, line 3; see /proc/sys/net/core/somaxconn'
"""

import re
from dataclasses import replace

from prony.report.document import (
    Block,
    Command,
    Document,
    Entry,
    Judgements,
    Notes,
    Paragraph,
    Section,
    Table,
)
from prony.report.text import Text, Words

__all__ = ["redacted", "redacted_section", "without_paths"]

# Not within an address (`http://127.0.0.1/a/b`), and at least two folders deep: `/api/items` is a request.
_PATH = re.compile(r"(?<![\w.:/…])(?:/[\w.@+~-]+){3,}/?")
_SYSTEM = ("/proc/", "/sys/", "/dev/", "/usr/", "/etc/", "/bin/", "/lib/", "/sbin/")
_KEPT = 2


def without_paths(text: str) -> str:
    """Return text with each path shortened to its last part."""
    return _PATH.sub(_shortened, text)


def _shortened(match: re.Match[str]) -> str:
    path = match.group(0)
    return path if path.startswith(_SYSTEM) else "…/" + "/".join(path.strip("/").split("/")[-_KEPT:])


def redacted(document: Document, host: str) -> Document:
    """Return the document as a page to publish. ``host``: the machine's name, which logs may contain."""
    sections = tuple(redacted_section(section, host) for section in document.sections)
    return replace(document, title=_words(document.title), sections=sections)


def redacted_section(section: Section, host: str) -> Section:
    """Return a section likewise."""
    blocks = tuple(_block(block, host) for block in section.blocks)
    return replace(section, heading=_words(section.heading), blocks=blocks)


def _words(words: Words) -> Words:
    """Return words without paths; numbers are kept."""
    return words.mapped(without_paths) if isinstance(words, Text) else without_paths(words)


def _block(block: Block, host: str) -> Block:
    match block:
        case Paragraph(words, tone):
            return Paragraph(_words(words), tone)
        case Notes(items):
            return Notes(tuple((mark, _words(_unnamed(mark, words, host))) for mark, words in items))
        case Command(command):
            return Command(without_paths(command))
        case Judgements(items):
            return Judgements(tuple(replace(one, detail=_words(one.detail)) for one in items))
        case Table(_, rows):
            return replace(block, rows=tuple(tuple(map(_entry, row)) for row in rows))
        case _:
            return block


def _entry(entry: Entry) -> Entry:
    return replace(entry, text=_words(entry.text))


def _unnamed(mark: str, words: Words, host: str) -> Words:
    """Return a line of a log (it has a mark) without the machine's name; other words are Prony's own."""
    if not host or not mark.strip().startswith("|"):
        return words
    name = re.compile(rf"(?<![\w.-]){re.escape(host)}(?![\w-])")
    return name.sub("HOST", str(words))
