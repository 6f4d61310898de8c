"""The pages on JSON name every key that is written."""

import re
from pathlib import Path

import pytest

from golden import build, generators, studies
from prony.archive import open_archive
from prony.faces.json_load import load_result
from prony.faces.json_report import reading_json
from prony.reading.load import read_load
from prony.reading.study import read_archive

PAGES = Path(__file__).parents[2] / "docs/reference"


def named(page):
    return set(re.findall(r"`\"?([\w.]+)\"?`", (PAGES / page).read_text("utf-8")))


def test_the_page_on_load_names_every_key():
    workload = build.Workload(build.OpenLoop(10), build.DurationStop(build.SECOND))
    found = load_result(read_load(build.recording(workload, [1_000_000] * 100)))
    summary = found["latency"]["ok"]["response_ns"]
    keys = {
        *found,
        *found["window"],
        *found["rate"],
        *found["ratio"],
        *found["generator"],
        *found["series"][0],
    }
    assert {*keys, *summary, *summary["percentiles"], "send_lag_ns", "connect_ns"} <= named("load-json.md")


@pytest.mark.parametrize("study", [build.study_two, build.closed_study])
def test_the_page_on_reports_names_every_key(study, tmp_path):
    with open_archive(study(tmp_path / "a.prony", 2)) as archive:
        found = reading_json(read_archive(archive))
    cell, answer = found["groups"][0]["cells"][0], found["groups"][0]["answer"]
    parts = [found, found["plan"], found["runs"][0], found["groups"][0], cell, answer, found["findings"][0]]
    parts += [next(iter(found["subjects"].values())), next(iter(answer["comparisons"].values()))]
    parts += [value for value in cell["metrics"].values() if "missing" not in value][:1]
    parts += [trial for group in found["groups"] for each in group["cells"] for trial in each["uncounted"]]
    assert {key for part in parts for key in part} - {"missing"} <= named("report-json.md")


def test_the_page_on_reports_names_every_key_of_repeats_and_checks(tmp_path):
    with open_archive(studies.grid_study(tmp_path / "a.prony", 4)) as archive:
        repeat = reading_json(read_archive(archive))
    with open_archive(generators.checked_study(tmp_path / "b.prony", 2)) as archive:
        checked = reading_json(read_archive(archive))
    parts = [repeat["claims"][0], repeat["originals"][0], repeat["calibration"][0], repeat["order"][0]]
    parts += [repeat["groups"][0]["standings"][0], repeat["plan"]["design"], repeat["claims"][0]["needs"]]
    parts += list(repeat["groups"][0]["cells"][0]["pace"].values())
    parts += [level for pace in parts[-1:] for level in pace["levels"]]
    parts += [checked["cross_checks"][0], checked["found_rates"][0]]
    assert {key for part in parts for key in part} <= named("report-json.md")
