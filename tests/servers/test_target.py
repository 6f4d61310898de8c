"""Servers on another machine, the load from this one: here in two networks, joined by a cable."""

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from commands import eventually
from prony.archive import open_archive
from prony.core.units import MIB
from prony.figures.drift import machine_key
from prony.machine.fingerprint import brief_fingerprint
from prony.model.sandbox import LimitHolding, Network
from prony.model.trial import Ok
from prony.sandbox.cgroup.scope import open_cgroups
from prony.sandbox.cgroup.types import NoCgroups
from servers.cable import BRIEF, GENERATORS, commands_with, installed, unplug
from sshd import ssh_server

pytestmark = pytest.mark.usefixtures("nothing_left")
SUBJECT = ("--app", "shop:app", "--servers", "waitress")
# Where the load comes from is called here what it was there: the other end is the target.
TARGET = GENERATORS
APP = """\
import os
from pathlib import Path

MENU = Path("data/menu.txt").read_text()


def heard():
    # The addresses at which anything in this network listens, as the kernel writes them.
    files = (Path("/proc/net", name).read_text() for name in ("tcp", "tcp6"))
    rows = (line.split() for text in files for line in text.splitlines()[1:])
    return " ".join(sorted({row[1].partition(":")[0] for row in rows if row[3] == "0A"}))


def app(environ, start_response):
    text = f"{MENU}{os.environ['SAUCE']}, heard at {heard()}.".encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(text)))])
    return [text]
"""


@pytest.fixture
def target(prony, folder, cable):
    """The file of a target beyond the cable; its home is a folder of the test's."""
    keys = folder / "ssh"
    (keys / "home").mkdir(parents=True)
    with ssh_server(keys, TARGET, cable[1], HOME=keys / "home", PRONY_CACHE=prony.cache):
        (keys / "target.toml").write_text(
            f'address = "{TARGET}"\nssh_config = "config"\npython = {json.dumps(sys.executable)}\n'
        )
        yield keys / "target.toml"


@pytest.fixture
def shop(prony, folder):
    """The folder of an app; what it needs is installed."""
    place = folder / "shop"
    (place / "data").mkdir(parents=True)
    (place / "data/menu.txt").write_text("soup with ")
    (place / "shop.py").write_text(APP)
    installed(prony, *SUBJECT, "--dir", place, "--env", "SAUCE=salt")
    return place


@pytest.fixture
def start(prony, shop, cable, target):
    """Start it in the app's folder, on the machine beside the target."""

    def start_it(*words):
        command = [sys.executable, "-m", "prony", "run", *SUBJECT, *BRIEF, "-c", "4", "--env", "SAUCE"]
        return subprocess.Popen(
            [*cable[0], *command, "--target", target, *map(str, words)],
            cwd=shop,
            env={**prony.environment(), "SAUCE": "garlic"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start_it


def wait_for_a_trial(process):
    next(line for line in process.stderr if "answered" in line)


def on_target():
    """Return the folders and processes that a run has on the target."""
    folders = [str(one) for one in Path("/tmp").glob("prony-target-*")]
    return folders + commands_with("prony.engine.target_side")


def has_groups():
    """Return whether a server can be limited here, and so there."""
    found = open_cgroups()
    if isinstance(found, NoCgroups):
        return False
    found.close()
    return True


def test_servers_there_the_load_from_here_and_the_archive_here(folder, start, trials):
    out = folder / "there.prony"
    # Each reply says that nothing listens there but at the one address: the server, and sshd.
    only = socket.inet_aton(TARGET)[::-1].hex().upper()
    right = ("--expect-body-contains", "soup with garlic", "--expect-body-contains", f"heard at {only}.")
    limits = ("--cpus", "0.5", "--memory", "768M") if has_groups() else ()
    process = start("--repeats", "1", "--out", out, *right, *limits)
    text, said = process.communicate(timeout=180)
    assert process.returncode == 0, said + text
    with open_archive(out) as archive:
        (cell,) = archive.plan().cells
        (record,) = archive.subjects().values()
    assert (cell.sandbox.listen, cell.sandbox.network) == (TARGET, Network.HOST)
    if limits:
        assert (cell.sandbox.cpu_quota, cell.sandbox.memory_bytes) == (0.5, 768 * MIB)
        states = record.sandbox.limits
        assert {states[name].holding for name in ("cpu_quota", "memory")} == {LimitHolding.ENFORCED}
    (found,) = trials(out)
    assert isinstance(found.outcome, Ok)
    assert found.recording.account.ok > 0
    assert found.recording.spec.target.host == TARGET
    # The load came from here; the study's own fingerprint is the target's.
    (sender,) = found.recording.machines
    assert (sender.name, sender.ok) == (socket.gethostname(), found.recording.account.ok)
    assert machine_key(sender.fingerprint) == machine_key(brief_fingerprint())
    assert sum(sample.phase == "window" for sample in found.samples) >= 2
    assert {"window_open", "window_close"} <= {event.event for event in found.events}
    assert "waitress" in text
    assert on_target() == []


@pytest.mark.slow
def test_a_study_that_fails_there_is_shown_here_and_leaves_nothing(folder, start):
    out = folder / "there.prony"
    process = start("--repeats", "1", "--out", out, "--expect-body-contains", "soup with butter")
    text, said = process.communicate(timeout=120)
    assert process.returncode == 3, said + text
    assert "--dry-run shows the commands, so that you can try them by hand" in said + text
    assert not out.exists()
    assert on_target() == []


@pytest.mark.slow
def test_ctrl_c_here_ends_it_there_and_brings_what_there_is(folder, start):
    out = folder / "there.prony"
    process = start("--repeats", "50", "--out", out)
    wait_for_a_trial(process)
    process.send_signal(signal.SIGINT)
    text, said = process.communicate(timeout=60)
    assert process.returncode == 130, said + text
    with open_archive(out) as archive:
        assert len(list(archive.trials())) >= 1
    assert on_target() == []


def test_after_kill_9_here_nothing_runs_there_and_what_was_measured_is_kept(folder, start, target):
    process = start("--repeats", "50", "--out", folder / "there.prony")
    wait_for_a_trial(process)
    process.kill()
    process.communicate()
    assert eventually(lambda: on_target() == [], timeout_s=90)
    with open_archive(target.parent / "home" / "prony-kept.prony") as archive:
        assert len(list(archive.trials())) >= 1
    assert not (folder / "there.prony").exists()


def test_when_the_connection_is_cut_it_is_said_here_and_the_study_ends_there(folder, start, target, cable):
    process = start("--repeats", "50", "--out", folder / "there.prony")
    wait_for_a_trial(process)
    unplug(cable[0])
    _, said = process.communicate(timeout=90)
    assert process.returncode == 3
    assert "the connection to the target was cut" in said
    assert eventually(lambda: on_target() == [], timeout_s=90)
    with open_archive(target.parent / "home" / "prony-kept.prony") as archive:
        assert len(list(archive.trials())) >= 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--engine", "wrk"), "`--engine` does not work with `--target`"),
        pytest.param(
            ("--requirements", "/etc/hosts"), "expected a path in the app's folder", marks=pytest.mark.slow
        ),
    ],
)
def test_what_cannot_be_is_said_before_anything_starts(start, words, message):
    process = start(*words)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 2
    assert message in said


@pytest.mark.slow
def test_a_target_without_prony_is_named(start, target):
    target.write_text(target.read_text().replace(json.dumps(sys.executable), '"/nowhere/python"'))
    process = start()
    _, said = process.communicate(timeout=60)
    assert process.returncode == 3
    assert f"the target `{TARGET}` did not start Prony" in said
