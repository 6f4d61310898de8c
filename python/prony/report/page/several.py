"""The page of several archives: the sessions of one plan, or the same cells over versions or days.

The index of a site: every study's page in one list that a reader searches and filters by server.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from prony.reading.across import Sessions
from prony.reading.brief import brief_of
from prony.reading.study import StudyResults
from prony.reading.trend import Trend
from prony.report.document import Document
from prony.report.forms import day
from prony.report.page.chart import Chapter, Style, palette
from prony.report.page.charts.order import session_chapters, session_marks
from prony.report.page.charts.over import Editions, Step, over_editions
from prony.report.page.figure import chapter_html, key_html
from prony.report.page.markup import page, safe, section_html, words_html
from prony.report.page.setups import page_with_terms
from prony.report.sections.answer import leader_words
from prony.report.text import pointer
from prony.report.trend import sessions_report, trend_document
from prony.report.words import workload_words


def page_of_sessions(title: str, found: Sessions) -> str:
    """Return the page of the sessions of one plan. ``title``: of the plan."""
    look = _look_of_sessions(found)
    return _page(sessions_report(title, found), look, tuple(session_chapters(found, look, "")))


def page_of_trend(trend: Trend) -> str:
    """Return the page of archives of different plans."""
    look = _look_of_trend(trend)
    return _page(trend_document(trend), look, tuple(_trend_chapters(trend, look)))


def chapters_of_sessions(found: Sessions, *, legend: bool = False) -> Iterator[Chapter]:
    """Yield the charts of the sessions of one plan. ``legend``: each names its subjects."""
    return session_chapters(found, _look_of_sessions(found, legend=legend), "")


def chapters_of_trend(trend: Trend, *, legend: bool = False) -> Iterator[Chapter]:
    """Yield likewise the charts of archives of different plans."""
    return _trend_chapters(trend, _look_of_trend(trend, legend=legend))


def _look_of_sessions(found: Sessions, *, legend: bool = False) -> Style:
    return Style(palette(session_marks(found)), legend)


def _look_of_trend(trend: Trend, *, legend: bool = False) -> Style:
    return Style(palette(name for one in trend.loads for name in one.cells), legend)


def _trend_chapters(trend: Trend, look: Style) -> Iterator[Chapter]:
    return (_chapter(trend, look, place) for place in range(len(trend.loads)))


def _page(document: Document, look: Style, chapters: Sequence[Chapter]) -> str:
    shown = [chapter for chapter in chapters if chapter.charts]
    first, *others = document.sections
    content = (
        f'<section id="answer" class="answer">{section_html(first)}</section>',
        key_html(look),
        *map(chapter_html, shown),
        *(f"<section>{section_html(section)}</section>" for section in others),
    )
    charts = [chart for chapter in shown for chart in chapter.charts]
    return page_with_terms(str(document.title), content, charts)


def _chapter(trend: Trend, look: Style, place: int) -> Chapter:
    one, at = trend.loads[place], pointer("loads", place)
    steps = tuple(
        Step(edition.name, day(edition.started_unix_ns), edition.version) for edition in trend.editions
    )
    archives = Editions("archive", steps)
    found = (over_editions(look, archives, one, metric, at) for metric in one.metrics)
    charts = tuple(chart for chart in found if chart is not None)
    return Chapter(f"load-{place}", workload_words(one.workload, at + pointer("load")), charts)


# --- the index of a folder of pages -----------------------------------------------------------------------


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
