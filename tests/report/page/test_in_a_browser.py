"""Pages in a headless Chromium, without any network: as a reader uses them."""

import shutil
import subprocess
from pathlib import Path

import pytest

from browser import Page, needs_chromium
from prony.report.page.load import page_of_load
from prony.report.page.study import index_entry, index_page, page_of_several
from report.page import studies
from report.page.test_load_page import reading_of
from report.page.test_several import sessions_of
from report.page.walk import chart_specs

pytestmark = pytest.mark.slow

TRADEOFF = "tradeoff-all"
SHOWN = ("study_two", "grid_study", "hostile")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    needs_chromium()
    folder = tmp_path_factory.mktemp("pages")
    found = {name: folder / f"{name}.html" for name in SHOWN}
    for name, path in found.items():
        path.write_text(studies.page_of(name), encoding="utf-8")
    more = {
        "load": page_of_load(reading_of("failing")),
        "sessions": page_of_several(sessions_of(folder, 3)),
        "index": index_page(index_entry(f"{name}.html", studies.read(name)[0]) for name in SHOWN),
    }
    for name, page in more.items():
        found[name] = folder / f"{name}.html"
        found[name].write_text(page, encoding="utf-8")
    return found


@pytest.fixture(scope="module")
def axe(tmp_path_factory):
    """The text of axe-core, from the registry of npm or its cache."""
    if shutil.which("npm") is None:
        pytest.skip("needs npm, for axe-core")
    folder = tmp_path_factory.mktemp("axe")
    command = ["npm", "install", "--no-audit", "--no-fund", "--prefer-offline", "axe-core@4"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip("needs axe-core, and no registry answers")
    if done.returncode:
        pytest.skip("needs axe-core, and no registry has it")
    return Path(folder, "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")


LOOKS = {
    "light": {},
    "dark": {"dark": True},
    "forced colours": {"colors": "active"},
    "telephone": {"width": 360},
}


@pytest.mark.parametrize("look", LOOKS)
def test_no_rule_of_axe_is_violated(files, axe, look):
    for name in ("grid_study", "hostile", "load", "index", "sessions"):
        with Page(files[name], **LOOKS[look]) as page:
            page.value("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
            page.value(f"{axe}; 0")
            found = page.value(
                "axe.run().then(({ violations }) =>"
                " violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`))"
            )
            assert found == []


@pytest.mark.parametrize("name", (*SHOWN, "load", "sessions"))
def test_every_chart_becomes_interactive_without_a_request_or_an_error(files, name):
    with Page(files[name]) as page:
        page.wake_all()
        assert (page.requests, page.console) == ([], [])
        assert (
            page.value("[...document.querySelectorAll('.said')].map((one) => one.textContent).join('')") == ""
        )
        assert page.value(
            "document.querySelectorAll('.plot').length === document.querySelectorAll('.plot svg').length"
        )


def test_a_page_without_scripts_shows_its_charts_and_figures(files):
    with Page(files["study_two"], script=False) as page:
        found = page.call("DOM.getDocument", depth=-1)
        root = found["root"]["nodeId"]
        charts = page.call("DOM.querySelectorAll", nodeId=root, selector="figure .plot > svg")["nodeIds"]
        assert len(charts) > 8
        assert page.call("DOM.querySelectorAll", nodeId=root, selector="figure[data-live]")["nodeIds"] == []
        assert (page.requests, page.console) == ([], [])


def test_a_telephone_scrolls_no_page_sideways(files):
    for name in (*SHOWN, "load", "index", "sessions"):
        with Page(files[name], width=360, dark=True) as page:
            assert page.value("document.documentElement.scrollWidth") == 360


def test_the_key_hides_a_subject_everywhere_and_shows_it_again(files):
    marks = "document.querySelectorAll('#tradeoff-all .plot svg.marks .mark-symbol path').length"
    first = "document.querySelector('nav.key button')"
    with Page(files["study_two"]) as page:
        page.wake("#tradeoff-all")
        before = page.value(marks)
        page.value(f"{first}.click()")
        page.until(f"{marks} === {before} - 1")
        assert page.value(f"{first}.ariaPressed") == "false"
        page.value(f"{first}.click()")
        page.until(f"{marks} === {before}")


def test_shift_shows_a_subject_alone_and_again_all(files):
    pressed = "[...document.querySelectorAll('nav.key li button')].map((one) => one.ariaPressed).join()"
    click = (
        "document.querySelectorAll('nav.key li button')[1]"
        ".dispatchEvent(new MouseEvent('click', { shiftKey: true }))"
    )
    with Page(files["grid_study"]) as page:
        page.value(click)
        assert page.value(pressed) == "false,true,false,false,false"
        page.value(click)
        assert page.value(pressed) == "true,true,true,true,true"


def test_a_wheel_with_shift_zooms_a_chart_and_without_scrolls_the_page(files):
    figure = "document.querySelector('figure')"
    labels = f"[...{figure}.querySelectorAll('.role-axis-label text')].map((one) => one.textContent).join()"
    with Page(files["grid_study"]) as page:
        page.wake("figure")
        before = page.value(labels)
        x, y = page.middle("figure svg.marks")
        page.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=0.5)
        assert page.value(labels) == before
        page.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=-400, modifiers=8)
        page.until(f"{labels} !== {before!r}")


