"""A user's own application: installed with what it needs, measured on several servers, judged by replies."""

import pytest

from commands import ended
from prony.archive import open_archive
from prony.model.trial import Failed, Ok, TrialRole

pytestmark = pytest.mark.usefixtures("nothing_left")

FLASK_APP = """\
import humanize
from flask import Flask, request

app = Flask(__name__)


@app.get("/")
def index():
    return f"{humanize.intcomma(1234567)} greetings to {request.args.get('name', 'nobody')}"
"""

# `hits` counts the requests of the process.
COUNTING_APP = """\
import os

hits = 0


def app(environ, start_response):
    global hits
    hits += 1
    {body}
    start_response("{status}", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return [b"hi"]
"""


MOODY_APP = """\
def app(environ, start_response):
    is_gunicorn = "gunicorn" in environ["SERVER_SOFTWARE"]
    start_response("200 OK" if is_gunicorn else "418 I'm a teapot", [("Content-Length", "2")])
    return [b"hi"]
"""

ECHO_APP = """\
def app(environ, start_response):
    body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
    reply = environ["REQUEST_METHOD"].encode() + b" " + body
    start_response("200 OK", [("Content-Length", str(len(reply)))])
    return [reply]
"""


MIX = ("--path", "/=3", "--path", "/cart=1")


def made_up(trial):
    """Tell whether the accounts of the two paths make up that of the trial."""
    home, cart = trial.recording.paths
    return home.account.ok + cart.account.ok == trial.recording.account.ok > cart.account.ok > 0


def write(folder, status="200 OK", body="pass"):
    (folder / "shop.py").write_text(COUNTING_APP.format(status=status, body=body))


def run(*more, servers="wsgiref"):
    return (
        *(
            "run",
            "--no-calibration",
            "--app",
            "shop:app",
            "--servers",
            servers,
            "--repeats",
            "1",
            "-c",
            "2",
            "--out",
            "out.prony",
        ),
        *("--duration", "500ms", "--warmup", "100ms", "--timeout", "2s", *more),
    )


def test_an_app_with_requirements_of_its_own_runs_on_three_servers(prony, folder, trials):
    (folder / "shop.py").write_text(FLASK_APP)
    (folder / "requirements.txt").write_text("flask==3.1.2\nhumanize==4.12.3\n")
    done = prony(
        *run(
            "--requirements",
            "requirements.txt",
            "-c",
            "10",
            "--duration",
            "2s",
            "--warmup",
            "500ms",
            "--force",
        ),
        *("--servers", "gunicorn,waitress,uwsgi", "--path", "/?name=you"),
        timeout_s=300,
    )
    assert done.status == 0, done.err
    assert [trial.outcome for trial in trials(folder / "out.prony")] == [Ok()] * 3
    assert all(trial.recording.account.ok > 100 for trial in trials(folder / "out.prony"))
    with open_archive(folder / "out.prony") as archive:
        subjects = archive.subjects()
    assert sorted(subjects) == ["gunicorn+shop", "uwsgi+shop", "waitress+shop"]
    for subject in subjects.values():
        assert subject.packages["flask"] == "3.1.2"
        assert subject.packages["humanize"] == "4.12.3"
        assert subject.server_version


def test_the_apps_variables_reach_it_and_their_values_do_not_reach_the_archive(prony, folder, trials):
    write(folder, body='assert os.environ["TOKEN"] == "s3cr3t-word", dict(os.environ)')
    done = prony(*run("--env", "TOKEN=s3cr3t-word"))
    assert done.status == 0, done.err
    assert trials(folder / "out.prony")[0].recording.account.bad_status == {}
    assert b"s3cr3t-word" not in (folder / "out.prony").read_bytes()


OWN_STUDY = """\
name = "mine"
title = "A shop, twice"

[apps.shop]
app = "shop:app"
dir = "src"
current = "gunicorn -w 2 shop:app"
env = { WORD = "of the file" }

[apps.plain]
command = "/usr/bin/python3 serve.py {port}"
dir = "src"
env = { WORD = "of the file" }

[[subjects]]
server = ["yours", "waitress"]
app = "shop"

[[subjects]]
server = "yours"
app = "plain"

[[workloads]]
loop = "closed"
connections = 2

[profiles.quick]
blocks = 1
duration = "500ms"
timeout = "2s"
"""


