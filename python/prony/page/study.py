"""The page of a study: the answer first, then the charts, then all figures and how they were come by."""

from collections.abc import Iterator
from dataclasses import replace

from prony.page.charts import Chapter, chapters
from prony.page.figure import figure_html, key_html, swatch
from prony.page.markup import safe, section_html, words_html
from prony.page.ranking import ranking_section
from prony.page.scene import Scene, scene_of
from prony.page.setups import machine_html, setups_html, terms_html
from prony.page.shell import page
from prony.reading.study import Reading
from prony.reading.traces import Traces
from prony.report.document import Block, Notes, Section
from prony.report.redaction import redacted_section
from prony.report.sections.answer import answer_section
from prony.report.sections.claims import claims
from prony.report.sections.head import head
from prony.report.study import study_report

__all__ = ["page_of_study"]


def page_of_study(reading: Reading, traces: Traces, *, host: str | None = None) -> str:
    """Return the page of a study. ``host``: the machine's name, of a page to pass on: then paths, that name,
    logs and the machine's facts are left out.
    """
    scene = scene_of(reading, traces)
    parts = tuple(chapter for chapter in chapters(scene) if chapter.charts)
    charts = [chart for chapter in parts for chart in chapter.charts]
    title = reading.plan.title or reading.plan.name
    body = "\n".join(_parts(scene, parts, title, host))
    content = body.replace("<!--terms-->", terms_html(body))
    return page(title, content, charts)


def _parts(scene: Scene, parts: tuple[Chapter, ...], title: str, host: str | None) -> Iterator[str]:
    reading = scene.reading

    def shown(section: Section | None) -> str:
        if section is None:
            return ""
        return section_html(_without(section, host))

    first, last, claimed = head(reading), answer_section(reading), claims(reading)
    yield '<a class="skip" href="#answer">To the answer</a>'
    yield f"<header><h1>{safe(title)}</h1>{shown(first)}</header>"
    yield key_html(scene.look)
    yield f'<main>\n<section id="answer" class="answer">{shown(last)}</section>'
    yield '<section id="ranking"><h2>Ranked</h2>'
    for group in reading.measured:
        if group.primary:
            yield _marked(section_html(ranking_section(scene, group), 3), scene)
    yield "</section>"
    for chapter in parts:
        yield _chapter(chapter)
    if claimed is not None:
        yield f'<section id="claims">{shown(claimed)}</section>'
    others = [one for one in study_report(reading).sections if one not in (first, last, claimed)]
    yield '<section id="figures"><details><summary>All figures, findings and notes</summary>'
    yield from (
        _marked(shown(one).replace("<h2>", "<h3>").replace("</h2>", "</h3>"), scene) for one in others
    )
    yield "</details></section>"
    redact = host is not None
    yield '<section id="setups"><h2>How each was set up</h2>'
    yield f"{setups_html(reading.subjects.values(), redact=redact)}</section>"
    yield '<section id="machine"><details><summary>The machine and the runs</summary>'
    yield f"{machine_html(reading.fingerprint, reading.runs, redact=redact)}</details></section>"
    yield '<section id="terms"><h2>Terms</h2><!--terms--></section>\n</main>'
    yield "<footer>Made by Prony. This file is whole: it asks nothing of any network.</footer>"


def _without(section: Section, host: str | None) -> Section:
    """Return the section as it may be passed on, or unchanged without a ``host``."""
    if host is None:
        return section
    kept = (block for block in section.blocks if not (isinstance(block, Notes) and _is_log(block)))
    return redacted_section(replace(section, blocks=tuple(map(_without_log, kept))), host)


def _without_log(block: Block) -> Block:
    if not isinstance(block, Notes):
        return block
    return Notes(tuple((mark, words) for mark, words in block.items if not mark.strip().startswith("|")))


def _is_log(block: Notes) -> bool:
    return all(mark.strip().startswith("|") for mark, _ in block.items)


def _chapter(chapter: Chapter) -> str:
    figures = "\n".join(map(figure_html, chapter.charts))
    heading = f"<h2>{words_html(chapter.heading)}</h2>"
    return (
        f'<section id="{chapter.key}" class="charts">{heading}\n<div class="grid">{figures}</div></section>'
    )


def _marked(html: str, scene: Scene) -> str:
    """Return tables whose rows begin with the mark of their subject."""
    for name, mark in scene.look.marks.items():
        for before in (
            '<th scope="row">',
            '<th scope="row" class="words">',
            '<th scope="row" class="words strong">',
        ):
            html = html.replace(f"{before}{safe(name)}<", f"{before}{swatch(mark)}{safe(name)}<")
    return html
