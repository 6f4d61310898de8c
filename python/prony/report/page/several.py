"""The page of several archives: the sessions of one plan, or the same cells over versions or days."""

from collections.abc import Iterator

from prony.reading.across import Across
from prony.report.across import across_document
from prony.report.page.chart import Chapter, Style, palette
from prony.report.page.charts.curves import over_chapters
from prony.report.page.figure import chapter_html, key_html
from prony.report.page.markup import section_html
from prony.report.page.setups import page_with_terms


def page_of_several(found: Across) -> str:
    """Return the page of several archives."""
    document = across_document(found)
    first, *others = document.sections
    shown = [chapter for chapter in chapters_of_several(found) if chapter.charts]
    content = (
        f'<section id="answer" class="answer">{section_html(first)}</section>',
        key_html(_look(found)),
        *map(chapter_html, shown),
        *(f"<section>{section_html(section)}</section>" for section in others),
    )
    charts = [chart for chapter in shown for chart in chapter.charts]
    return page_with_terms(str(document.title), content, charts)


def chapters_of_several(found: Across, *, legend: bool = False) -> Iterator[Chapter]:
    """Yield the charts of several archives. ``legend``: each names its subjects."""
    return over_chapters(found, _look(found, legend=legend), "")


def _look(found: Across, *, legend: bool = False) -> Style:
    named = (name for one in found.loads for name in (*one.cells, *(row.name for row in one.rows)))
    return Style(palette(named), legend)
