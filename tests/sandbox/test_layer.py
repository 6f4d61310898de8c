"""What a subject writes into its app's folder is gone after the trial, and the folder is as it was."""

import os
import socket
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from prony.model.exchange import Check
from prony.model.sandbox import Network, SandboxChoice
from prony.sandbox import linux, open_sandbox, start
from prony.sandbox.contract import probe
from prony.sandbox.journal import layer_folder

from .subjects import launch_script

# It changes its folder in every way, then answers with what it sees there.
SCRIPT = """
import http.server, os, sys
os.makedirs("made", exist_ok=True)
with open("made/new.txt", "w") as file:
    file.write("new")
with open("menu.txt", "a") as file:
    file.write(" and cake")
os.remove("old.txt")
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = (open("menu.txt").read() + "|" + " ".join(sorted(os.listdir()))).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
"""


@pytest.fixture
def app():
    with TemporaryDirectory(prefix="prony-app-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "menu.txt").write_text("soup")
        (folder / "old.txt").write_text("old")
        yield folder


def state(folder):
    return {path.name: (path.read_text(), path.stat().st_uid) for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("network", [Network.HOST, Network.ISOLATED])
def test_what_a_subject_writes_in_its_apps_folder_goes_to_a_layer(user, run, placement, app, network):
    sandbox = open_sandbox(SandboxChoice(network=network), user, run.trial_folder("trial"))
    if "files" in sandbox.facts.missing or not sandbox.facts.pid_namespace:
        pytest.skip("no mount namespace here")
    before = state(app)
    launch = launch_script(sandbox, SCRIPT)
    python, script, port = launch.command
    launch = replace(launch, command=(python, str(sandbox.folder / script), port), folder=str(app))
    for _ in range(2):
        with sandbox.start(launch, placement) as subject:
            subject.wait_until_ready()
            reply = probe(Check(), subject.address, subject.seat.network_namespace)
        run.remove_trial_folder("trial")
        assert not isinstance(reply, str)
        assert reply.body == b"soup and cake|made menu.txt"
    assert state(app) == before
    assert not layer_folder(sandbox.folder).exists()


# It leaves a file in /tmp, then answers with what it sees there.
IN_TMP = """
import http.server, os, sys
open("/tmp/sess_prony", "w").close()
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = " ".join(os.listdir("/tmp")).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
"""


def test_an_own_app_has_a_tmp_of_its_own_with_what_it_names_and_sockets(user, run, placement, app):
    sandbox = open_sandbox(SandboxChoice(network=Network.HOST), user, run.trial_folder("trial"))
    if "files" in sandbox.facts.missing or not sandbox.facts.pid_namespace:
        pytest.skip("no mount namespace here")
    launch = launch_script(sandbox, IN_TMP)
    with ExitStack() as stack:
        foreign, named, answering = (
            Path(stack.enter_context(TemporaryDirectory(prefix="prony-", dir="/tmp"))) for _ in range(3)
        )
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(str(answering / "db.sock"))
        launch = replace(launch, environment={"DATA": f"file:{named}/shop.db"})
        with sandbox.start(launch, placement) as subject:
            subject.wait_until_ready()
            reply = probe(Check(), subject.address, subject.seat.network_namespace)
    assert not isinstance(reply, str)
    seen = reply.body.decode().split()
    assert "sess_prony" in seen and not Path("/tmp/sess_prony").exists()
    assert [one.name in seen for one in (foreign, named, answering)] == [False, True, True]


COVERED = """
import sys
from prony.sandbox import linux
from prony.sandbox.start import Layer, cover
if sys.argv[3] == "copy":
    def refuse(*arguments):
        raise OSError(38, "no overlays here")
    linux.mount_overlay = refuse
linux.own_mounts()
cover(Layer(sys.argv[1], sys.argv[2], int(sys.argv[4]), int(sys.argv[4])))
import os
os.setuid(int(sys.argv[4]))
with open(sys.argv[1] + "/menu.txt", "a") as file:
    file.write(" and cake")
print(open(sys.argv[1] + "/menu.txt").read())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes mounts for another user")
@pytest.mark.parametrize("way", ["overlay", "copy"])
def test_what_was_sealed_can_be_changed_in_the_layer_by_either_way(user, app, way):
    for path in (*app.iterdir(), app):
        path.chmod(path.stat().st_mode & ~0o222)
    with TemporaryDirectory(prefix="layer-") as place:
        done = subprocess.run(
            [sys.executable, "-c", COVERED, str(app), place, way, str(user.uid)],
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.stdout == "soup and cake\n", done.stderr
    assert ((app / "menu.txt").read_text(), (app / "menu.txt").stat().st_mode & 0o222) == ("soup", 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes mounts for another user")
@pytest.mark.parametrize("way", ["overlay", "copy"])
def test_a_file_of_another_user_can_be_changed_in_the_layer_by_either_way(user, app, way):
    # Overlays separate their options by these marks.
    app = app.rename(app.with_name(f"{app.name}, a:b"))
    with TemporaryDirectory(prefix="layer-") as place:
        done = subprocess.run(
            [sys.executable, "-c", COVERED, str(app), place, way, str(user.uid)],
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.stdout == "soup and cake\n", done.stderr
    assert (app / "menu.txt").read_text() == "soup"
    app.rename(app.with_name(app.name.removesuffix(", a:b")))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes mounts for another user")
@pytest.mark.parametrize("way", ["overlay", "copy"])
@pytest.mark.parametrize("closed", ["menu.txt", "."])
def test_what_its_user_could_not_read_without_the_layer_it_cannot_read_in_it(user, app, way, closed):
    (app / closed).chmod(0o700)
    with TemporaryDirectory(prefix="layer-") as place:
        done = subprocess.run(
            [sys.executable, "-c", COVERED, str(app), place, way, str(user.uid)],
            capture_output=True,
            text=True,
            check=False,
        )
    assert "PermissionError" in done.stderr
    assert done.stdout == ""


def test_a_folder_too_large_to_copy_is_read_only(app, monkeypatch):
    made = []
    monkeypatch.setattr(linux, "mount_overlay", lambda *_: (_ for _ in ()).throw(OSError("none")))
    monkeypatch.setattr(linux, "make_read_only", made.append)
    monkeypatch.setattr(start, "_MOST_COPIED_BYTES", 3)
    with TemporaryDirectory() as place:
        start.cover(start.Layer(str(app), place, None, None))
    assert made == [[str(app)]]
