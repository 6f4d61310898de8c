"""An app whose database is on another machine, which here is another network, at the other end of a cable."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from commands import eventually, without_page
from prony.catalog.schema.apps import BUILT_IN_APPS
from prony.model.trial import Ok
from servers.cable import BRIEF, GENERATORS, SERVER, installed

pytestmark = pytest.mark.usefixtures("nothing_left")
# What is called generators elsewhere: here the database is at that end.
DATABASE = GENERATORS
WAIT_MS = 20

# Each line is a query, which takes its time.
KEEPER = """
import socketserver
import sys
import time


class Keeper(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            time.sleep(float(sys.argv[2]) / 1000)
            self.wfile.write(self.client_address[0].encode() + b" asked for " + line)


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True


with Server((sys.argv[1], 0), Keeper) as server:
    print(server.server_address[1], flush=True)
    server.serve_forever()
"""

# A connection for each thread, as frameworks keep them.
APP = """
import os
import socket
import threading

own = threading.local()


def asked(query):
    if not hasattr(own, "database"):
        host, _, port = os.environ["DATABASE"].partition(":")
        own.connection = socket.create_connection((host, int(port)))
        own.database = own.connection.makefile("rwb")
    own.database.write(query + b"\\n")
    own.database.flush()
    return own.database.readline()


def app(environ, start_response):
    text = asked(b"soup")
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(text)))])
    return [text]
"""


@contextlib.contextmanager
def keeper(host, within=()):
    """Run the database at ``host``, behind the words ``within``; yield its address."""
    command = [*within, sys.executable, "-c", KEEPER, host, str(WAIT_MS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield f"{host}:{int(process.stdout.readline())}"
        finally:
            process.kill()


def ran(prony, within, place, *words):
    """Run a study of the app in ``place``, in the network behind the words ``within``."""
    done = subprocess.run(
        [*within, sys.executable, "-m", "prony", *without_page(("run", *words))],
        cwd=place,
        env=prony.environment(),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout


def test_an_apps_database_may_be_on_another_machine(prony, folder, cable, trials):
    place = folder / "shop"
    place.mkdir()
    (place / "shop.py").write_text(APP)
    subject = ("--app", "shop:app", "--servers", "waitress")
    with keeper("127.0.0.1") as here:
        installed(prony, *subject, "--dir", place, "--env", f"DATABASE={here}")
    out = folder / "far.prony"
    with keeper(DATABASE, cable[1]) as there:
        words = (*subject, *BRIEF, "--duration", "4s", "-c", "16", "--repeats", "1", "--out", out)
        right = ("--expect-body", f"{SERVER} asked for soup\n")
        ran(prony, cable[0], place, *words, *right, "--env", f"DATABASE={there}")
    (trial,) = trials(out)
    assert isinstance(trial.outcome, Ok)
    account = trial.recording.account
    assert account.ok == account.scheduled > 0
    # Four threads of waitress, and each waits for the other machine.
    assert account.ok <= 4 * (4000 / WAIT_MS) * 1.2


@pytest.mark.slow
def test_the_catalogues_page_with_15_queries_has_its_database_on_another_machine(
    prony, folder, cable, trials
):
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not programs or os.geteuid() != 0:
        pytest.skip("needs root and PostgreSQL: apt-get install postgresql")
    place = folder / "news"
    shutil.copytree(BUILT_IN_APPS / "django-postgres", place)
    (place / "requirements.txt").write_text("django==5.2.19\npsycopg[binary]==3.3.9\n")
    subject = ("--app", "django_postgres:app", "--servers", "waitress", "--dir", place)
    names = {"PGPORT": "5432", "PGUSER": "prony", "PGDATABASE": "postgres"}
    same = [word for name, value in names.items() for word in ("--env", f"{name}={value}")]
    with postgres(programs[-1], folder, DATABASE, cable[1]):
        # Nothing reaches it from here: the environment is built, and the study refused.
        refused = prony(
            *("run", *subject, *BRIEF, "-c", "1", "--repeats", "1", "--out", folder / "no.prony"),
            *("--env", "PGHOST=127.0.0.1", *same),
            timeout_s=240,
        )
        assert refused.status == 3
        out = folder / "far.prony"
        words = (*subject, *BRIEF, "-c", "4", "--repeats", "1", "--out", out)
        right = ("--expect-body-contains", "<li>Reader 0: Comment 2000</li>")
        ran(prony, cable[0], place, *words, *right, "--env", f"PGHOST={DATABASE}", *same)
    (trial,) = trials(out)
    assert isinstance(trial.outcome, Ok)
    assert trial.recording.account.ok > 0


@contextlib.contextmanager
def postgres(programs, folder, host, within):
    """Run PostgreSQL at ``host``, behind the words ``within``, with the page's data, as a user of its own."""
    data = folder / "data"
    data.mkdir()
    os.chown(data, 65534, 65534)
    as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    options = ("--username=prony", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync")
    quiet = {"capture_output": True, "cwd": data}
    subprocess.run([*as_nobody, programs / "initdb", f"--pgdata={data}", *options], check=True, **quiet)
    with (data / "pg_hba.conf").open("a") as rules:
        rules.write("host all all 10.0.0.0/8 trust\n")
    seed = (BUILT_IN_APPS / "django-postgres/seed.sql").read_bytes()
    alone = [programs / "postgres", "--single", "-j", "-D", data, "-c", "exit_on_error=true", "postgres"]
    subprocess.run([*as_nobody, *alone], input=seed, check=True, **quiet)
    server = [programs / "postgres", "-D", data, "-c", f"listen_addresses={host}", "-c", "fsync=off"]
    place = ("-c", f"unix_socket_directories={data}")
    command = [*within, *as_nobody, *server, *place]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=data) as process:
        try:
            assert eventually(lambda: "ready to accept" in process.stderr.readline(), timeout_s=20)
            yield
        finally:
            process.send_signal(signal.SIGINT)
