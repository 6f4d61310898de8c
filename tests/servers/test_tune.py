"""`prony tune` on a small app: it is stopped, goes on where it was, and its archives are ordinary ones."""

import re
import signal
import socket
import subprocess
from urllib.request import urlopen

import pytest

from commands import ended, eventually
from prony.archive import open_archive

pytestmark = pytest.mark.usefixtures("nothing_left")

# Each request waits, so that threads are what helps.
APP = """\
import time


def app(environ, start_response):
    time.sleep(0.02)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return [b"hi"]
"""
TUNE = (
    *("tune", "--app", "shop:app", "--servers", "waitress", "-c", "16"),
    *("--duration", "200ms", "--warmup", "50ms", "--budget", "2m", "--out", "found"),
)


def keys_of(archive):
    with open_archive(archive) as opened:
        return {(one.trial.cell_id, one.trial.block, one.trial.started_unix_ns) for one in opened.trials()}


def test_an_app_that_waits_gets_threads_and_an_interrupted_search_goes_on(prony, folder):
    (folder / "shop.py").write_text(APP)
    raced = folder / "found" / "2-race.prony"
    with ended(prony.start(*TUNE)) as process:
        assert eventually(lambda: raced.exists() and len(keys_of(raced)) > 2, 90)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "interrupted; to go on, type again: `prony tune" in err
    before = keys_of(raced)

    done = prony(*TUNE, timeout_s=240)
    assert done.status == 0, done.err
    assert before < keys_of(raced)
    assert "Use waitress" in done.out, done.out
    [command] = [
        line.strip() for line in done.out.splitlines() if line.strip().startswith("waitress-serve --th")
    ]
    assert int(re.search(r"--threads[= ](\d+)", command)[1]) > 4

    last = max((folder / "found").glob("*.prony"), key=lambda one: one.name)
    assert last.name.endswith("-confirmation.prony")
    assert prony("report", last).status == 0
    assert prony("why", last).status == 0

    again = prony(*TUNE)
    assert again.out == done.out
    assert keys_of(raced) == keys_of(raced)
    other = prony(*TUNE, "--path", "/other")
    assert other.status == 2
    assert "holds another study" in other.err


@pytest.mark.slow
def test_gunicorn_reads_back_what_is_written_for_it(prony, folder):
    from prony.catalog.discover.recipes import recipe_of
    from prony.tune.space import Candidate

    (folder / "shop.py").write_text(APP)
    assert prony("servers", "gunicorn", "--check", timeout_s=180).status == 0
    program = next(prony.cache.rglob("bin/gunicorn"))
    forms = dict(recipe_of(Candidate("gunicorn", 3, 5), "shop:app", "wsgi").forms(str(folder)))
    (folder / "gunicorn.conf.py").write_text(forms["gunicorn.conf.py"])
    variables = dict(line.replace("'", "").split("=", 1) for line in forms["environment"].splitlines())
    for words, environment in ((("-c", "gunicorn.conf.py"), {}), (("-c", "/dev/null"), variables)):
        shown = subprocess.run(
            [program, *words, "--print-config", "shop:app"],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        found = dict(line.split("=", 1) for line in shown.replace(" ", "").splitlines() if "=" in line)
        assert (found["workers"], found["threads"]) == ("3", "5")


FACTORY = APP.replace("def app(", "def create_app():\n    return answered\n\n\ndef answered(")


@pytest.mark.slow
def test_servers_find_a_factory_below_a_folder_of_imports(prony, folder):
    from prony.catalog.discover.recipes import recipe_of
    from prony.tune.space import Candidate

    (folder / "src").mkdir()
    (folder / "src" / "shop.py").write_text(FACTORY)
    commands = {
        server: recipe_of(Candidate(server, 2, 5), "shop:create_app()", "wsgi", "src").shell
        for server in ("gunicorn", "uwsgi")
    }
    for server, command in commands.items():
        assert prony("servers", server, "--check", timeout_s=180).status == 0
        path = next(prony.cache.rglob(f"bin/{server}")).parent
        port = free_port()
        words = command.replace(":8000", f":{port}")
        words += f" --bind 127.0.0.1:{port}" if server == "gunicorn" else " --die-on-term"
        with ended(
            subprocess.Popen(
                f"exec env {words}", shell=True, cwd=folder, env={"PATH": f"{path}:/usr/bin:/bin"}
            )
        ):
            assert eventually(lambda port=port: replies(port), 30), command


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def replies(port):
    try:
        with urlopen(f"http://127.0.0.1:{port}/", timeout=5) as reply:
            return reply.read() == b"hi"
    except OSError:
        return False
