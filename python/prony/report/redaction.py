"""A report that can be published: without the machine's paths, its users, and its name.

Pure. System paths stay: they show what to change, and are the same on every machine. An archive does not hold
the name of its machine, so the name is that of the machine which makes the report.

>>> without_paths("File /home/me/shop/env/lib/app.py, line 3; see /proc/sys/net/core/somaxconn")
'File …/app.py, line 3; see /proc/sys/net/core/somaxconn'
>>> without_traces("--chdir=/srv/acme --bind bench-7:80 --config file:///home/me/g.py", "bench-7")
'--chdir=… --bind HOST:80 --config …/g.py'
"""

import re
from collections.abc import Set
from dataclasses import replace

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
    Section,
    Table,
)
from prony.report.text import Text, Words

_PART = r"[\w.@+~-]+"
# Folders in which people keep what is theirs: what lies in one is a path however short it is.
_ROOTS = "home|Users|root|srv|opt|mnt|media|data|var|tmp|private|Volumes|export|workspace|work|builds?"
# Where nothing else says that it is a path, three folders deep: `/api/items` is a request.
_PATH = re.compile(
    rf"""file://(?:/{_PART})+/?
    | (?<=[`'"])/(?:{_ROOTS})/[^`'"\n]*(?=[`'"])
    | (?<![\w./…~-])(?:~[\w-]*(?:/{_PART})+ | /(?:{_ROOTS})(?:/{_PART})+ | (?:/{_PART}){{3,}})/?""",
    re.VERBOSE,
)
# Where it is known what requests ask for, two folders deep.
_ANY_PATH = re.compile(_PATH.pattern.replace("{3,}", "{2,}"), re.VERBOSE)
_SYSTEM = ("/proc/", "/sys/", "/dev/", "/usr/", "/etc/", "/bin/", "/lib/", "/sbin/")
_OWNED = re.compile(rf"/(?:home|Users)(?:/{_PART})?|/(?:{_ROOTS})(?:/{_PART})?$|~[\w-]*")


def without_paths(text: str) -> str:
    """Return text with each path shortened to its last part; of somebody's own folder nothing is left."""
    return _PATH.sub(_shortened, text)


def paths_in(text: str) -> list[str]:
    """Return the paths of a text that are taken out where all requests are known: also two folders deep."""
    found = [match.group(0).removeprefix("file://") for match in _ANY_PATH.finditer(text)]
    return [path for path in found if not path.startswith(_SYSTEM)]


def is_owned(path: str) -> bool:
    """Return whether a path lies where people keep what is theirs."""
    return _OWNED.match(path) is not None


def without_traces(text: str, host: str, requests: Set[str] | None = None) -> str:
    """Return text without paths and without the machine's name; an empty ``host`` is not looked for.

    ``requests``: all paths that requests ask for, where they are known: they stay, and no other.
    """
    if requests is None:
        kept = without_paths(text)
    else:
        kept = _ANY_PATH.sub(
            lambda match: match.group(0) if match.group(0) in requests else _shortened(match), text
        )
    if not host or host == "localhost":
        return kept
    return re.sub(rf"(?<![\w.-]){re.escape(host)}(?![\w-])", "HOST", kept)


def _shortened(match: re.Match[str]) -> str:
    path = match.group(0).removeprefix("file://").rstrip("/")
    if path.startswith(_SYSTEM):
        return match.group(0)
    below = _OWNED.sub("", path, count=1) if _OWNED.match(path) else path
    return "…/" + below.rpartition("/")[2] if below else "…"


def redacted(document: Document, host: str) -> Document:
    """Return the document as a page to publish. ``host``: the machine's name, which logs may contain."""
    sections = tuple(redacted_section(section, host) for section in document.sections)
    return replace(document, title=_words(document.title, host), sections=sections)


def redacted_section(section: Section, host: str) -> Section:
    """Return a section likewise."""
    blocks = tuple(_block(block, host) for block in section.blocks)
    return replace(section, heading=_words(section.heading, host), blocks=blocks)


def _words(words: Words, host: str) -> Words:
    """Return words without paths, and what comes from outside without the machine's name, which may be a word
    of Prony's own; numbers are kept.
    """
    if isinstance(words, Text):
        return words.mapped(without_paths, quoted=lambda quote: without_traces(quote, host))
    return without_paths(words)


def _block(block: Block, host: str) -> Block:
    match block:
        case Paragraph(words, tone):
            return Paragraph(_words(words, host), tone)
        case Notes(items):
            return Notes(tuple((mark, _noted(mark, words, host)) for mark, words in items))
        case Command(command):
            return Command(without_traces(command, host))
        case Judgements(items):
            return Judgements(tuple(_judged(one, host) for one in items))
        case Table(columns, rows):
            titles = tuple(_column(column, host) for column in columns)
            own = tuple(tuple(_entry(entry, host) for entry in row) for row in rows)
            return replace(block, columns=titles, rows=own)
        case Bars(rows):
            return Bars(tuple((_words(words, host), figure) for words, figure in rows))


def _column(column: Column, host: str) -> Column:
    return replace(column, title=_words(column.title, host), group=_words(column.group, host))


def _entry(entry: Entry, host: str) -> Entry:
    return replace(entry, text=_words(entry.text, host))


def _judged(one: Judgement, host: str) -> Judgement:
    return replace(one, sentence=_words(one.sentence, host), detail=_words(one.detail, host))


def _noted(mark: str, words: Words, host: str) -> Words:
    """Return a note; with a mark it is a line of a log, all of it from outside."""
    is_log = mark.strip().startswith("|")
    return without_traces(str(words), host) if is_log else _words(words, host)
