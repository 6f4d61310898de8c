"""The page of a study: the answer first, then the charts, then all figures and how they were come by."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from prony.reading.brief import brief_of
from prony.reading.study import StudyResults
from prony.reading.traces import Traces
from prony.report.brief import ON_A_PAGE, brief_sections
from prony.report.document import Notes, Section
from prony.report.page.chart import Chapter, slug
from prony.report.page.charts import chapters
from prony.report.page.figure import chapter_html, figure_html, key_html, swatch
from prony.report.page.markup import safe, section_html
from prony.report.page.scene import Scene, scene_of
from prony.report.page.setups import machine_html, page_with_terms, setups_html
from prony.report.sections.brief_table import shared_app
from prony.report.study import study_parts

_JUDGEMENT = re.compile(r'<li>(<b class="verdict.*?)</li>')


def page_of_study(reading: StudyResults, traces: Traces, *, passed_on: bool = False) -> str:
    """Return the page of a study. ``passed_on``: without logs and the machine's facts; what was read is
    redacted before.
    """
    scene = scene_of(reading, traces)
    found = tuple(chapter for chapter in chapters(scene) if chapter.charts)
    charts = [chart for chapter in found for chart in chapter.charts]
    plan = reading.plan
    lead = f'<p class="lead">{safe(plan.question)}</p>' if plan.question else ""
    return page_with_terms(plan.title or plan.name, _content(scene, found, passed_on), charts, lead=lead)


def _content(scene: Scene, found: tuple[Chapter, ...], passed_on: bool) -> Iterator[str]:
    reading, marks = scene.reading, _marks(scene)
    parts = study_parts(reading)

    def shown(sections: tuple[Section, ...], level: int = 2) -> str:
        html = (section_html(_without_logs(section) if passed_on else section, level) for section in sections)
        return _marked("\n".join(html), marks)

    lead, *others = brief_sections(reading, ON_A_PAGE)
    first, rest = _first_picture(scene, found)
    table = shown(tuple(others[:1]), 3)
    answer = f'{shown((lead,), 3)}<div class="first">{first}<div>{table}</div></div>'
    remarks = _JUDGEMENT.sub(
        r"<li><details><summary>\1</summary></details></li>", shown(tuple(others[1:]), 3)
    )
    yield f'<section id="answer" class="answer"><h2>Answer</h2>{answer}{remarks}</section>'
    yield key_html(scene.look)
    yield from map(chapter_html, rest)
    if parts.claims is not None:
        yield f'<section id="claims">{shown((parts.claims,))}</section>'
    if parts.uncounted:
        yield f'<section id="uncounted">{shown(parts.uncounted)}</section>'
    yield f'<section id="remarks">{shown(parts.remarks)}</section>'
    yield f'<section id="measured">{shown((replace(parts.head, heading="What was measured"),))}</section>'
    figures = shown((parts.answer, *parts.figures), 3)
    yield f'<section id="figures"><details><summary>All figures</summary>{figures}</details></section>'
    setups = setups_html(reading.subjects.values())
    yield f'<section id="setups"><h2>How each was set up</h2>{setups}</section>'
    yield '<section id="machine"><details><summary>The machine and the runs</summary>'
    yield f"{machine_html(reading.fingerprint, reading.runs, redact=passed_on)}</details></section>"


def _first_picture(scene: Scene, found: tuple[Chapter, ...]) -> tuple[str, tuple[Chapter, ...]]:
    """Return the picture of ratios that belongs to the answer, which names its subjects, else the first one
    that there is, and the chapters without it.
    """
    brief = brief_of(scene.reading)
    key = slug("ratios", scene.key(brief.group)) if brief else ""
    charts = [chart for chapter in found for chart in chapter.charts if not chart.lazy]
    first = next((chart for chart in charts if chart.key == key), charts[0] if charts else None)
    if first is None:
        return "", found
    others = (
        replace(one, charts=tuple(chart for chart in one.charts if chart is not first)) for one in found
    )
    return figure_html(first), tuple(one for one in others if one.charts)


def _without_logs(section: Section) -> Section:
    found = (_without_log(block) if isinstance(block, Notes) else block for block in section.blocks)
    return replace(section, blocks=tuple(block for block in found if block != Notes(())))


def _without_log(notes: Notes) -> Notes:
    return Notes(tuple((mark, words) for mark, words in notes.items if not mark.strip().startswith("|")))


# --- the marks of subjects --------------------------------------------------------------------------------


def _marks(scene: Scene) -> Mapping[str, str]:
    """Return the mark of each subject, also by the name that the short table gives it."""
    brief = brief_of(scene.reading)
    app = shared_app(brief) if brief else ""
    full = {name: swatch(mark) for name, mark in scene.look.marks.items()}
    return {name.removesuffix(app): mark for name, mark in full.items()} | full


def _marked(html: str, marks: Mapping[str, str]) -> str:
    """Return tables whose rows begin with the mark of their subject."""
    for name, mark in marks.items():
        for kind in ("", ' class="words"', ' class="words strong"'):
            before = f'<th scope="row"{kind}>'
            html = html.replace(f"{before}{safe(name)}<", f"{before}{mark}{safe(name)}<")
    return html
