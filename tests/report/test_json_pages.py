"""The pages on JSON name every key that is written."""

import re
from pathlib import Path

import pytest

from golden import build
from prony.analysis.load_json import load_result
from prony.archive import open_archive
from prony.report.json_report import report_json

PAGES = Path(__file__).parents[2] / "docs/reference"


def named(page):
    return set(re.findall(r"`\"?([\w.]+)\"?`", (PAGES / page).read_text("utf-8")))


def test_the_page_on_load_names_every_key():
    workload = build.Workload(build.OpenLoop(10), build.DurationStop(build.SECOND))
    found = load_result(build.recording(workload, [1_000_000] * 100))
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
        found = report_json(archive)
    cell, answer = found["groups"][0]["cells"][0], found["groups"][0]["answer"]
    parts = [found, found["plan"], found["runs"][0], found["groups"][0], cell, answer, found["findings"][0]]
    parts += [next(iter(found["subjects"].values())), next(iter(answer["comparisons"].values()))]
    parts += [value for value in cell["metrics"].values() if "missing" not in value][:1]
    parts += [trial for group in found["groups"] for each in group["cells"] for trial in each["uncounted"]]
    assert {key for part in parts for key in part} - {"missing"} <= named("report-json.md")
