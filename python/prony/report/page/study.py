"""The page of a study: the answer first, then the charts, then all figures and how they were come by; that of
several archives, the sessions of one plan or the same cells over versions or days; the index of a site, in
which a reader searches and filters the studies by server; and charts as files, SVG and PNG, each naming its
subjects.
"""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap
from urllib.parse import quote

from prony.core.units import seconds
from prony.model.workload import ClosedLoop, CountStop, DurationStop, OpenLoop, Workload
from prony.reading.across import Across
from prony.reading.brief import brief_of
from prony.reading.study import StudyResults
from prony.reading.traces import Traces
from prony.report.across import across_document
from prony.report.brief import ON_A_PAGE, brief_sections
from prony.report.document import Notes, Section
from prony.report.forms import day
from prony.report.page.chart import QUIET, Chapter, Chart, Style, palette, slug
from prony.report.page.charts import chapters
from prony.report.page.charts.curves import over_chapters
from prony.report.page.figure import chapter_html, figure_html, key_html, png, svg, swatch
from prony.report.page.markup import page, safe, section_html, words_html
from prony.report.page.scene import Scene, scene_of
from prony.report.page.setups import machine_html, page_with_terms, setups_html
from prony.report.sections.answer import leader_words
from prony.report.sections.brief_table import shared_app
from prony.report.study import study_parts
from prony.report.text import pointer

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


# --- the page of several archives -------------------------------------------------------------------------


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


# --- the index of a site ----------------------------------------------------------------------------------


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


# --- charts as files --------------------------------------------------------------------------------------


# Of a title's line, so that a picture is as wide as its plot.
_COLUMNS = 58
_MOST = 4


def pictures_of_study(reading: StudyResults, found: Traces) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of each file, two for each chart of a study."""
    return _files(chapters_alone(reading, found))


def chapters_alone(reading: StudyResults, found: Traces) -> Iterator[Chapter]:
    """Yield the charts of a study, each to be read by itself: below its title are its load and its source."""
    plan = reading.plan
    days = dict.fromkeys(day(run.started_unix_ns) for run in reading.runs)
    profile = [f"profile {plan.profile}"] if plan.profile else []
    source = [plan.name, *profile, f"n = {reading.blocks}", *days]
    for chapter in chapters(scene_of(reading, found, legend=True)):
        heading = str(chapter.heading)
        load = [] if " loop, " in heading else [loads_words(cell.cell.workload for cell in reading.cells)]
        lines = [heading, *load, ", ".join(source)]
        yield replace(chapter, charts=tuple(_titled(chart, lines) for chart in chapter.charts))


def loads_words(loads: Iterable[Workload]) -> str:
    """Return loads in a line.

    >>> from prony.model.workload import DurationStop
    >>> loads_words(Workload(ClosedLoop(n), DurationStop(10**9)) for n in (100, 10, 1000))
    'closed loop, 10, 100 and 1,000 connections, 1 s'
    """
    found = list(loads)
    connections = {one.loop.connections for one in found if isinstance(one.loop, ClosedLoop)}
    rates = {one.loop.rate_per_s for one in found if isinstance(one.loop, OpenLoop)}
    windows = {seconds(one.stop.duration_ns) for one in found if isinstance(one.stop, DurationStop)}
    counts = {one.stop.requests for one in found if isinstance(one.stop, CountStop)}
    plural = "" if connections == {1} else "s"
    said = [
        *([f"closed loop, {_numbers(connections)} connection{plural}"] if connections else []),
        *([f"open loop, {_numbers(rates)}/s"] if rates else []),
        *([f"{_numbers(windows)} s"] if windows else []),
        *([f"{_numbers(counts)} requests"] if counts else []),
    ]
    return ", ".join(said)


def _numbers(found: Collection[float]) -> str:
    words = [f"{one:,.10g}" for one in sorted(found)]
    if len(words) > _MOST:
        return f"{words[0]} to {words[-1]}"
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def pictures_of_several(found: Across) -> Iterator[tuple[str, bytes]]:
    """Yield likewise the charts of several archives."""
    return _files(chapters_of_several(found, legend=True))


def _files(found: Iterable[Chapter]) -> Iterator[tuple[str, bytes]]:
    for chapter in found:
        for chart in chapter.charts:
            own = chart if "title" in chart.spec else _titled(chart, [str(chapter.heading)])
            yield f"{chart.key}.svg", svg(own.spec).encode()
            yield f"{chart.key}.png", png(own.spec)


def _titled(chart: Chart, lines: Sequence[str]) -> Chart:
    """Return a chart that says what it shows, and in ``lines`` below that of what."""
    folded = [part for line in lines for part in wrap(line, _COLUMNS)]
    title = {"text": wrap(chart.title, _COLUMNS), "subtitle": folded, "subtitleColor": QUIET}
    looks = {"anchor": "start", "fontSize": 13, "subtitleFontSize": 11}
    return replace(chart, spec={**chart.spec, "title": {**title, **looks}})
