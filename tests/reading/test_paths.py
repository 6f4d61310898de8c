"""The paths of a study's mix: over the trials of each subject, in the report, its JSON and its page."""

import csv
import json
import sqlite3
from contextlib import closing

import pytest
from jsonschema import Draft202012Validator

from golden import build
from mixes import LOAD, MS, SHOP, SLOW, study_of_mix
from prony.archive import open_archive
from prony.cli.report import report_data
from prony.core.errors import ArchiveError
from prony.figures.missing import Missing
from prony.model.workload import OTHERS, Mix, MixPath, RequestFile, RequestOrder
from prony.reading.cells import cell_paths
from prony.reading.study import read_archive
from prony.reading.traces import traces
from prony.report.brief import brief_report
from prony.report.formats.as_json import report_schema
from prony.report.formats.csv_files import write_csv
from prony.report.formats.markdown import markdown
from prony.report.page.study import page_of_study
from prony.report.study import study_report


def read(path):
    with open_archive(path) as archive:
        return read_archive(archive)


def test_each_path_has_its_requests_and_the_mean_of_its_percentiles(tmp_path):
    (group,) = read(study_of_mix(tmp_path / "a.prony")).groups
    for cell in group.cells:
        home, cart = cell_paths(cell)
        assert (home.asked, cart.asked, home.kind) == (0.9, 0.1, "service")
        assert (home.account.requests, cart.account.requests) == (9000, 1000)
        assert home.share == pytest.approx(0.9)
        slow = SLOW[cell.name]
        assert cart.percentiles["50"].mean == pytest.approx((slow + 0.05) * MS, rel=0.01)
        assert cart.percentiles["50"].count == 5
        assert isinstance(cart.percentiles["99"], Missing)
        assert "fewer than 10 requests" in cart.percentiles["99"].reason


def test_failures_of_a_path_are_its_own(tmp_path):
    (group,) = read(study_of_mix(tmp_path / "a.prony", {"reset": 200})).groups
    home, cart = cell_paths(group.cells[1])
    assert (home.account.lost, cart.account.lost) == (0, 1000)
    assert "infinite" in cart.percentiles["99"].reason


def test_the_json_of_a_cell_has_its_paths(tmp_path):
    (group,) = report_data(study_of_mix(tmp_path / "a.prony"))["groups"]
    first = group["cells"][0]["paths"]
    assert [one["name"] for one in first] == ["/", "/cart"]
    assert first[1]["percentiles"]["50"]["count"] == 5
    assert first[1]["of"] == "service_ns"
    assert group["load"]["mix"]["paths"][0] == {"path": "/", "weight": 9.0}


def test_the_json_of_a_mix_has_the_published_shape(tmp_path):
    data = report_data(study_of_mix(tmp_path / "a.prony"))
    assert Draft202012Validator(report_schema()).is_valid(data)


def test_a_load_of_one_path_has_no_paths_in_its_json(tmp_path):
    (group,) = report_data(build.closed_study(tmp_path / "a.prony", blocks=1))["groups"]
    assert not any(cell["paths"] for cell in group["cells"])


def test_the_report_the_short_answer_and_the_page_name_the_mix(tmp_path):
    path = study_of_mix(tmp_path / "a.prony")
    reading = read(path)
    headings = [str(section.heading) for section in study_report(reading).sections]
    assert "By path" in headings
    assert "mix of 2 paths (/=9 /cart=1)" in markdown(brief_report(reading))
    with open_archive(path) as archive:
        page = page_of_study(reading, traces(reading, archive.trials()))
    assert "By path" in page
    assert "/cart" in page


MANY = Mix((*SHOP.paths, *(MixPath(f"/{number}", 0.1) for number in range(98))))


def _rows(path):
    (section,) = [one for one in study_report(read(path)).sections if str(one.heading) == "By path"]
    return [[str(entry.text) for entry in row] for row in section.blocks[1].rows]


def test_of_many_paths_the_worst_have_rows_and_the_others_are_one_sum(tmp_path):
    path = study_of_mix(tmp_path / "a.prony", {"reset": 200}, MANY)
    rows = _rows(path)
    assert len(rows) == 20
    names = [row[1] for row in rows[:10]]
    assert {"/", "/cart"} < set(names)
    assert names[-1] == "all others"
    (group,) = report_data(path)["groups"]
    for cell in group["cells"]:
        assert len(cell["paths"]) == 100
        shown = [one for one in cell["paths"] if one["name"] in names]
        for name in ("requests", "errors"):
            every = sum(one[name] for one in cell["paths"])
            assert sum(one[name] for one in shown) + cell["other_paths"][name] == every


