"""Several archives: the same cells over versions or days, and a site of their pages."""

import json
from dataclasses import replace

import pytest

from cli.test_report_sessions import session
from golden import build
from prony.archive import open_archive
from prony.reading.across import over_archives
from prony.reading.study import read_archive, read_over, sessions_in, side_of
from prony.report.formats.as_json import document_json
from prony.report.page.study import Listed, index_page, page_of_several
from prony.report.publication import Redaction
from report.page import studies
from report.page.walk import Parsed, chart_specs, wrong_numbers, wrong_rows


def study_of(path, started, rate, names=("a+x", "b+x"), connections=20):
    """Two subjects; the first answers ``rate`` requests in its window of three seconds."""
    load = build.Workload(build.ClosedLoop(connections), build.DurationStop(3 * build.SECOND))
    cells = tuple(build.Cell(k + 1, build.subject(name), load) for k, name in enumerate(names))
    with build.create(path, build.Plan("s", "S", "", "quick", cells, 5, 1), build.FINGERPRINT) as writer:
        for name in names:
            writer.record_subject(build.SubjectRecord(name, server_version=f"{started}.0"))
        for block in range(5):
            for k, cell in enumerate(cells):
                writer.append(build.trial(cell, block, k, [1_000_000 + 1000 * block] * (rate + 30 * k)))
        writer.finish(build.RunStatus.FINISHED)
    with open_archive(path) as archive:
        reading = read_archive(archive)
    (run,) = reading.runs
    return replace(reading, runs=(replace(run, started_unix_ns=started * build.SECOND),))


@pytest.fixture(scope="module")
def trend(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trend")
    later = study_of(folder / "later.prony", 2, 330)
    earlier = study_of(folder / "earlier.prony", 1, 300, ("a+x", "c+x"))
    return over_archives((side_of(later, "later"), side_of(earlier, "earlier")))


def test_editions_stand_in_the_order_of_their_days(trend):
    assert [(one.number, one.archive) for one in trend.sides] == [(1, "earlier"), (2, "later")]


def test_only_subjects_that_two_archives_have_are_in_a_trend(trend):
    (load,) = trend.loads
    assert list(load.cells) == ["a+x"]
    assert document_json(trend)["loads"][0]["last_to_first"]["a+x"] == pytest.approx(0.1)


def test_what_a_load_asks_for_is_not_in_the_json_of_several_archives(trend):
    # Its headers may be secret.
    (load,) = document_json(trend)["loads"]
    assert load["load"]["loop"]["connections"] == 20
    assert "request" not in load["load"]


def test_cells_under_different_loads_are_not_the_same(tmp_path):
    one = study_of(tmp_path / "a.prony", 1, 300)
    other = study_of(tmp_path / "b.prony", 2, 300, connections=21)
    assert over_archives((side_of(one, "a"), side_of(other, "b"))).loads == ()


def test_the_page_of_a_trend_is_true_to_its_json(trend):
    page, data = page_of_several(trend), json.loads(json.dumps(document_json(trend)))
    assert wrong_numbers(page, data) == []
    assert wrong_rows(page, data) == []
    assert "a+x: its version differs: 1.0 / 2.0" in page
    assert 'id="ok-per-s-over-archives-20-connections-0"' in page


# --- sessions of one plan -----------------------------------------------------------------------------------


def sessions_of(folder, count):
    files = [session(folder / f"{k}.prony", k, (1, 1 + k / 10, 1)) for k in range(count)]
    sides = []
    for file in files:
        with open_archive(file) as archive:
            sides += sessions_in(read_archive(archive), file.name)
    return read_over(sides)


@pytest.fixture(scope="module", params=[2, 5])
def sessions(request, tmp_path_factory):
    return sessions_of(tmp_path_factory.mktemp("sessions"), request.param)


def test_the_page_of_sessions_is_true_to_their_json(sessions):
    page, data = page_of_several(sessions), json.loads(json.dumps(document_json(sessions)))
    assert wrong_numbers(page, data) == []
    assert wrong_rows(page, data) == []


def ratios_of(sessions):
    found = chart_specs(page_of_several(sessions))
    return found["ratios-over-sessions-10-connections-0"]["data"]["values"]


def test_the_page_of_sessions_shows_their_range_or_their_interval_as_the_text_does(sessions):
    (load,) = sessions.loads
    (row,) = [row for row in ratios_of(sessions) if row["name"] == load.rows[1].name and "ratio" in row]
    ratio = load.rows[1].ratio.over
    few = len(sessions.sides) < 5
    ends = (ratio.least, ratio.most) if few else (ratio.low, ratio.high)
    assert (row["ratio_low"] - 1, row["ratio_high"] - 1) == pytest.approx(ends)
    assert (row["verdict"] == "too few sessions for a verdict") is few


def test_the_page_of_sessions_says_what_the_line_is_once(sessions):
    page = page_of_several(sessions)
    line = "their range" if len(sessions.sides) < 5 else "the 95 % "
    assert f"small dots are single sessions, the line is {line}" in page


def test_the_page_of_sessions_has_a_dot_for_each(sessions):
    found = ratios_of(sessions)
    assert sum("single" in row for row in found) == 2 * len(sessions.sides)


def test_a_page_of_several_to_pass_on_names_no_host(trend):
    (first, *others) = trend.sides
    named = replace(trend, sides=(replace(first, archive="on-my-host"), *others))
    assert "on-my-host" in page_of_several(named)
    assert "on-my-host" not in page_of_several(Redaction("on-my-host")(named))


def test_a_site_has_a_page_for_each_archive_and_an_index_that_links_them(said, folder):
    (folder / "kept" / "inner").mkdir(parents=True)
    for place in ("kept/a.prony", "kept/inner/a.prony"):
        studies.one_subject(folder / place)
    assert said("report", "kept", "--site", "public").status == 0
    assert sorted(one.name for one in (folder / "public").iterdir()) == ["a-2.html", "a.html", "index.html"]
    links = [found["href"] for found, _ in Parsed((folder / "public/index.html").read_text()).all("a")]
    assert links[1:] == ["./a-2.html", "./a.html"]


def test_a_folder_without_archives_is_refused_and_makes_no_site(said, folder):
    (folder / "kept").mkdir()
    done = said("report", "kept", "--site", "public")
    assert (done.status, "`kept` has no archives" in done.err) == (2, True)
    assert not (folder / "public").exists()


def test_hostile_titles_and_servers_stay_text_in_an_index():
    hostile = "</script><b onclick=x>\"'"
    page = index_page([Listed("a.html", hostile, hostile, hostile, (hostile,), 0, hostile)])
    assert {"b", "img"} & {tag for tag, _ in Parsed(page).tags} == set()