def test_a_studys_file_has_own_apps_which_are_measured_with_their_commands(prony, folder, trials):
    (folder / "src").mkdir()
    write(folder / "src", body='assert os.environ["WORD"] == "of the file", os.environ["TOKEN"]')
    (folder / "src" / "serve.py").write_text(
        "import sys, shop\nfrom wsgiref.simple_server import make_server\n"
        "make_server('127.0.0.1', int(sys.argv[1]), shop.app).serve_forever()\n"
    )
    (folder / "mine.toml").write_text(OWN_STUDY)
    done = prony("run", "mine.toml", "--no-calibration", "--out", "out.prony", "--env", "TOKEN=s3cr3t-word")
    assert done.status == 0, done.err
    assert "shop: yours: gunicorn -w 2 shop:app" in done.err
    found = trials(folder / "out.prony")
    assert [trial.outcome for trial in found] == [Ok()] * 3
    assert all(trial.recording.account.ok > 10 and not trial.recording.account.bad_status for trial in found)
    with open_archive(folder / "out.prony") as archive:
        subjects = archive.subjects()
    assert "gunicorn" in subjects["yours+shop"].command_line
    assert "serve.py" in subjects["yours+plain"].command_line
    assert subjects["waitress+shop"].settings["threads"] == 2
    assert b"s3cr3t-word" not in (folder / "out.prony").read_bytes()


def test_a_mix_is_asked_of_every_server_and_accounted_by_path(prony, folder, trials):
    write(folder)
    options = (*MIX, "--expect-body", "hi", "--force", "--full")
    done = prony(*run(*options, servers="wsgiref,waitress"), timeout_s=120)
    assert done.status == 0, done.err
    assert "mix of 2 paths (/=3 /cart=1)" in done.out
    assert "By path" in done.out
    found = trials(folder / "out.prony")
    assert len(found) == 2
    for trial in found:
        assert [one.path for one in trial.recording.paths] == ["/", "/cart"]
        assert made_up(trial)


@pytest.mark.slow
def test_a_study_of_a_mix_that_was_killed_goes_on_with_it(prony, folder, trials):
    write(folder)
    typed = run(*MIX, "--force", "--repeats", "3")
    with ended(prony.start(*typed)) as process:
        line = ""
        while "[2/3]" not in line:
            line = process.stderr.readline()
            assert line, process.communicate()
        process.kill()
        process.communicate(timeout=10)
    done = prony(*typed, timeout_s=120)
    assert done.status == 0, done.err
    found = [trial for trial in trials(folder / "out.prony") if trial.outcome == Ok()]
    assert {trial.block for trial in found} == {0, 1, 2}
    assert all(made_up(trial) for trial in found)


@pytest.mark.slow
def test_the_highest_rate_of_a_mix_is_found(prony, folder):
    write(folder)
    search = ("--find-rate", "p90 < 50ms, errors < 1%", "--duration", "300ms", "--force")
    done = prony(*run(*MIX, *search), timeout_s=240)
    assert done.status == 0, done.err
    with open_archive(folder / "out.prony") as archive:
        found = [one.trial for one in archive.trials() if one.trial.role is TrialRole.FIND_RATE]
    found = [trial for trial in found if trial.outcome == Ok()]
    assert found
    assert all(made_up(trial) for trial in found)


@pytest.mark.slow
def test_a_mix_is_asked_over_tls_too(prony, folder, trials):
    write(folder)
    done = prony(*run(*MIX, "--force", "--tls", servers="gunicorn"), timeout_s=180)
    assert done.status == 0, done.err
    found = trials(folder / "out.prony")
    assert found
    for trial in found:
        assert made_up(trial)
        assert trial.recording.tls.full.count > 0


def test_a_path_of_a_mix_that_fails_stops_the_run_before_any_load(prony, folder):
    (folder / "shop.py").write_text(
        "def app(environ, start_response):\n"
        "    is_cart = environ['PATH_INFO'] == '/cart'\n"
        "    start_response('404 No' if is_cart else '200 OK', [('Content-Length', '2')])\n"
        "    return [b'hi']\n"
    )
    done = prony(*run("--path", "/", "--path", "/cart"))
    assert done.status == 3
    assert "no server answers with a success" in done.err
    assert "GET /cart: status 404" in done.err


