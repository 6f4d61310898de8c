"""Documents as HTML. All text may come from anybody: whatever is not written here is escaped.

Each number keeps its value, for sorting, and its place in the report's JSON.

>>> from prony.report.document import Paragraph
>>> block_html(Paragraph("1 < 2 blocks"))
'<p>1 &lt; 2 <a class="term" href="#term-block">blocks</a></p>'

A page around its content: one file that asks nothing of any network, under a policy that says so.

Scripts and styles stand in it and are allowed by their digests; the charting library is compressed, and its
digest is that of what is unpacked.

*Source*: Content Security Policy Level 3, sections 6.1 and 8.4 (hashes).
"""

import gzip
import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from itertools import groupby

from prony.core.glossary import anchor, replaced
from prony.core.safe_text import plain
from prony.model.json_codec import Json
from prony.report.document import (
    Bars,
    Block,
    Column,
    Command,
    Entry,
    Judgement,
    Judgements,
    Notes,
    Paragraph,
    Section,
    Table,
    Tone,
)
from prony.report.page.chart import VARIABLES, Chart, legible
from prony.report.text import Figure, Words

_HELD = re.compile(r'(?<=<script type="text/plain" id="charts">)[^<]+')


def safe(text: str) -> str:
    """Return text from anywhere as HTML, without control characters."""
    return escape(plain(text), quote=True)


def words_html(words: Words) -> str:
    """Return words as HTML; a number carries its value and its place."""
    if isinstance(words, str):
        return safe(words)
    return "".join(_part(part) for part in words.parts)


def _part(part: object) -> str:
    if not isinstance(part, Figure):
        return safe(str(part))
    return f'<data value="{part.value!r}" data-at="{safe(part.pointer)}">{safe(str(part))}</data>'


def prose(words: Words) -> str:
    """Return words as HTML in which terms of the glossary are links to their definitions."""
    if isinstance(words, str):
        return _linked(safe(words))
    return "".join(_linked(_part(part)) if isinstance(part, str) else _part(part) for part in words.parts)


def _linked(html: str) -> str:
    return replaced(html, lambda term, found: f'<a class="term" href="#term-{anchor(term)}">{found}</a>')


def section_html(section: Section, level: int = 2) -> str:
    """Return a section under its heading."""
    heading = f"<h{level}>{words_html(section.heading)}</h{level}>\n" if section.heading else ""
    return heading + "\n".join(map(block_html, section.blocks))


def block_html(block: Block) -> str:
    """Return a block of a document."""
    match block:
        case Paragraph(words, tone):
            shown = "" if tone is Tone.PLAIN else f' class="{tone.value}"'
            return f"<p{shown}>{prose(words)}</p>"
        case Notes():
            return _notes(block)
        case Command(text):
            return f'<pre class="command"><code>{safe(text)}</code></pre>'
        case Bars(rows):
            return _bars(rows)
        case Judgements(items):
            return f'<ul class="judgements">{"".join(map(_judgement, items))}</ul>'
        case Table():
            return table_html(block)


def _notes(notes: Notes) -> str:
    if notes.items and all(mark.strip() == "|" for mark, _ in notes.items):
        lines = "\n".join(safe(str(words)) for _, words in notes.items)
        return f'<pre class="log">{lines}</pre>'
    items = "".join(
        f"<li>{f'<sup>{safe(mark)}</sup> ' if mark else ''}{prose(words)}</li>" for mark, words in notes.items
    )
    return f'<ul class="notes">{items}</ul>'


def _bars(rows: Sequence[tuple[Words, Figure]]) -> str:
    most = max((count.value for _, count in rows), default=0) or 1
    lines = (
        f'<tr><th scope="row">{words_html(label)}</th><td>{_part(count)}</td>'
        f'<td class="bar"><meter min="0" max="{most!r}" value="{count.value!r}"></meter></td></tr>'
        for label, count in rows
    )
    return f'<div class="scroll"><table class="bars">{"".join(lines)}</table></div>'


