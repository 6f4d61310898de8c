"""Pages in a headless Chromium, without any network: as a reader uses them."""

import pytest

from browser import Page, needs_chromium
from pages import studies

pytestmark = pytest.mark.slow

SHOWN = ("study_two", "grid_study", "hostile")
LIVE = "document.querySelectorAll('figure[data-live]').length"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    needs_chromium()
    folder = tmp_path_factory.mktemp("pages")
    found = {name: folder / f"{name}.html" for name in SHOWN}
    for name, path in found.items():
        path.write_text(studies.page_of(name), encoding="utf-8")
    return found


@pytest.mark.parametrize("name", SHOWN)
def test_every_chart_becomes_interactive_without_a_request_or_an_error(files, name):
    with Page(files[name]) as page:
        page.value(
            "document.querySelectorAll('figure').forEach((figure) => {"
            " figure.dispatchEvent(new Event('pointerenter'));"
            " [...figure.querySelectorAll('button')].find((one) => one.textContent === 'Draw')?.click(); })"
        )
        page.until(f"{LIVE} === document.querySelectorAll('figure').length")
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
    for name in SHOWN:
        with Page(files[name], width=360, dark=True) as page:
            assert page.value("document.documentElement.scrollWidth") == 360


def test_the_key_hides_a_subject_everywhere_and_shows_it_again(files):
    marks = "document.querySelectorAll('#tradeoff-all .plot svg.marks .mark-symbol path').length"
    first = "document.querySelector('nav.key button')"
    with Page(files["study_two"]) as page:
        page.value("document.querySelector('#tradeoff-all').dispatchEvent(new Event('pointerenter'))")
        page.until(f"{LIVE} >= 1")
        before = page.value(marks)
        page.value(f"{first}.click()")
        page.until(f"{marks} === {before} - 1")
        assert page.value(f"{first}.ariaPressed") == "false"
        page.value(f"{first}.click()")
        page.until(f"{marks} === {before}")


def test_a_chart_with_the_focus_reads_out_its_figures(files):
    with Page(files["study_two"]) as page:
        page.value("document.querySelector('figure').focus()")
        page.press("ArrowRight")
        page.until("document.querySelector('figure .said').textContent !== ''")
        assert "hello" in page.value("document.querySelector('figure .said').textContent")


def test_a_pointer_over_a_mark_shows_its_figures(files):
    figure = "document.querySelector('#tradeoff-all')"
    mark = f"{figure}.querySelector('svg.marks .mark-symbol path')"
    with Page(files["study_two"]) as page:
        page.value(
            f"{figure}.dispatchEvent(new Event('pointerenter')); {figure}.scrollIntoView({{block: 'center'}})"
        )
        page.until(f"{LIVE} >= 1")
        box = page.value(
            f"(() => {{ const box = {mark}.getBoundingClientRect();"
            " return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        page.move(*box)
        page.until("!document.querySelector('.tip').hidden")
        assert "subject" in page.value("document.querySelector('.tip').textContent")


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
