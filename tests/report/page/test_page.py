"""The page of a study: whole without any network, true to its archive, harmless whatever that says."""

import base64
import gzip
import hashlib
import html
import json
import re
from pathlib import Path

import pytest

from golden import build
from prony.model.workload import EngineChoice
from prony.report.page import chart
from prony.report.page.chart import COLOURS, GRID, INK, PAPER, QUIET, palette
from prony.report.page.charts import chapters
from prony.report.page.scene import scene_of
from prony.report.page.study import page_of_study
from report.page import studies
from report.page.walk import Parsed, chart_rows, chart_specs, wrong_numbers, wrong_rows

NAMES = tuple(studies.STUDIES)


def parsed(name):
    return Parsed(studies.page_of(name))


def specs(name):
    """Return the specifications that the page of a study holds, by chart."""
    return chart_specs(studies.page_of(name))


def rows(name):
    return chart_rows(studies.page_of(name))


# --- it shows -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_the_answer_before_its_charts_and_its_figures(name):
    page = studies.page_of(name)
    places = [page.index(f'id="{part}"') for part in ("answer", "course", "remarks", "figures", "machine")]
    assert places == sorted(places)
    assert "NaN" not in page.partition('<script type="text/plain"')[0]
    assert "undefined" not in page.partition('<script type="text/plain"')[0]


@pytest.mark.parametrize("name", [name for name in NAMES if name != "one_subject"])
def test_every_chart_stands_in_the_page_as_a_picture_or_is_drawn_on_demand(name):
    page = studies.page_of(name)
    figures = re.findall(r"<figure id=\"([^\"]*)\"([^>]*)>(.*?)</figure>", page, re.DOTALL)
    assert len(figures) > 8
    assert [key for key, more, inner in figures if "data-lazy" not in more and "<svg" not in inner] == []
    assert {key for key, _, _ in figures} == specs(name).keys()


@pytest.mark.parametrize("name", NAMES)
def test_no_two_parts_of_a_page_share_an_identifier(name):
    found = [attributes["id"] for _, attributes in parsed(name).tags if "id" in attributes]
    assert sorted(found) == sorted(set(found))


def test_a_subject_has_one_colour_and_one_shape_and_no_other_has_both():
    marks = scene_of(*studies.read("study_two")).look.marks
    assert len({(mark.colour, mark.shape) for mark in marks.values()}) == len(marks) == 8


def test_twelve_subjects_have_twelve_colours_and_forty_still_differ():
    marks = palette(f"s{k}" for k in range(40))
    assert len({mark.colour for mark in list(marks.values())[:12]}) == 12
    assert len({(mark.colour, mark.shape) for mark in marks.values()}) == 40


def test_every_colour_of_a_subject_has_a_variable_in_each_scheme_and_a_mark_in_the_key():
    style = (Path(chart.__file__).parent / "assets" / "page.css").read_text()
    for k, colour in enumerate(COLOURS):
        assert style.count(f"--c{k}: ") == 4
        assert style.count(f"--c{k}: {colour};") == 2
        assert f".k{k} {{ fill: var(--c{k}); }}" in style


def test_no_colour_that_is_calculated_from_others_is_one_of_the_pages_variables():
    """Between two variables there is nothing to calculate: a map of them was black."""
    found = specs("study_two")["heat-all"]["spec"]["layer"][0]["encoding"]["color"]["scale"]["range"]
    assert set(found) & {*COLOURS, INK, QUIET, GRID, PAPER} == set()


def test_charts_against_the_load_show_every_load_and_what_was_published():
    found = specs("grid_study")["ok-per-s-against-connections-0"]["data"]["values"]
    assert {row["load"] for row in found if "value" in row} == {100, 1000, 10_000}
    assert any("published" in row for row in found)


def test_charts_against_the_load_show_every_trial_that_counts():
    found = specs("grid_study")["ok-per-s-against-connections-0"]["data"]["values"]
    reading, _ = studies.read("grid_study")
    assert sum("trial" in row for row in found) == sum(cell.ok for cell in reading.cells)