def _judgement(item: Judgement) -> str:
    detail = f'<span class="detail">{words_html(item.detail)}</span>' if item.detail else ""
    verdict = f'<b class="verdict {item.tone.value}">{safe(item.verdict)}</b>'
    return f"<li>{verdict} <span>{prose(item.sentence)}</span>{detail}</li>"


# --- tables -----------------------------------------------------------------------------------------------


def table_html(table: Table) -> str:
    """Return a table that a script can sort; it scrolls by itself where it is too wide."""
    head = "".join(_heading(column) for column in table.columns)
    rows = "".join(f"<tr>{''.join(_cells(row, table.columns))}</tr>" for row in table.rows)
    return (
        f'<div class="scroll" tabindex="0"><table class="figures"><thead>{_groups(table.columns)}'
        f"<tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _groups(columns: Sequence[Column]) -> str:
    if not any(column.group for column in columns):
        return ""
    cells = []
    for group, members in groupby(columns, key=lambda column: str(column.group)):
        span = len(list(members))
        cells.append(
            f'<th colspan="{span}" scope="colgroup" class="group">{safe(group)}</th>'
            if group
            else f'<td colspan="{span}"></td>'
        )
    return f"<tr>{''.join(cells)}</tr>"


def _heading(column: Column) -> str:
    words = words_html(column.title)
    kind = ' class="words"' if column.text else ""
    return f'<th scope="col"{kind}>{words}</th>' if words else f"<td{kind}></td>"


def _cells(row: Sequence[Entry], columns: Sequence[Column]) -> Iterator[str]:
    for k, (entry, column) in enumerate(zip(row, columns, strict=True)):
        kinds = [
            name for name in ("words" if column.text else "", entry.tone.value) if name not in ("", "plain")
        ]
        kind = f' class="{" ".join(kinds)}"' if kinds else ""
        words = words_html(entry.text)
        # An empty name says "as above", and is no heading.
        tag, scope = ("th", ' scope="row"') if k == 0 and words else ("td", "")
        yield f"<{tag}{scope}{kind}>{words}</{tag}>"


@cache
def _asset(name: str) -> bytes:
    return (files("prony.report.page") / "assets" / name).read_bytes()


@cache
def _library() -> tuple[str, str]:
    """Return the charting library, compressed, and the digest of its text."""
    packed = _asset("vega.js.gz")
    return b64encode(packed).decode(), _digest(gzip.decompress(packed))


def _digest(script: bytes) -> str:
    return f"'sha256-{b64encode(sha256(script).digest()).decode()}'"


def _packed(data: Json) -> str:
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False)
    return b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


def _data(charts: Sequence[Chart]) -> str:
    return _packed({"theme": dict(VARIABLES), "charts": {chart.key: legible(chart.spec) for chart in charts}})


def unpacked(finished: str) -> str:
    """Return a finished page with the data of its charts as text."""
    return _HELD.sub(lambda held: gzip.decompress(b64decode(held[0])).decode(), finished)


def page(title: str, content: str, charts: Sequence[Chart]) -> str:
    """Return a page with this content. ``charts``: those that a reader may turn into interactive ones."""
    style, script = _asset("page.css"), _asset("page.js")
    library, digest = _library() if charts else ("", "")
    policy = (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)} {digest}; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    held = (
        f'<script type="text/plain" id="charts">{_data(charts)}</script>\n'
        f'<script type="text/plain" id="library">{library}</script>\n'
        f"<!--\n{_asset('vega.licence.txt').decode()}-->\n"
        if charts
        else ""
    )
    return (
        "<!doctype html>\n"
        f'<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{safe(title)}</title>\n<style>{style.decode()}</style>\n</head>\n"
        f"<body>\n{content}\n{held}<script>{script.decode()}</script>\n</body>\n</html>\n"
    )
