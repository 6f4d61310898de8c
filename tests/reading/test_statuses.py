"""The statuses of a study's replies: over the trials of each subject, in report, JSON and page."""

import pytest
from jsonschema import Draft202012Validator

from mixes import MS, study_of_groups, study_of_mix, study_of_statuses
from prony.archive import open_archive
from prony.cli.report import report_data
from prony.reading.study import read_archive
from prony.reading.traces import traces
from prony.report.formats.as_json import report_schema
from prony.report.page.study import page_of_study
from prony.report.study import study_report


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    return study_of_statuses(tmp_path_factory.mktemp("statuses") / "a.prony")


@pytest.fixture(scope="module")
def cells(archive):
    (group,) = report_data(archive)["groups"]
    return {cell["subject"]: cell for cell in group["cells"]}


def bodies(path):
    """The bytes of all bodies of each subject, as its trials have them."""
    found = {}
    with open_archive(path) as archive:
        names = {cell.id: cell.subject.name for cell in archive.plan().cells}
        for record in archive.trials():
            name = names[record.trial.cell_id]
            found[name] = found.get(name, 0) + record.trial.recording.bytes.body_received
    return found


def test_the_statuses_of_each_subject_are_its_whole_to_the_request_and_the_byte(archive, cells):
    for name, cell in cells.items():
        for key in ("requests", "errors"):
            assert sum(one[key] for one in cell["statuses"]) == cell[key], (name, key)
        assert sum(one["share"] for one in cell["statuses"]) == pytest.approx(1)
        assert sum(one["body_received"] for one in cell["statuses"]) == bodies(archive)[name]


@pytest.mark.parametrize(("made", "parts"), [(study_of_mix, "paths"), (study_of_groups, "groups")])
def test_the_bodies_of_paths_and_of_groups_are_those_of_the_whole(tmp_path, made, parts):
    path = made(tmp_path / "a.prony")
    (group,) = report_data(path)["groups"]
    found = {cell["subject"]: sum(one["body_received"] for one in cell[parts]) for cell in group["cells"]}
    assert found == bodies(path)


def test_each_status_has_the_times_of_its_own_replies(cells):
    good, bad, none = cells["b+hello"]["statuses"]
    assert [one["status"] for one in (good, bad, none)] == ["200", "503", "none"]
    assert (good["errors"], bad["errors"], none["errors"], bad["of"]) == (0, 200, 2, "service_ns")
    assert bad["percentiles"]["50"]["mean"] == pytest.approx(30 * MS, rel=0.01)
    assert bad["percentiles"]["50"]["count"] == 5
    assert good["percentiles"]["99"]["mean"] < 5 * MS
    assert "fewer than 10 requests" in bad["percentiles"]["99"]["missing"]
    assert none["percentiles"]["50"]["missing"] == "no reply was complete"
    assert [one["status"] for one in cells["a+hello"]["statuses"]] == ["200"]


def test_the_report_and_the_page_have_a_table_by_status(archive):
    with open_archive(archive) as opened:
        reading = read_archive(opened)
        page = page_of_study(reading, traces(reading, opened.trials()))
    (section,) = [one for one in study_report(reading).sections if str(one.heading) == "By status"]
    rows = [[str(entry.text) for entry in row] for row in section.blocks[1].rows]
    assert [row[:3] for row in rows] == [
        ["a+hello", "200", "10,000"],
        ["b+hello", "200", "10,000"],
        ["", "503", "200"],
        ["", "no whole reply", "2"],
    ]
    assert "By status" in page


def test_where_all_replies_have_one_status_there_is_no_table(tmp_path):
    path = study_of_statuses(tmp_path / "a.prony", refused=0, cut=0)
    assert report_data(path)["groups"][0]["cells"][0]["statuses"][0]["status"] == "200"
    with open_archive(path) as archive:
        assert "By status" not in [str(one.heading) for one in study_report(read_archive(archive)).sections]


def test_the_json_of_statuses_has_the_published_shape(archive):
    assert Draft202012Validator(report_schema()).is_valid(report_data(archive))