def test_a_contract_that_every_server_breaks_stops_the_run_before_any_load(prony, folder):
    write(folder)
    done = prony(*run("--expect-body", "something else"))
    assert done.status == 3
    assert "no server answers with a success" in done.err
    assert "wsgiref+shop: status 200, text/plain, 2 bytes: `hi`" in done.err
    assert not (folder / "out.prony").exists()


def test_replies_that_differ_between_servers_stop_the_run_before_any_load(prony, folder):
    (folder / "shop.py").write_text(MOODY_APP)
    done = prony(*run(servers="gunicorn,wsgiref"), timeout_s=120)
    assert done.status == 3
    assert "servers answer the same request differently" in done.err
    assert "wsgiref+shop: status 418" in done.err
    assert "gunicorn+shop: status 200" in done.err
    assert not (folder / "out.prony").exists()


def test_an_app_whose_answers_fail_only_under_load_is_measured_but_never_wins(prony, folder, trials):
    failing = 'if hits > 6: return start_response("500 Oh", [("Content-Length", "2")]) and None or [b"no"]'
    write(folder, body=failing)
    done = prony(*run("--full", "--json", "out.json", "--force"))
    assert done.status == 3, done.err
    (trial,) = trials(folder / "out.prony")
    assert trial.outcome == Ok()
    assert list(trial.recording.account.bad_status) == ["500"]
    report = prony("report", "out.prony", "--json").json
    (group,) = report["groups"]
    assert group["cells"][0]["qualified"] is False
    assert group["answer"]["leader"] is None
    assert "500" in done.out


def test_an_app_that_dies_at_the_start_is_shown_with_its_last_words(prony, folder):
    (folder / "shop.py").write_text("app = None\nif app is None:\n    import not_installed_here\n")
    done = prony(*run(servers="wsgiref,gunicorn"), timeout_s=120)
    assert done.status == 3
    assert done.err.count("ModuleNotFoundError: No module named 'not_installed_here'") == 2
    assert "--requirements" in done.err
    assert not (folder / "out.prony").exists()


def test_a_server_that_crashes_under_load_is_a_failure_at_load(prony, folder, trials):
    write(folder, body="os._exit(3) if hits > 200 else None")
    done = prony(*run("--duration", "2s"))
    assert done.status == 3, done.err
    (trial,) = trials(folder / "out.prony")
    assert isinstance(trial.outcome, Failed)
    assert (trial.outcome.stage, trial.outcome.reason) == (
        "load",
        "the server exited with status 3 under load",
    )
    assert trial.recording is not None
    assert trial.recording.account.count("connect_refused") > 0


def test_requests_with_a_body_reach_the_app(prony, folder, trials):
    (folder / "shop.py").write_text(ECHO_APP)
    done = prony(*run("-m", "POST", "--body", "a=b", "--expect-body", "POST a=b"))
    assert done.status == 0, done.err
    account = trials(folder / "out.prony")[0].recording.account
    assert account.scheduled == account.ok > 0


def test_a_command_runs_before_each_trial_as_the_app_would(prony, folder):
    write(folder)
    beside = folder.with_name(f"{folder.name}.runs")
    beside.touch()
    beside.chmod(0o666)
    line = "os.environ['WHO'] + ' ' + os.getcwd() + chr(10)"
    (folder / "fill.py").write_text(f"import os\nopen(os.environ['RUNS'], 'a').write({line})\n")
    named = ("--env", "WHO=me", "--env", f"RUNS={beside}")
    try:
        done = prony(*run(*named, "--before-each", "python fill.py"), timeout_s=120)
        lines = beside.read_text().splitlines()
    finally:
        beside.unlink()
    assert done.status == 0, done.err
    # Before the app is asked, and before each of its trials.
    assert len(lines) >= 2
    assert set(lines) == {f"me {folder}"}


def test_a_command_that_fails_before_a_trial_is_named_and_nothing_is_measured(prony, folder):
    write(folder)
    (folder / "fill.py").write_text("raise SystemExit('no such table: rows')\n")
    done = prony(*run("--before-each", "python fill.py"), timeout_s=120)
    assert done.status == 3
    assert "fill.py`, which runs before each trial, failed: no such table: rows" in " ".join(done.err.split())
