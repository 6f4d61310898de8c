"""A study with TLS says what was agreed on, and shows handshakes as a series of their own."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from golden import build
from prony.archive import open_archive
from prony.core.errors import ArchiveError
from prony.model.facts import Fingerprint
from prony.model.plan import Cell, Plan
from prony.model.workload import ClosedLoop, DurationStop, Workload
from prony.reading.study import read_archive
from prony.report.brief import brief_report
from prony.report.formats.as_json import reading_json
from prony.report.formats.markdown import markdown
from prony.report.study import study_report
from recordings import with_parts

MS = 1_000_000
WORKLOAD = Workload(ClosedLoop(10), DurationStop(2 * build.SECOND))
EVERY = {"groups": {"X25519": 10}, "keys": {"ECDSA P-256": 10}, "alpn": {"none": 10}}
PLAIN, FULL, BOTH = "a[tls=off]+hello", "a[tls=ecdsa]+hello", "b+hello"
AGREED = {
    FULL: {"protocols": {"TLS 1.3": 10}, "ciphers": {"TLS_AES_128_GCM_SHA256": 10}, **EVERY},
    BOTH: {"protocols": {"TLS 1.2": 10}, "ciphers": {"TLS_ECDHE_ECDSA_AES": 10}, **EVERY},
}


def handshakes(name):
    """Return thirty full handshakes of one time, and for one of the subjects ten resumed ones, too."""
    full, resumed = build.distribution([2 * MS] * 30), build.distribution([MS] * 10 * (name == BOTH))
    return {"full": full, "resumed": resumed, "failed": 0, **AGREED[name]}


def with_tls(trial, name):
    target = {
        **{"host": "127.0.0.1", "port": 8000, "socket": "tcp", "wire": {"kind": "http"}},
        "tls": {**TLS, "ca_file": "/var/lib/run/authority.pem", "resumption": name == BOTH},
    }
    spec = {"target": target, "workload": None, "threads": 1, "cpus": None, "pacing": None}
    return replace(trial, recording=with_parts(trial.recording, tls=handshakes(name), spec=spec))


TLS = {
    **{"verify": True, "certificate_file": None, "key_file": None},
    **{"server_name": None, "least_version": "1.2"},
}


def study(tmp_path, names):
    cells = tuple(Cell(k, build.subject(name), WORKLOAD) for k, name in enumerate(names))
    plan = Plan("s", "S", "", "quick", cells, 2, 1)
    with build.create(tmp_path / "a.prony", plan, Fingerprint()) as writer:
        for block in range(2):
            for k, cell in enumerate(cells):
                trial = build.trial(cell, block, k, [MS] * 400)
                name = cell.subject.name
                writer.append(trial if name == PLAIN else with_tls(trial, name))
        writer.finish(build.RunStatus.FINISHED)
    with open_archive(tmp_path / "a.prony") as archive:
        return read_archive(archive)


def test_what_was_agreed_on_is_said_with_what_was_measured(tmp_path):
    reading = study(tmp_path, [PLAIN, FULL])
    said = "TLS 1.3, TLS_AES_128_GCM_SHA256, X25519, ECDSA P-256, no resumption"
    assert f"{FULL}: {said}." in markdown(study_report(reading)).replace("\\", "")
    assert f"\n{said}." in markdown(brief_report(reading)).replace("\\", "")


def test_what_all_agreed_on_is_said_without_their_names(tmp_path):
    head = markdown(study_report(study(tmp_path, [FULL]))).replace("\\", "").partition("## ")[0]
    assert f"{FULL}: TLS" not in head
    assert "TLS 1.3, TLS_AES_128_GCM_SHA256" in head


def test_handshakes_have_a_table_of_their_own(tmp_path):
    page = markdown(study_report(study(tmp_path, [PLAIN, FULL, BOTH]))).replace("\\", "")
    table = page.partition("## TLS handshakes")[2].partition("##")[0]
    rows = [[part.strip() for part in line.split("|")[1:-1]] for line in table.splitlines() if "|" in line]
    assert [row[:3] for row in rows if row[1] in ("full", "resumed")] == [
        [FULL, "full", "30"],
        [BOTH, "full", "30"],
        ["", "resumed", "10"],
    ]
    assert PLAIN not in table


def test_a_server_that_does_not_take_the_same_in_all_blocks_is_named_first(tmp_path, monkeypatch):
    both, plain = iter(["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384"]), handshakes
    monkeypatch.setattr(f"{__name__}.handshakes", lambda name: {**plain(name), "ciphers": {next(both): 10}})
    reading = study(tmp_path, [FULL])
    rest = "X25519, ECDSA P-256, no resumption in 1 block"
    said = (
        f"{FULL}: TLS agreed on TLS 1.3, TLS_AES_128_GCM_SHA256, {rest}; "
        f"TLS 1.3, TLS_AES_256_GCM_SHA384, {rest}: its figures are not of one kind."
    )
    for report in (study_report, brief_report):
        page = " ".join(markdown(report(reading)).replace("\\", "").replace("**", "").split())
        assert said in page
    (cell,) = reading_json(reading)["groups"][0]["cells"]
    found = [(one["blocks"], one["tls"]["ciphers"]) for one in cell["tls_differs"]]
    assert found == [([0], ["TLS_AES_128_GCM_SHA256"]), ([1], ["TLS_AES_256_GCM_SHA384"])]


def test_a_server_that_takes_the_same_in_all_blocks_is_not_warned_of(tmp_path):
    reading = study(tmp_path, [PLAIN, FULL])
    assert "TLS agreed on" not in markdown(study_report(reading))
    assert [one["tls_differs"] for one in reading_json(reading)["groups"][0]["cells"]] == [[], []]


def test_of_a_generator_that_does_not_say_it_is_said_that_there_was_tls(tmp_path, monkeypatch):
    monkeypatch.setattr(f"{__name__}.handshakes", lambda name: None)
    page = markdown(study_report(study(tmp_path, [PLAIN, FULL]))).replace("\\", "")
    assert f"{FULL}: TLS, no resumption." in page
    assert "TLS handshakes" not in page


def test_the_json_has_them_too(tmp_path):
    plain, full = reading_json(study(tmp_path, [PLAIN, FULL]))["groups"][0]["cells"]
    assert plain["tls"] is None
    assert plain["metrics"]["handshake_full_p50"] == {"missing": "there was no TLS"}
    assert full["tls"]["keys"] == ["ECDSA P-256"]
    assert full["tls"]["resumption"] is False
    assert full["metrics"]["handshakes_full"]["mean"] == 30
    assert full["metrics"]["handshake_full_p50"]["mean"] == pytest.approx(2 * MS, rel=0.01)
    assert full["metrics"]["handshake_resumed_p50"] == {"missing": "there was no such handshake"}


def test_an_archive_keeps_of_a_file_only_the_name(tmp_path):
    study(tmp_path, [FULL])
    with open_archive(tmp_path / "a.prony") as archive:
        recordings = [one.trial.recording for one in archive.trials()]
    assert {one.spec.target.tls.ca_file for one in recordings} == {"authority.pem"}


def spoilt(tmp_path, path, value):
    """Write a value into the TLS of every recording of an archive, and return what a report says."""
    study(tmp_path, [FULL])
    with closing(sqlite3.connect(tmp_path / "a.prony")) as database, database:
        put = f"json_set(recording_json, '$.tls.{path}', json(?))"
        database.execute(f"UPDATE recording SET recording_json = {put}", (json.dumps(value),))
    with open_archive(tmp_path / "a.prony") as archive:
        return read_archive(archive)


@pytest.mark.parametrize(
    ("path", "value"),
    [("protocols", "TLS"), ("keys", {"RSA": -1}), ("ciphers", {"a": "b"}), ("failed", None)],
)
def test_a_recording_whose_tls_is_none_is_refused(tmp_path, path, value):
    with pytest.raises(ArchiveError, match=path):
        spoilt(tmp_path, path, value)


def test_of_ever_so_many_names_only_a_few_are_shown_without_their_escapes(tmp_path):
    reading = spoilt(tmp_path, "keys", {f"\x1b[31m{number}": 1 for number in range(1000)})
    shown = markdown(study_report(reading))
    assert "more, no resumption" in " ".join(shown.split())
    assert "\x1b[31m" not in shown


def test_a_study_without_tls_says_nothing_of_it(tmp_path):
    assert "TLS" not in markdown(study_report(study(tmp_path, [PLAIN]))).replace(PLAIN, "")
