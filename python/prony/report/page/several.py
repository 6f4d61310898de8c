"""The page of several archives: the sessions of one plan, or the same cells over versions or days."""

from collections.abc import Iterator, Sequence

from prony.reading.across import Sessions
from prony.reading.trend import Trend
from prony.report.document import Document
from prony.report.forms import day
from prony.report.page.chart import Chapter, Style, palette
from prony.report.page.charts.order import session_chapters, session_marks
from prony.report.page.charts.over import Editions, Step, over_editions
from prony.report.page.figure import chapter_html, key_html
from prony.report.page.markup import section_html
from prony.report.page.setups import page_with_terms
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
