"""The groups of users of a study: over the trials of each subject, in the report, its JSON, CSV and page."""

import csv
import json
import sqlite3
from contextlib import closing

import pytest
from jsonschema import Draft202012Validator

from mixes import GROUPS, study_of_groups
from prony.archive import open_archive
from prony.cli.report import report_data
from prony.core.errors import ArchiveError
from prony.reading.study import read_archive
from prony.reading.traces import traces
from prony.report.formats.as_json import report_schema
from prony.report.formats.csv_files import write_csv
from prony.report.page.study import page_of_study
from prony.report.study import study_report


def read(path):
    with open_archive(path) as archive:
        return read_archive(archive)


def test_the_groups_of_each_subject_are_its_whole_to_the_request(tmp_path):
    (group,) = report_data(study_of_groups(tmp_path / "a.prony", {"reset": 7, "timed_out": 2}))["groups"]
    for cell in group["cells"]:
        near, far = cell["groups"]
        assert (near["name"], far["name"], near["asked"]) == ("near", "far", 0.75)
        for key in ("requests", "errors"):
            assert near[key] + far[key] == cell[key], key
        assert near["share"] + far["share"] == pytest.approx(1)
        assert near["errors"] == 0
    assert [cell["groups"][1]["errors"] for cell in group["cells"]] == [0, 45]


def test_the_json_of_groups_has_the_published_shape_and_no_secret(tmp_path):
    path = study_of_groups(tmp_path / "a.prony")
    data = report_data(path)
    assert Draft202012Validator(report_schema()).is_valid(data)
    assert data["groups"][0]["load"]["groups"][0]["headers"][0] == ["Authorization", "<redacted>"]
    assert "s3cret" not in json.dumps(data)
    assert b"s3cret" not in path.read_bytes()


def test_the_report_and_the_page_have_a_table_by_group(tmp_path):
    path = study_of_groups(tmp_path / "a.prony")
    reading = read(path)
    (section,) = [one for one in study_report(reading).sections if str(one.heading) == "By group"]
    assert [str(row[1].text) for row in section.blocks[1].rows] == ["near", "far"] * 2
    with open_archive(path) as archive:
        page = page_of_study(reading, traces(reading, archive.trials()))
    assert "By group" in page
    assert "groups of users" in page


def test_the_table_of_groups_has_each_trial_and_all_its_requests(tmp_path):
    path = study_of_groups(tmp_path / "a.prony", {"reset": 7})
    with open_archive(path) as archive:
        write_csv(archive.trials, read_archive(archive), tmp_path / "csv")
    tables = {}
    for name in ("groups", "requests"):
        with (tmp_path / "csv" / f"{name}.csv").open(newline="") as file:
            tables[name] = list(csv.DictReader(file))
    assert len(tables["groups"]) == 2 * 2 * 5
    for trial in {row["trial_id"] for row in tables["groups"]}:
        by_group, whole = (
            sum(int(row["requests"]) for row in rows if row["trial_id"] == trial) for rows in tables.values()
        )
        assert by_group == whole
    assert {row["p50 [ns]"] for row in tables["groups"] if row["name"] == "far"} != {""}


def test_an_archive_with_groups_is_read_as_it_was_written(tmp_path):
    with open_archive(study_of_groups(tmp_path / "a.prony")) as archive:
        (load,) = {cell.workload for cell in archive.plan().cells}
        found = [record.trial.recording for record in archive.trials()]
    assert [(one.name, one.weight, one.delay_ns) for one in load.groups] == [
        (one.name, one.weight, one.delay_ns) for one in GROUPS.groups
    ]
    assert all(len(recording.groups) == 2 for recording in found)


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([{"name": "near", "weight": 1}], "2 to 32 groups"),
        ([{"name": "near", "weight": 1}, {"name": "near", "weight": 1}], "each name once"),
        ([{"name": "near", "weight": 0}, {"name": "far", "weight": 1}], "a weight above 0"),
        ([{"name": "a\nb", "weight": 1}, {"name": "far", "weight": 1}], "of one line each"),
    ],
)
def test_an_archive_whose_load_has_no_sound_groups_is_refused(tmp_path, groups, words):
    path = study_of_groups(tmp_path / "a.prony")
    with closing(sqlite3.connect(path)) as database, database:
        (text,) = database.execute("SELECT workload_json FROM cell").fetchone()
        load = {**json.loads(text), "groups": groups}
        database.execute("UPDATE cell SET workload_json = ?", (json.dumps(load),))
    with pytest.raises(ArchiveError, match=words), open_archive(path) as archive:
        archive.plan()
