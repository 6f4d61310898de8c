"""Servers that have no rounds beside their neighbours: each is named, and measured in turns."""

import pytest

from servers.test_rounds import APP, SHORT, slices_of

pytestmark = pytest.mark.usefixtures("nothing_left")

SLOW = """\
import time


def app(environ, start_response):
    time.sleep(0.15 if "waitress" in environ["SERVER_SOFTWARE"] else 0.0)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return [b"hi"]
"""

NEVER_IDLE = """\
import sys, threading, time


def burn():
    while True:
        end = time.monotonic() + 0.01
        while time.monotonic() < end:
            pass
        time.sleep(0.05)


if "waitress" in sys.modules:
    threading.Thread(target=burn, daemon=True).start()


def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return [b"hi"]
"""

# Apps that work alone, and not beside a twin.
LOCK = """\
import socket

held = socket.socket(socket.AF_UNIX)
held.bind("\\0prony-test-lock-of-the-shop")
"""
SECOND_PORT = """\
import socket

second = socket.create_server(("127.0.0.1", 47123))
"""
# The pool of the first takes all connections that a database has; there are requests before there is load.
ALL_CONNECTIONS = """\
import socket, threading

held, asked, alone = None, 0, threading.Lock()


def limit():
    global held, asked
    with alone:
        asked += 1
        if asked > 9 and not held:
            pool = socket.socket(socket.AF_UNIX)
            pool.bind("\\0prony-test-pool-of-the-shop")
            held = pool
"""
# Waitress answers one request in 400 long after the others.
LATE = """\
import sys, time

asked = 0


def limit():
    global asked
    asked += 1
    if "waitress" in sys.modules and asked % 400 == 0:
        time.sleep(3)
"""
# Waitress has a process more while it has something to do.
SHRINKS = """\
import os, sys, threading, time

last = 0.0


def watch():
    child = 0
    while True:
        is_idle = time.monotonic() - last > 0.5
        if child and is_idle:
            os.kill(child, 9)
            os.waitpid(child, 0)
            child = 0
        elif not child and not is_idle:
            child = os.fork()
            if not child:
                time.sleep(600)
                os._exit(0)
        time.sleep(0.02)


if "waitress" in sys.modules:
    threading.Thread(target=watch, daemon=True).start()


def limit():
    global last
    last = time.monotonic()
"""


def test_a_server_that_is_too_slow_for_short_windows_has_none(folder, prony):
    (folder / "shop.py").write_text(SLOW)
    words = ("run", "--app", "shop:app", "--servers", "gunicorn,waitress", "-c", "8", *SHORT, "--rounds", "3")
    done = prony(*words, "--repeats", "1", "--out", "r.prony", timeout_s=240)
    assert done.status == 0, done.err
    assert "waitress+shop has no rounds from block 1 on: its replies take longer than the lead" in done.err
    assert not any(slices for _, _, slices in slices_of(folder / "r.prony"))


def test_a_server_that_is_not_idle_between_its_turns_is_named_and_measured_in_turns(folder, prony):
    (folder / "shop.py").write_text(NEVER_IDLE)
    words = ("run", "--app", "shop:app", "--servers", "gunicorn,waitress", "-c", "2", *SHORT, "--rounds", "3")
    done = prony(*words, "--repeats", "1", "--out", "r.prony", timeout_s=240)
    assert done.status == 0, done.err
    # Waitress burns a sixth of a CPU while Gunicorn has its turn.
    assert "waitress+shop has no rounds from block 1 on: it is not idle between its turns" in done.err
    assert not any(slices for _, _, slices in slices_of(folder / "r.prony"))


# So many blocks have trials, the last has rounds alone.


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (LOCK, "the server exited"),
        (ALL_CONNECTIONS, "requests failed beside the block's other servers"),
        (LATE, "requests were still under way half a second after its turns"),
        (SHRINKS, "processes of it end while it is idle between its turns"),
    ],
    ids=["lock", "all connections", "late", "shrinks"],
)
def test_who_cannot_live_beside_its_twin_is_measured_in_turns_and_named(folder, prony, limits, reason):
    body = APP if "def limit" in limits else f"def limit():\n    pass\n\n\n{APP}"
    body = body.replace("    start_response", "    limit()\n    start_response")
    (folder / "shop.py").write_text(f"{limits}\n\n{body}")
    # In a balanced order of two every second turn follows one's own, and two idle times are wanted.
    words = ("run", "--app", "shop:app", "--servers", "gunicorn,waitress", "-c", "2", *SHORT, "--rounds", "8")
    one_process = ("--set", "gunicorn.workers=1")
    done = prony(*words, *one_process, "--out", "r.prony", timeout_s=300)
    assert done.status == 0, done.err
    said = [line for line in done.err.splitlines() if "has no rounds from block 1 on: " in line]
    assert len(said) == 1
    assert reason in said[0]
    # The other one has nobody to take turns with.
    assert not any(slices for _, _, slices in slices_of(folder / "r.prony"))


DATABASE = """\
import os, sqlite3

kept = sqlite3.connect(os.environ["SHOP"], isolation_level=None, check_same_thread=False)
kept.execute("pragma journal_mode = memory")
kept.execute("create table if not exists rows (number)")
"""


@pytest.mark.parametrize(
    ("before", "what"),
    [(SECOND_PORT, "listen on port 47123"), (DATABASE, "keep the database {file} open")],
    ids=["second port", "database"],
)
def test_what_twins_would_share_is_found_before_they_live_together(folder, prony, before, what):
    # In a trial's own `/tmp` is what a variable names.
    file = folder.with_name(f"{folder.name}.db")
    file.touch()
    file.chmod(0o666)
    (folder / "shop.py").write_text(f"{before}\n\n{APP}")
    words = ("run", "--app", "shop:app", "--servers", "gunicorn,waitress", "-c", "2", *SHORT, "--rounds", "3")
    own = ("--set", "gunicorn.workers=1", "--env", f"SHOP={file}", "--out", "r.prony")
    done = prony(*words, *own, timeout_s=300)
    file.unlink()
    assert done.status == 0, done.err
    said = f"gunicorn+shop and waitress+shop {what.format(file=file)}: they are measured in turns"
    assert said in done.err
    assert "has no rounds" not in done.err
    assert not any(slices for _, _, slices in slices_of(folder / "r.prony"))


def test_files_of_the_apps_folder_are_in_a_layer_and_twins_live_together(folder, prony):
    (folder / "shop.py").write_text(f"{DATABASE}\n\n{APP}")
    (folder / "gunicorn.conf.py").write_text(f"pidfile = '{folder}/shop.pid'\n")
    words = ("run", "--app", "shop:app", "--servers", "gunicorn,gunicorn-gthread", "-c", "2", *SHORT)
    own = ("--rounds", "3", "--env", f"SHOP={folder}/shop.db", "--no-current", "--out", "r.prony")
    done = prony(*words, *own, timeout_s=300)
    assert done.status == 0, done.err
    assert "in turns" not in done.err
    assert all(slices for _, _, slices in slices_of(folder / "r.prony"))
