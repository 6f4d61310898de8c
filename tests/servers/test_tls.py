"""Subjects with TLS: verified by the study's own authority, and no key within reach of anybody else."""

import json
import os

import pytest

from prony.archive import open_archive
from prony.model.trial import Ok

pytestmark = pytest.mark.usefixtures("nothing_left")

# Says what its process finds: its own key, other private keys, and the authority's certificate.
APP = """\
import json
import os
from pathlib import Path

OWN = Path(os.environ["HOME"]) if (Path(os.environ["HOME"]) / "key.pem").exists() else Path.cwd()


def attempt(action):
    try:
        return action()
    except OSError as error:
        return f"refused: {error.strerror}"


def found():
    key, run = OWN / "key.pem", OWN.parent
    authority = run / "authority.pem"
    return {
        "mode": oct(key.stat().st_mode & 0o777),
        "is_own": key.stat().st_uid == os.geteuid(),
        "change": attempt(lambda: authority.write_text("mine")),
        "exchange": attempt(lambda: authority.unlink()),
        "keys": sorted({
            str(file.relative_to(run).parts[-1])
            for file in run.rglob("*.pem")
            if file.parent != OWN and "PRIVATE" in str(attempt(file.read_text))
        }),
        "secret": "PRIVATE" in authority.read_text(),
    }


TEXT = json.dumps(found()).encode()


def app(environ, start_response):
    scheme = environ["wsgi.url_scheme"]
    start_response("200 OK" if scheme == "https" else "400 Bad Request", [("Content-Length", str(len(TEXT)))])
    print("FOUND", TEXT.decode(), flush=True)
    return [TEXT]
"""


def run(*more):
    return (
        *(
            "run",
            "--no-calibration",
            "--app",
            "shop:app",
            "--servers",
            "gunicorn",
            "--repeats",
            "1",
            "-c",
            "2",
        ),
        *("--warmup", "0s", "--duration", "500ms", "--out", "a.prony", "--force", "--expect-status", "200"),
        *more,
    )


def trials(folder):
    with open_archive(folder / "a.prony") as archive:
        return [record.trial for record in archive.trials()]


@pytest.mark.parametrize("key", ["ecdsa", pytest.param("rsa2048", marks=pytest.mark.slow)])
def test_a_users_app_is_served_over_tls_and_finds_no_key_but_its_own(prony, folder, cache, key):
    (folder / "shop.py").write_text(APP)
    done = prony(*run("--set", f"gunicorn.tls={key}", "--net", "isolated"), timeout_s=180)
    assert done.status == 0, done.err
    trial = trials(folder)[-1]
    assert trial.outcome == Ok()
    lines = [line for line in trial.log.text.splitlines() if "FOUND" in line]
    found = json.loads(lines[-1].partition("FOUND ")[2])
    assert found["mode"] == "0o400"
    assert found["is_own"]
    assert found["keys"] == []
    assert not found["secret"]
    if os.geteuid() == 0:
        assert found["change"].startswith("refused")
        assert found["exchange"].startswith("refused")
    assert trial.recording.tls.failed == 0
    assert list(trial.recording.tls.keys) == [{"ecdsa": "ECDSA P-256", "rsa2048": "RSA 2048"}[key]]
    assert trial.recording.spec.target.tls.verify
    assert list((cache / "run").rglob("*.pem")) == []


def test_no_key_and_no_path_of_one_is_in_the_archive(prony, folder):
    (folder / "shop.py").write_text(APP.replace('print("FOUND", TEXT.decode(), flush=True)', "pass"))
    done = prony(*run("--tls"), timeout_s=180)
    assert done.status == 0, done.err
    archive = (folder / "a.prony").read_bytes()
    assert b"PRIVATE KEY" not in archive
    assert b"BEGIN CERTIFICATE" not in archive
    assert "TLS 1.3" in done.out
    assert "YOUR-KEY.pem" in done.out


def test_cells_differ_by_the_cipher_that_clients_offer(prony, folder):
    suites = ("TLS_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256")
    servers = ("--app", "hello", "--servers", "nginx-static", "--repeats", "1", "-c", "2")
    times = ("--warmup", "0s", "--duration", "500ms", "--out", "a.prony", "--force")
    asked = ("--tls", "--set", f"nginx-static.tls_cipher={','.join(suites)},any")
    done = prony("run", "--no-calibration", *servers, *times, *asked, timeout_s=180)
    assert done.status == 0, done.err
    found = {trial.cell_id: trial.recording.tls for trial in trials(folder)}
    assert [list(found[k].ciphers) for k in range(2)] == [[name] for name in suites]
    assert [list(found[k].protocols) for k in range(3)] == [["TLS 1.3"], ["TLS 1.2"], ["TLS 1.3"]]
    with open_archive(folder / "a.prony") as archive:
        names = [cell.subject.name for cell in archive.plan().cells]
    assert [name for name, suite in zip(names, suites, strict=False) if suite not in name] == []
    assert len(set(names)) == 3


def test_sessions_are_resumed_where_that_is_asked_for(prony, folder):
    asked = ("nginx-static.tls=ecdsa", "nginx-static.keep_alive=0", "nginx-static.tls_resumption=false,true")
    done = prony(
        *(
            "run",
            "--no-calibration",
            "--app",
            "hello",
            "--servers",
            "nginx-static",
            "--repeats",
            "1",
            "-c",
            "2",
        ),
        *("--warmup", "0s", "--duration", "500ms", "--out", "a.prony", "--force"),
        *(word for setting in asked for word in ("--set", setting)),
        timeout_s=180,
    )
    assert done.status == 0, done.err
    last = {trial.cell_id: trial.recording.tls for trial in trials(folder)}
    full, resumed = last[0], last[1]
    assert full.resumed.count == 0
    assert full.full.count > 2
    assert resumed.resumed.count > resumed.full.count
    assert list(full.protocols) == list(resumed.protocols) == ["TLS 1.3"]
