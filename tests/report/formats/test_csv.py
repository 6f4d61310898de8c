"""Tables for other programs: tidy, with units, safe in a spreadsheet, and nothing half-written."""

import csv
import re
from pathlib import Path
from statistics import geometric_mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden import build, generators, studies
from prony.archive import open_archive
from prony.core.errors import UsageError
from prony.core.metrics import METRICS
from prony.reading.study import read_archive
from prony.report.formats.csv_files import write_csv, write_sheets, written
from prony.report.formats.sheets import Sheet, header


def tables(path, folder):
    with open_archive(path) as archive:
        write_csv(archive.trials, read_archive(archive), folder)
    found = {}
    for file in folder.iterdir():
        with file.open(encoding="utf-8", newline="") as lines:
            found[file.stem] = list(csv.DictReader(lines))
    return found


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    folder = tmp_path_factory.mktemp("csv")
    return tables(studies.grid_study(folder / "a.prony", 5), folder / "out")


@pytest.fixture(scope="module")
def embedded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("csv")
    return tables(build.study_two(folder / "a.prony", 3), folder / "out")


def test_there_is_one_file_for_each_table(grid):
    assert set(grid) == {
        *(
            "trials",
            "cells",
            "requests",
            "statuses",
            "processes",
            "series",
            "comparisons",
            "standings",
            "claims",
            "originals",
        ),
    }


def test_a_trial_has_a_row_whatever_came_of_it_and_a_column_for_each_metric(grid):
    rows = grid["trials"]
    assert {row["role"] for row in rows} == {"subject", "calibration"}
    assert {row["outcome"] for row in rows} == {"ok", "failed", "invalid"}
    assert {header(name) for name in METRICS} <= set(rows[0])
    (failed, *_) = [row for row in rows if row["outcome"] == "failed"]
    assert failed["reason"].startswith("out of memory")
    assert failed[header("ok_per_s")] == ""
    assert "ok_per_s" in failed["missing"]
    assert ": there was no load; " in failed["missing"]


def test_a_missing_value_is_empty_and_has_its_reason(grid):
    for row in grid["cells"]:
        assert bool(row["mean"]) != bool(row["reason"])
        assert row["mean"] != "nan"


def test_figures_are_the_reports(grid):
    (row,) = [
        row
        for row in grid["cells"]
        if (row["subject"], row["connections"], row["role"], row["metric"])
        == ("bjoern+hello", "100", "", "ok_per_s")
    ]
    rates = [
        float(one[header("ok_per_s")])
        for one in grid["trials"]
        if (one["subject"], one["connections"]) == ("bjoern+hello", "100")
    ]
    assert float(row["mean"]) == pytest.approx(geometric_mean(rates))
    assert float(row["trimmed_mean"]) == pytest.approx(sum(sorted(rates)[1:-1]) / 3)
    assert row["unit"] == "1/s"


def test_claims_and_published_figures_stand_beside_what_was_measured(grid):
    assert {row["verdict"] for row in grid["claims"]} >= {"holds", "not testable here"}
    (published,) = [
        row for row in grid["originals"] if row["connections"] == "10000" and "bjoern" in row["subject"]
    ]
    assert (published["published"], published["metric"]) == ("82332", "ok_per_s")
    assert float(published["low"]) < float(published["mean"]) < float(published["high"])


def test_the_page_on_csv_names_every_file_and_column(grid):
    page = (Path(__file__).parents[3] / "docs/reference/report-csv.md").read_text("utf-8")
    columns = {name for rows in grid.values() if rows for name in rows[0]}
    columns -= {header(name) for name in METRICS}
    words = set(re.findall(r"`([^`]+)`", page))
    assert {f"{name}.csv" for name in grid} | columns <= words


def test_a_second_has_its_own_percentiles_or_a_reason(embedded):
    first = embedded["series"][0]
    assert int(first["ok"]) == int(first["latency_count"]) > 500
    assert float(first["latency_p50 [ns]"]) > 0
    assert first["latency_p99 [ns]"] == ""
    assert first["reason"] == "latency_p99: fewer than 10 requests lie above it"


def test_what_processes_used_is_told_by_role(embedded):
    assert {row["role"] for row in embedded["processes"]} == {"master", "worker"}


def test_generators_are_told_apart(tmp_path):
    found = tables(generators.generators_study(tmp_path / "a.prony"), tmp_path / "out")
    assert {row["engine"] for row in found["trials"]} == {name for name, _, _ in generators.GENERATORS}
    assert "hey 1 × 80" in {row["name"] for row in found["cells"]}


def test_numbers_stay_numbers_and_formulas_become_text():
    assert [written(value) for value in (-1, -0.5, 3, None, "a,b")] == ["-1", "-0.5", "3", "", "a,b"]
    assert [written(text) for text in ("=1", "+1", "-1", "@x", " =1")] == ["'=1", "'+1", "'-1", "'@x", "' =1"]


@given(st.text())
def test_no_text_begins_a_formula_or_holds_control_characters(text):
    cell = written(text)
    assert not cell.lstrip().startswith(("=", "+", "-", "@"))
    assert all(letter == "\n" or letter >= " " for letter in cell)


def test_a_folder_that_holds_something_is_left_alone(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("x")
    with pytest.raises(UsageError, match="exists already"):
        write_sheets([], tmp_path / "out")
    assert (tmp_path / "out" / "mine").read_text() == "x"


def test_nothing_is_left_when_a_table_cannot_be_made(tmp_path):
    def rows():
        yield (1,)
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError):
        write_sheets([Sheet("a", ("x",), rows())], tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_folder_is_filled(tmp_path):
    (tmp_path / "out").mkdir()
    write_sheets([Sheet("a", ("x",), [(1,)])], tmp_path / "out")
    assert (tmp_path / "out" / "a.csv").read_bytes() == b"x\r\n1\r\n"


def test_the_requests_of_a_trial_add_up_by_class_and_status(embedded):
    for trial in (row for row in embedded["trials"] if row[header("error_ratio")]):
        own = [row for row in embedded["requests"] if row["trial_id"] == trial["trial_id"]]
        lost = sum(int(row["requests"]) for row in own if row["class"] != "ok")
        whole = sum(int(row["requests"]) for row in own)
        assert lost / whole == pytest.approx(float(trial[header("error_ratio")]))