def test_every_published_figure_stands_in_a_chart():
    for name in ("grid_study", "study_two"):
        shown = {row["at"] for row in rows(name) if "published" in row}
        reading, _ = studies.read(name)
        assert shown == {f"/originals/{k}/published" for k in range(len(reading.originals))}


@pytest.mark.parametrize(("lonely", "has_dots"), [((20,), True), ((20, 100), False)])
def test_a_subject_under_one_load_of_a_grid_is_shown_beside_the_others(tmp_path, lonely, has_dots):
    loads = {
        many: build.Workload(build.ClosedLoop(many), build.DurationStop(build.SECOND)) for many in (20, 100)
    }
    pairs = [("a+x", 20), ("a+x", 100), *(("b+x", many) for many in lonely)]
    cells = tuple(build.Cell(k, build.subject(name), loads[many]) for k, (name, many) in enumerate(pairs))
    with build.create(
        tmp_path / "a", build.Plan("s", "", "", "quick", cells, 2, 1), build.FINGERPRINT
    ) as writer:
        for block in range(2):
            for cell in cells:
                writer.append(build.trial(cell, block, cell.id, [1_000_000] * (100 + 20 * cell.id + block)))
        writer.finish(build.RunStatus.FINISHED)
    found = [
        chart.key for one in chapters(scene_of(*studies.read_file(tmp_path / "a"))) for chart in one.charts
    ]
    assert any(key.startswith("ok-per-s-against") for key in found)
    assert any(key.startswith("ok-per-s-20-connections") for key in found) is has_dots


def test_generators_under_several_loads_have_charts_of_each(tmp_path):
    pairs = [(name, many) for many in (20, 80) for name in ("prony", "wrk")]
    cells = tuple(
        build.Cell(
            k + 1,
            build.subject("a+x"),
            build.Workload(build.ClosedLoop(many), build.DurationStop(build.SECOND)),
            EngineChoice(name),
        )
        for k, (name, many) in enumerate(pairs)
    )
    plan = build.Plan("s", "", "", "quick", cells, 5, 1)
    with build.create(tmp_path / "a", plan, build.FINGERPRINT) as writer:
        for block in range(5):
            for k, cell in enumerate(cells):
                values = [1_000_000 + 1000 * block] * (100 + 20 * k)
                writer.append(build.trial(cell, block, k, values))
        writer.finish(build.RunStatus.FINISHED)
    found = [
        chart.key for one in chapters(scene_of(*studies.read_file(tmp_path / "a"))) for chart in one.charts
    ]
    assert sorted(found) == sorted(set(found))
    assert sum(key.startswith("percentiles-") for key in found) == 2


def test_failed_requests_have_a_chart_by_kind_and_no_failure_has_none():
    (key,) = [key for key in specs("grid_study") if key.startswith("failures")]
    found = specs("grid_study")[key]["data"]["values"]
    assert {row["kind"] for row in found} == {
        "reset by the server",
        "no connection before the time-out",
    }
    assert [key for key in specs("generators_study") if key.startswith("failures")] == []


def test_the_answer_of_a_page_is_that_of_a_terminal():
    page = studies.page_of("grid_study")
    card = Parsed(page[page.index('id="answer"') : page.index("<nav")])
    said = " ".join("".join(card.texts).split())
    assert "meinheld+hello shares the first place with 1 other" in said
    assert "uwsgi is not ranked: its requests fail (reset by the server)" in said


def test_what_does_not_count_and_what_was_found_stand_open():
    page = studies.page_of("grid_study")
    open_part = page[: page.index('id="figures"')]
    assert "Trials that do not count" in open_part
    assert "the kernel killed" in open_part.partition('id="remarks"')[2]