def test_a_term_explains_itself_where_it_stands(files):
    with Page(files["grid_study"]) as page:
        page.value("document.querySelector('a.term').focus()")
        assert len(page.value("document.querySelector('.tip:not([hidden]) dd').textContent")) > 40


def test_forced_colours_leave_every_chart_its_marks(files):
    with Page(files["study_two"], colors="active") as page:
        assert page.value("matchMedia('(forced-colors: active)').matches")
        assert page.value(
            "[...document.querySelectorAll('figure .plot > svg')]"
            ".every((one) => one.querySelectorAll('path, rect, text').length > 5)"
        )


def test_an_index_finds_studies_by_words_and_by_server(files):
    shown = "[...document.querySelectorAll('#studies > li')].filter((one) => !one.hidden).length"
    with Page(files["index"]) as page:
        assert page.value(shown) == len(SHOWN)
        page.value(
            "document.querySelector('#search').value = 'many break';"
            " document.querySelector('#search').dispatchEvent(new Event('input'))"
        )
        assert page.value(shown) == 1
        page.value(
            "document.querySelector('#search').value = '';"
            " document.querySelector('#server').value = 'tornado';"
            " document.querySelector('#server').dispatchEvent(new Event('input'))"
        )
        assert page.value(shown) == 1
        assert (page.requests, page.console) == ([], [])


def test_a_chart_with_the_focus_reads_out_its_figures(files):
    with Page(files["study_two"]) as page:
        page.value("document.querySelector('figure').focus()")
        page.press("ArrowRight")
        page.until("document.querySelector('figure .said').textContent !== ''")
        assert "hello" in page.value("document.querySelector('figure .said').textContent")


def test_a_pointer_over_a_mark_shows_its_figures(files):
    said = {
        row["name"]: row["said_x"]
        for row in chart_specs(studies.page_of("study_two"))[TRADEOFF]["data"]["values"]
    }
    with Page(files["study_two"]) as page:
        page.wake(f"#{TRADEOFF}")
        page.move(*page.middle(f"#{TRADEOFF} svg.marks .mark-symbol path"))
        page.until("!document.querySelector('.tip').hidden")
        subject, first, *_ = page.value(
            "[...document.querySelectorAll('.tip dd')].map((one) => one.textContent)"
        )
        assert first == said[subject]


def test_a_table_sorts_by_the_values_of_a_column(files):
    column = (
        "[...document.querySelectorAll('#answer tbody tr')]"
        ".map((row) => row.cells[1].querySelector('data')?.value)"
    )
    with Page(files["grid_study"]) as page:
        page.value("document.querySelectorAll('#answer thead th')[1].click()")
        found = [float(one) for one in page.value(column) if one]
        assert found == sorted(found)
        page.value("document.querySelectorAll('#answer thead th')[1].click()")
        assert [float(one) for one in page.value(column) if one] == sorted(found, reverse=True)


def test_print_holds_answer_charts_and_claims_on_few_pages(files):
    for name in SHOWN:
        with Page(files[name]) as page:
            assert 1 <= page.printed_pages() <= 12
