"""What is said of studies that are wrong: the valid one with one thing changed, against `NAME.expected`."""

import shutil
from pathlib import Path

import pytest

from prony.catalog.schema.studies import read_study
from prony.core.errors import UsageError

FOLDER = Path(__file__).parent / "hostile_studies"
SECOND_LOAD = '\n[[workloads]]\nloop = "closed"\nconnections = 7\n'
SECOND_CLAIM = '\n[[claims]]\nname = "faster"\ntext = "again"\nkind = "highest"\nmetric = "ok_per_s"\n'

# Name of the case -> what is replaced in the valid study by what. An empty text: added at the end.
STUDIES = {
    "cpus-of-nothing": ("cpus = 2", "cpus = 0"),
    "memory-without-a-unit": ('memory = "512M"', 'memory = "lots"'),
    "margin-of-all": ("[design]\n", "[design]\nmargin = 1\n"),
    "primary-of-no-load": ("primary = { connections = 10 }", "primary = { connections = 11 }"),
    "primary-by-an-unknown-name": ("primary = { connections = 10 }", "primary = { users = 10 }"),
    "unknown-generator": ('["prony", "wrk"]', '["prony", "wrk3"]'),
    "threads-of-nothing": ("threads = 1", "threads = 0"),
    "load-for-nobody": ('subjects = "*+hello"', 'subjects = "nginx*"'),
    "load-named-twice": ("", SECOND_LOAD.replace("loop", 'name = "kept"\nloop')),
    "as-of-nobody": ("", '\n[[subjects]]\nserver = "waitress"\napp = "hello"\nas_of = "bjoern+hello"\n'),
    "as-of-by-several": (
        "",
        '\n[[subjects]]\nserver = ["waitress", "wsgiref"]\napp = "hello"\nas_of = "gunicorn+hello"\n',
    ),
    "load-twice": ("connections = [10, 100]", "connections = [10, 10]"),
    "path-without-a-slash": ('path = "/"', 'path = "page"'),
    "header-with-a-line-break": ('Accept = "text/plain"', 'Accept = "a\\nHost: b"'),
    "change-of-no-load": ("workloads.kept", "workloads.cept"),
    "check-by-prony": ("", '\n[profiles.quick.cross_check]\nengines = "prony"\n'),
    "check-at-no-load": ("", '\n[profiles.quick.cross_check]\nengines = "wrk"\nconnections = 11\n'),
    "profile-without-loads": ('{ duration = "2s" }', "{ skip = true }"),
    "figures-of-another-folder": ('"valid.csv"', '"../valid.csv"'),
    "figures-that-are-not-there": ('"valid.csv"', '"other.csv"'),
    "claim-of-no-kind": ('kind = "ratio"', 'kind = "best"'),
    "claim-of-no-metric": ('metric = "ok_per_s"', 'metric = "rps"'),
    "claim-by-role-of-what-has-none": ('metric = "ok_per_s"', 'metric = "ok_per_s"\nrole = "worker"'),
    "claim-without-a-text": ('text = "gunicorn is faster"\n', ""),
    "claim-named-twice": ("", SECOND_CLAIM),
    "claim-for-nobody": ('subject = "gunicorn*"', 'subject = "bjoern*"'),
    "claim-against-nobody": ('against = "waitress*"', 'against = "bjoern*"'),
    "claim-by-no-generator": ('engine = "prony"', 'engine = "ab"'),
    "claim-against-no-generator": ('engine = "prony"', 'engine = "prony"\nagainst_engine = "ab"'),
    "claim-at-no-load": ("load = { connections = 10 }", "load = { connections = 11 }"),
    "claim-against-no-load": ("low = 1\n", "low = 1\nagainst_load = { rate = 5 }\n"),
    "ratio-without-bounds": ("low = 1\nhigh = 2\n", ""),
    "ratio-to-itself": ('against = "waitress*"\n', ""),
    "bounds-upside-down": ("low = 1\n", "low = 3\n"),
    "bounds-of-an-order": ('kind = "ratio"', 'kind = "highest"'),
    "bound-without-an-end": ("low = 1\n", "low = inf\n"),
    "failure-of-a-ratio": ("high = 2\n", 'high = 2\nfailure = "timed_out"\n'),
    "failure-without-a-class": (
        'kind = "ratio"\nmetric = "ok_per_s"',
        'kind = "fails"\nfailure = "tired"\nmetric = "error_ratio"',
    ),
    "single-core-of-memory": (
        'kind = "ratio"\nmetric = "ok_per_s"',
        'kind = "single-core"\nmetric = "rss_peak"',
    ),
    "growth-at-one-load": ('kind = "ratio"', 'kind = "grows"'),
    "needs-of-nothing": ("high = 2\n", "high = 2\nneeds = { blocks = 0 }\n"),
}
TABLES = {
    "figure-of-nobody": ("gunicorn+hello", "bjoern+hello"),
    "figure-of-no-metric": ("rss_peak", "memory"),
    "figure-of-no-generator": ("wrk", "ab"),
    "figure-by-role-of-what-has-none": ("connections", "role", 1),
    "figure-without-a-value": ("20000000", ""),
    "figure-that-is-no-number": ("1000.5", "1000.5/s"),
    "figure-without-an-end": ("1000.5", "inf"),
    "figure-at-no-load": ("ok_per_s,10,", "ok_per_s,11,"),
    "table-with-another-column": ("note\n", "remark\n"),
    "table-without-a-metric": ("metric", "note", 1),
    "row-with-too-many-cells": ("as published", "as,published"),
}


def refusal(folder, edit, suffix):
    for file in FOLDER.glob("valid.*"):
        shutil.copy(file, folder)
    file = folder / f"valid{suffix}"
    old, new, *count = edit
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, *count) if old else text + new)
    with pytest.raises(UsageError) as caught:
        read_study(str(folder / "valid.toml"))
    return caught.value.message.replace(f"{folder}/", "") + "\n"


@pytest.mark.parametrize("name", [*STUDIES, *TABLES])
def test_a_wrong_study_is_refused_with_line_field_found_and_expected(name, tmp_path, update_golden):
    edit, suffix = (STUDIES[name], ".toml") if name in STUDIES else (TABLES[name], ".csv")
    said = refusal(tmp_path, edit, suffix)
    expected = FOLDER / f"{name}.expected"
    if update_golden:
        expected.write_text(said)
    assert said == expected.read_text()


def test_the_study_that_the_wrong_ones_are_made_from_is_right():
    source = read_study(str(FOLDER / "valid.toml"))
    assert len(source.originals) == 2
    assert source.originals[1].engine == "*"


def test_every_expectation_is_of_a_case():
    assert {file.stem for file in FOLDER.glob("*.expected")} == {*STUDIES, *TABLES}


def test_a_table_that_is_not_text_is_refused(tmp_path):
    shutil.copy(FOLDER / "valid.toml", tmp_path)
    (tmp_path / "valid.csv").write_bytes(b"subject,metric,value\n\xff\xfe,ok_per_s,1\n")
    with pytest.raises(UsageError, match=r"valid\.csv: is not a table of UTF-8 text"):
        read_study(str(tmp_path / "valid.toml"))