def test_a_path_that_fails_is_shown_though_it_is_as_quick_as_the_others(tmp_path):
    rows = _rows(study_of_mix(tmp_path / "a.prony", {"reset": 3}, MANY, failing="/90"))
    assert ["/90" in row[1] for row in rows].count(True) == 2


def test_paths_of_too_few_requests_that_all_succeed_have_no_rows(tmp_path):
    mix = Mix(tuple(MixPath(f"/{number}") for number in range(100)))
    path = study_of_mix(tmp_path / "a.prony", mix=mix, each=2)
    (section,) = [one for one in study_report(read(path)).sections if str(one.heading) == "By path"]
    assert [str(block.text) for block in section.blocks] == [
        "No path failed, and none has enough requests for a median: JSON and --csv have all."
    ]
    (group,) = report_data(path)["groups"]
    for cell in group["cells"]:
        assert cell["other_paths"]["requests"] == cell["requests"] == 1000


def test_the_table_of_paths_adds_up_to_each_trial(tmp_path):
    path = study_of_mix(tmp_path / "a.prony", {"reset": 9})
    with open_archive(path) as archive:
        write_csv(archive.trials, read_archive(archive), tmp_path / "csv")
        asked = {one.id: one.trial.recording.account.scheduled for one in archive.trials()}
    with (tmp_path / "csv" / "paths.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    found = dict.fromkeys(asked, 0)
    for row in rows:
        found[int(row["trial_id"])] += int(row["requests"])
    assert (found, {row["name"] for row in rows}) == (asked, {"/", "/cart"})
    assert not (tmp_path / "csv" / "groups.csv").exists()


def test_what_is_a_sum_already_has_no_row_of_its_own(tmp_path):
    file = RequestFile("urls.txt", "0" * 64, 1000, RequestOrder.IN_ORDER)
    mix = Mix((*MANY.paths[:99], MixPath(OTHERS, 20)), file=file)
    rows = _rows(study_of_mix(tmp_path / "a.prony", {"reset": 9}, mix, failing=OTHERS))
    assert [row[1] for row in rows].count("all others") == 2
    assert "others" not in [row[1] for row in rows]


def test_few_paths_have_all_rows(tmp_path):
    path = study_of_mix(tmp_path / "a.prony", mix=Mix(MANY.paths[:10]))
    assert len(_rows(path)) == 20
    assert not any("all others" in row[1] for row in _rows(path))
    assert report_data(path)["groups"][0]["cells"][0]["other_paths"] is None


def test_an_archive_with_a_mix_is_read_as_it_was_written(tmp_path):
    with open_archive(study_of_mix(tmp_path / "a.prony")) as archive:
        assert {cell.workload for cell in archive.plan().cells} == {LOAD}
        found = [record.trial.recording for record in archive.trials()]
    assert all([one.path for one in recording.paths] == ["/", "/cart"] for recording in found)


def _more(recording):
    recording["paths"][0]["account"]["ok"] += 1


def _other(recording):
    recording["paths"][0]["path"] = "/other"


def _histogram(recording):
    recording["paths"][0]["ok_service"]["histogram"] = "AAAA"


def _fewer(recording):
    del recording["paths"][1]


@pytest.mark.parametrize(
    ("forge", "words"),
    [
        (_more, "of `ok` in all paths"),
        (_other, "the paths of the load's mix"),
        (_fewer, "the paths of the load's mix"),
        (_histogram, "not an HdrHistogram"),
    ],
)
def test_an_archive_whose_paths_are_forged_is_refused(tmp_path, forge, words):
    path = study_of_mix(tmp_path / "a.prony")
    with closing(sqlite3.connect(path)) as database, database:
        (text,) = database.execute("SELECT recording_json FROM recording WHERE trial_id = 1").fetchone()
        recording = json.loads(text)
        forge(recording)
        change = "UPDATE recording SET recording_json = ? WHERE trial_id = 1"
        database.execute(change, (json.dumps(recording),))
    with pytest.raises(ArchiveError, match=words), open_archive(path) as archive:
        list(archive.trials())


@pytest.mark.parametrize(
    ("weight", "words"), [(0, "a weight from"), ("x", "a number"), (10**300, "a number")]
)
def test_an_archive_whose_load_has_no_sound_mix_is_refused(tmp_path, weight, words):
    path = study_of_mix(tmp_path / "a.prony")
    with closing(sqlite3.connect(path)) as database, database:
        (text,) = database.execute("SELECT workload_json FROM cell").fetchone()
        load = json.loads(text)
        load["mix"]["paths"][0]["weight"] = weight
        database.execute("UPDATE cell SET workload_json = ?", (json.dumps(load),))
    with pytest.raises(ArchiveError, match=words), open_archive(path) as archive:
        archive.plan()
