"""Loads over HTTP/2 of a real nginx, which leaves each connection after a thousand requests."""

import json
from collections import Counter

import pytest

from prony.archive import open_archive
from prony.model.address import Wire
from prony.model.trial import Failed, Ok
from prony.study.admission import ONE_AT_A_TIME
from servers.nginx import SIZES


@pytest.mark.quiet
@pytest.mark.parametrize("tls", [False, True], ids=["h2c", "tls"])
@pytest.mark.parametrize(
    ("page", "load", "count"),
    [
        ("small", ("-c", "2", "--streams", "10"), 5000),
        ("large", ("-c", "2", "--streams", "10"), 2500),
        ("small", ("--rate", "2000", "--streams", "20"), 3000),
    ],
    ids=["closed", "large", "open"],
)
def test_each_request_is_counted_once_though_connections_are_left(prony, nginx, tls, page, load, count):
    done = prony("load", *nginx.target(tls, page), "--http2", *load, "-n", str(count), "--json", "-")
    assert done.status == 0, done.err
    account, connections = done.json["account"], done.json["connections"]
    assert (account["scheduled"], account["ok"]) == (count, count)
    assert nginx.served() == {("HTTP/2.0", "200", str(SIZES[page])): count}
    assert done.json["bytes"]["body_received"] == count * SIZES[page]
    assert connections["requests_sent"] == count + connections["retried"]
    assert done.json["streams"]["goaways"] >= count // 1000 - 1


def test_studies_compare_both_wires_of_a_server(prony, folder):
    done = prony(
        *("run", "--no-calibration", "--app", "hello", "--servers", "nginx-static", "--repeats", "1"),
        *("--set", "nginx-static.wire=http,http2", "--set", "nginx-static.tls=off,ecdsa", "-c", "4"),
        *("--warmup", "0s", "--duration", "500ms", "--out", "a.prony", "--force"),
        timeout_s=180,
    )
    assert done.status == 0, done.err
    with open_archive(folder / "a.prony") as archive:
        last = {record.trial.cell_id: record.trial for record in archive.trials()}
    trials = list(last.values())
    assert all(trial.outcome == Ok() for trial in trials)
    spoken = Counter(trial.recording.spec.target.wire.kind for trial in trials)
    assert set(spoken) == {Wire.HTTP, Wire.HTTP2}
    for trial in trials:
        account = trial.recording.account
        assert account.ok == account.scheduled > 100


def seldom(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("names", "settings"),
    [
        seldom("go-net-http", ["go-net-http.wire=http2", "go-net-http.tls=ecdsa"]),
        seldom("mod-wsgi-express", ["mod-wsgi-express.wire=http2"]),
        # What it speaks to clients does not depend on what it speaks to the server.
        ("gunicorn@nginx", ["nginx.http2=true", "nginx.tls=off,ecdsa"]),
        seldom("uwsgi-socket@nginx", ["nginx.http2=true", "nginx.tls=off,ecdsa"]),
        seldom("gunicorn@apache,uwsgi-socket@apache", ["apache.http2=true", "apache.tls=off,ecdsa"]),
    ],
    ids=["go", "mod_wsgi", "nginx", "nginx, uwsgi", "apache"],
)
def test_what_agrees_on_http2_answers_over_it(prony, folder, names, settings):
    lacks = prony("doctor", *names.replace("@", ",").split(","), "--json").json
    if lacks["missing"]:
        pytest.skip(f"needs {', '.join(lacks['missing'])}")
    done = prony(
        *("run", "--no-calibration", "--app", "hello", "--servers", names, "--repeats", "1"),
        *(word for one in settings for word in ("--set", one)),
        *("-c", "2", "--streams", "5", "--warmup", "0s", "--duration", "500ms"),
        *("--out", "a.prony", "--force"),
        timeout_s=400,
    )
    assert done.status == 0, done.err
    with open_archive(folder / "a.prony") as archive:
        trials = [record.trial for record in archive.trials()]
        cells = len(archive.plan().cells)
    assert len({trial.cell_id for trial in trials}) == cells >= 1
    for trial in trials:
        # What else the machine does meanwhile is no matter here.
        assert not isinstance(trial.outcome, Failed), trial.outcome
        assert trial.recording.spec.target.wire.kind is Wire.HTTP2
        account = trial.recording.account
        assert account.ok == account.scheduled > 50
        agreed = trial.recording.tls and list(trial.recording.tls.alpn)
        assert agreed == (["h2"] if trial.recording.spec.target.tls else None)


def test_a_load_of_a_study_has_several_streams_on_each_connection(prony, folder):
    done = prony(
        *("run", "--no-calibration", "--app", "hello", "--servers", "nginx-static", "--repeats", "1"),
        *("--set", "nginx-static.wire=http,http2", "-c", "2", "--streams", "5", "--json", "a.json"),
        *("--warmup", "0s", "--duration", "500ms", "--out", "a.prony", "--force"),
        timeout_s=180,
    )
    assert done.status == 0, done.err
    with open_archive(folder / "a.prony") as archive:
        plan, trials = archive.plan(), [record.trial for record in archive.trials()]
    (last,) = {trial.cell_id: trial for trial in trials}.values()
    assert last.recording.spec.target.wire.streams == 5
    account = last.recording.account
    assert account.ok == account.scheduled > 100
    assert last.recording.streams.wire.count == account.ok
    assert [cell.workload.streams for cell in plan.cells] == [5, 5]
    report = json.loads((folder / "a.json").read_text())
    assert [group["load"].get("streams") for group in report["groups"]] == [5]
    assert report["unmeasured"] == {"nginx-static[wire=http]+hello": ONE_AT_A_TIME}
