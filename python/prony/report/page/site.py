"""The index of a site: every study's page in one list that a reader searches and filters by server."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from prony.reading.brief import brief_of
from prony.reading.study import StudyResults
from prony.report.forms import day
from prony.report.page.markup import page, safe, words_html
from prony.report.sections.answer import leader_words
from prony.report.text import pointer


@dataclass(frozen=True, slots=True)
class Listed:
    """One study of a site: its page's ``file``, and what the index says of it."""

    file: str
    title: str
    question: str
    answer: str
    servers: tuple[str, ...]
    started_unix_ns: int
    prony_version: str


def index_entry(file: str, reading: StudyResults) -> Listed:
    """Return the entry of a study whose page is ``file``."""
    plan = reading.plan
    brief = None if reading.is_search else brief_of(reading)
    said = leader_words(brief.group, pointer("groups", brief.place, "answer")) if brief else None
    return Listed(
        file=file,
        title=plan.title or plan.name,
        question=plan.question,
        # Its numbers stand in the page itself, with their places.
        answer=str(said) if said is not None else "",
        servers=tuple(sorted({subject.server for subject in plan.subjects()})),
        started_unix_ns=min((run.started_unix_ns for run in reading.runs), default=0),
        prony_version=reading.runs[0].prony_version if reading.runs else "unknown",
    )


def index_page(studies: Iterable[Listed]) -> str:
    """Return the index, the newest study first."""
    newest = sorted(studies, key=lambda one: (-one.started_unix_ns, one.file))
    body = "\n".join(
        (
            '<a class="skip" href="#studies">To the studies</a>',
            f"<header><h1>Studies</h1></header>\n<main>{_filters(newest)}",
            f'<ul id="studies" class="studies">{"".join(map(_item, newest))}</ul></main>',
            "<footer>Made by Prony. These files are complete: they load nothing from the network.</footer>",
        )
    )
    return page("Studies", body, ())


def _filters(studies: Sequence[Listed]) -> str:
    """Return the fields that a script shows and reads."""
    servers = sorted({server for one in studies for server in one.servers})
    options = "".join(f'<option value="{safe(one)}">{safe(one)}</option>' for one in servers)
    return (
        '<div id="filters" class="tools" hidden>'
        '<label>Search <input type="search" id="search"></label> '
        f'<label>Server <select id="server"><option value="">all</option>{options}</select></label> '
        '<span id="found" role="status"></span></div>'
    )


def _item(one: Listed) -> str:
    on = day(one.started_unix_ns) if one.started_unix_ns else ""
    servers, link = safe("\n".join(one.servers)), f"./{quote(os.fsencode(one.file))}"
    return (
        f'<li data-servers="{servers}"><h2><a href="{link}">{safe(one.title)}</a></h2>'
        f"<p>{safe(one.question)}</p><p>{words_html(one.answer)}</p>"
        f'<p class="quiet">{safe(", ".join(one.servers))}; {on}, Prony {safe(one.prony_version)}</p></li>'
    )
