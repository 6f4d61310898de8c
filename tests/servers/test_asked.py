"""An app whose service runs on this machine, on the same CPUs: a part of the subject, and no disturbance."""

import contextlib
import os
import pwd
import signal
import subprocess
from pathlib import Path

import pytest

from commands import passable_folder
from prony.figures.trial_metrics import role_metrics, trial_metrics
from prony.figures.validity import asked_cpu_ns, subject_cpu_ns
from prony.model.trial import Ok
from servers.cable import BRIEF
from someones_service import connected, free_port, of_init, service

pytestmark = pytest.mark.usefixtures("nothing_left")

APP = """
import os
import socket
import threading

own = threading.local()


def app(environ, start_response):
    if not hasattr(own, "connection"):
        where = os.environ["SERVICE"]
        own.connection = socket.socket(socket.AF_INET if where.isdigit() else socket.AF_UNIX)
        own.connection.connect(("127.0.0.1", int(where)) if where.isdigit() else where)
    own.connection.send(b"?")
    text = own.connection.recv(1)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "1")])
    return [text]
"""


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_what_a_service_does_for_the_app_is_the_subjects_own(kind, prony, folder, trials):
    (folder / "asking.py").write_text(APP)
    out = folder / "out.prony"
    # Of the app's own folder a trial has a copy, in which no socket answers.
    beside = folder.with_name(f"{folder.name}.sock")
    where = str(free_port()) if kind == "tcp" else str(beside)
    with contextlib.ExitStack() as ending, service(where, mode=0o666):
        ending.callback(beside.unlink, missing_ok=True)
        words = ("--app", "asking:app", "--dir", folder, "--servers", "waitress", "--env", f"SERVICE={where}")
        done = prony("run", *words, *BRIEF, "-c", "2", "--repeats", "1", "--out", out, timeout_s=240)
    assert done.status == 0, done.err
    trial = trials(out)[-1]
    assert isinstance(trial.outcome, Ok)
    used_ns = asked_cpu_ns(trial.counters, "service")
    # Each reply takes 50 ms of its CPU.
    assert used_ns >= 0.5 * 50e6 * trial.recording.account.ok
    metrics = trial_metrics(trial)
    both_ns = subject_cpu_ns(trial.counters) + used_ns
    assert metrics["cpu_ns_per_request"] * trial.recording.account.ok >= 0.9 * both_ns
    assert role_metrics(trial)["service"]["cpu_percent"] > 0
    assert "a service at" in " ".join(done.out.split())


POOL = """
import os, socket

pool = [socket.create_connection(("127.0.0.1", int(os.environ["PGPORT"]))) for _ in range(3)]


def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return [b"hi"]
"""


@pytest.fixture
def postgres():
    """The port of a PostgreSQL of the machine that lets five connections of applications in."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    owner = next((one.pw_uid for one in pwd.getpwall() if one.pw_name == "postgres"), None)
    if not programs or owner is None or os.geteuid() != 0:
        pytest.skip("needs root and PostgreSQL: apt-get install postgresql")
    as_owner = ["setpriv", f"--reuid={owner}", f"--regid={owner}", "--clear-groups"]
    with passable_folder() as place:
        os.chown(place, owner, owner)
        data, port = place / "data", str(free_port())
        make = [*as_owner, programs[-1] / "initdb", f"--pgdata={data}", "--username=prony", "--no-sync"]
        subprocess.run(make, check=True, capture_output=True, cwd=place)
        said = {"max_connections": "8", "port": port, "listen_addresses": "127.0.0.1", "fsync": "off"}
        said |= {"unix_socket_directories": str(place), "authentication_timeout": "600"}
        words = [word for name, value in said.items() for word in ("-c", f"{name}={value}")]
        with of_init([str(programs[-1] / "postgres"), "-D", str(data), *words], owner, signal.SIGQUIT):
            connected(port).close()
            yield port


@pytest.mark.slow
def test_pools_that_a_database_cannot_have_together_are_measured_in_turns(prony, folder, postgres):
    (folder / "pool.py").write_text(POOL)
    words = ("--app", "pool:app", "--servers", "gunicorn,waitress", "--set", "gunicorn.workers=1")
    brief = (*BRIEF, "-c", "2", "--repeats", "1", "--rounds", "3", "--pilot", "0s")
    done = prony("run", *words, *brief, "--env", f"PGPORT={postgres}", "--out", "out.prony", timeout_s=240)
    assert done.status == 0, done.err
    assert (
        "gunicorn+pool and waitress+pool have 6 connections to postgres, which takes 5: they are measured in "
        "turns" in done.err
    )