def test_a_curve_of_latencies_has_the_figures_of_the_tables():
    reading, traces = studies.read("study_two")
    cell = next(cell for cell in reading.cells if cell.ok and cell.error_ratio == 0)
    (curve,) = [
        one for one in traces.curves[cell.cell.id] if (one.population, one.kind) == ("ok", "response")
    ]
    assert dict(curve.points)["99"] == pytest.approx(cell.metrics["response_ok_p99"].mean)


# --- it is true ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_every_number_of_text_and_tables_is_the_value_at_its_place_in_the_json(name):
    assert wrong_numbers(studies.page_of(name), studies.json_of(name)) == []


@pytest.mark.parametrize("name", [name for name in NAMES if name != "one_subject"])
def test_every_row_of_a_chart_with_a_place_shows_and_says_the_value_there(name):
    assert wrong_rows(studies.page_of(name), studies.json_of(name)) == []


def test_a_walk_sees_a_number_that_is_changed_in_a_chart_or_in_what_a_pointer_finds():
    data = json.loads(json.dumps(studies.json_of("study_two")))
    cell = data["groups"][0]["cells"][0]
    cell["metrics"]["cpu_percent"]["mean"] *= 1.001
    cell["metrics"]["pss_end"]["count"] += 1
    (cpu, *_), *_ = [row for row in wrong_rows(studies.page_of("study_two"), data) if "cpu" in row[0]["at"]]
    assert cpu["name"] == cell["subject"]
    assert {why for row, why in wrong_rows(studies.page_of("study_two"), data)} >= {"value", "n"}


@pytest.mark.parametrize("name", ["study_two", "grid_study"])
def test_every_second_of_a_chart_is_one_of_the_archives_trials(name):
    reading, traces = studies.read(name)
    names = {cell.cell.id: cell.name for cell in reading.cells}
    own = {
        (names[key[0]], one.second, one.ok) for key, trial in traces.trials.items() for one in trial.seconds
    }
    shown = {
        (row["name"], row["second"], row["ok"])
        for key, spec in specs(name).items()
        if key.startswith("seconds")
        for row in spec["data"]["values"]
    }
    assert shown
    assert shown <= own


def test_the_same_archive_gives_the_same_bytes():
    assert page_of_study(*studies.read("generators_study")) == studies.page_of("generators_study")


# --- it is harmless -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_page_names_nothing_outside_of_itself(name):
    tags = parsed(name).tags
    asked = {
        (tag, key, value) for tag, found in tags for key, value in found.items() if key in ("src", "href")
    }
    assert {one for one in asked if not one[2].startswith("#")} == set()
    assert {tag for tag, _ in tags} & {"link", "iframe", "object", "embed", "img", "base", "form"} == set()


@pytest.mark.parametrize("name", NAMES)
def test_the_policy_allows_the_scripts_and_styles_of_the_page_and_no_others(name):
    page = parsed(name)
    (policy,) = [found["content"] for _, found in page.tags if found.get("http-equiv")]
    texts = [words for found, words in page.all("script") if "type" not in found]
    texts += [words for _, words in page.all("style")]
    held = {base64.b64encode(hashlib.sha256(words.encode()).digest()).decode() for words in texts}
    library = [words for found, words in page.all("script") if found.get("id") == "library"]
    held |= {
        base64.b64encode(hashlib.sha256(gzip.decompress(base64.b64decode(words))).digest()).decode()
        for words in library
    }
    assert set(re.findall(r"'sha256-([^']*)'", policy)) == held
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy


def test_hostile_names_are_text_wherever_they_stand():
    page = parsed("hostile")
    assert {tag for tag, _ in page.tags} & {"img", "b'"} == set()
    assert [words for found, words in page.all("script") if "alert" in words] == []
    assert all(not key.startswith("on") and key != "style" for _, found in page.tags for key in found)
    assert "\u202e" not in studies.page_of("hostile")
    assert "\x1b" not in studies.page_of("hostile")
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in studies.page_of("hostile")


def test_hostile_names_reach_no_expression_of_a_chart():
    def expressions(spec):
        match spec:
            case dict():
                for key, value in spec.items():
                    if key in ("filter", "expr", "labelExpr", "calculate", "zoom") and isinstance(value, str):
                        yield value
                    yield from expressions(value) if key != "values" else ()
            case list():
                for one in spec:
                    yield from expressions(one)

    found = list(expressions(specs("hostile")))
    assert found
    assert [one for one in found if "alert" in one or "<b>" in one] == []


def test_a_page_to_pass_on_has_no_logs_and_no_facts_of_the_machine():
    reading, traces = studies.read("study_two")
    whole, passed_on = studies.page_of("study_two"), page_of_study(reading, traces, passed_on=True)
    assert 'class="log"' not in passed_on
    assert "AMD EPYC 7B13</td>" in whole
    assert "AMD EPYC 7B13</td>" not in passed_on


def test_a_still_picture_leaves_out_only_marks_that_nobody_sees():
    from prony.report.page.figure import still

    spec = specs("study_two")["percentiles-all"]
    marks, kept = ([one["mark"] for one in made["layer"]] for made in (spec, still(spec)))
    assert [one for one in marks if one not in kept] == [{"type": "point", "opacity": 0, "size": 90}]


# --- it is small --------------------------------------------------------------------------------------------


def test_pages_of_small_studies_stay_small():
    assert {name for name in NAMES if len(studies.page_of(name).encode()) > 1_200_000} == set()


def test_the_own_script_is_small():
    from prony.report.page import markup

    assert len(markup._asset("page.js")) <= 25_000


@pytest.mark.slow
def test_sixty_four_cells_of_eight_trials_make_a_page_of_three_megabytes(tmp_path):
    path = studies.sixty_cells(tmp_path / "a.prony")
    assert len(studies.page_of_file(path).encode()) <= 3_000_000


@pytest.mark.slow
def test_the_library_in_pages_is_that_of_the_package_that_draws():
    import vl_convert

    from prony.report.page import markup
    from prony.report.page.figure import VEGA_LITE

    assert gzip.decompress(markup._asset("vega.js.gz")).decode() == vl_convert.javascript_bundle(
        vl_version=VEGA_LITE
    )


# --- files --------------------------------------------------------------------------------------------------


def drawn_names(spec):
    """Return the subjects that a chart has figures of; those of facets are in their headers."""
    return {row["name"] for row in spec["data"]["values"] if len(row) > 1 and "name" in row}


@pytest.mark.parametrize("name", ["grid_study", "study_two", "generators_study"])
def test_a_picture_says_what_it_shows_of_whom_under_which_load_and_how_often(name):
    from prony.report.page.figure import svg
    from prony.report.page.study import chapters_alone

    reading, traces = studies.read(name)
    for chapter in chapters_alone(reading, traces):
        for one in chapter.charts:
            text = html.unescape(" ".join(re.findall(r">([^<]+)</t(?:ext|span)>", svg(one.spec))))
            assert {name for name in drawn_names(one.spec) if name[:20] not in text} == set(), one.key
            said = f"{one.title} {chapter.heading} {reading.plan.name},"
            assert set(said.split()) <= set(text.split()), one.key
            assert f"n = {reading.blocks}" in text, one.key
            assert re.search(r"(?i)(closed|open) loop, [\d,]+( |/s)", text), one.key


def test_every_chart_becomes_a_picture_that_names_its_subjects():
    from prony.report.page.study import pictures_of_study

    reading, traces = studies.read("hostile")
    files = dict(pictures_of_study(reading, traces))
    keys = {chart.key for chapter in chapters(scene_of(reading, traces)) for chart in chapter.charts}
    assert set(files) == {f"{key}.{kind}" for key in keys for kind in ("svg", "png")}
    assert "b'&quot;+&lt;b&gt;" in files["percentiles-all.svg"].decode()
    assert all(content.startswith(b"\x89PNG") for name, content in files.items() if name.endswith("png"))
