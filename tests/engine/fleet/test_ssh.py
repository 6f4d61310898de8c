"""Generators that are started over SSH on this machine, and what is left of them: nothing."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from commands import ended, eventually, heed_all_signals_but
from prony._engine import ReferenceServer
from prony.core.errors import EngineError
from prony.core.units import SECOND_NS
from prony.core.version import own_command
from prony.engine.fleet import fleet_of
from prony.engine.fleet.certificates import write_certificates
from prony.engine.fleet.cluster import opened
from prony.engine.fleet.engine import FleetEngine
from prony.engine.generator import OnLoss
from prony.model.address import Address
from prony.model.sandbox import EngineSeat
from prony.model.workload import CountStop, DurationStop, EngineChoice, OpenLoop, Pacing, Workload
from sshd import IS_HERE, WHY_NOT, ssh_server

pytestmark = pytest.mark.skipif(not IS_HERE, reason=WHY_NOT)
CHOICE = EngineChoice(threads=1, pacing=Pacing.ECONOMICAL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the certificates of a fleet, and the settings of ssh for an sshd of its own."""
    found = tmp_path_factory.mktemp("ssh")
    write_certificates(found / "certificates", 1)
    write_certificates(found / "other", 1)
    with ssh_server(found):
        yield found


@pytest.fixture
def server():
    with ReferenceServer("{}") as reference:
        yield reference


def hosts(folder, workers=2, **more):
    """Return the file of one machine, this one, with so many generators."""
    lines = {
        "address": "127.0.0.1",
        "name": "here",
        "python": sys.executable,
        "certificates": str(folder / "certificates"),
        **more,
    }
    text = f'listen = "127.0.0.1"\ncertificates = "certificates"\nssh_config = "{folder}/config"\n[[hosts]]\n'
    own = "".join(f"{name} = {json.dumps(value)}\n" for name, value in lines.items())
    (folder / "hosts.toml").write_text(f"{text}workers = {workers}\n{own}")
    return folder / "hosts.toml"


def run(server, file, loop, stop, on_loss=OnLoss.INVALID, on_event=lambda event: None):
    engine = FleetEngine(fleet_of(str(file)), CHOICE, on_loss, 1)

    def on_progress(event):
        if event["event"] == "progress":
            on_event(event)

    return engine.run(
        Workload(loop, stop), Address("127.0.0.1", server.port), EngineSeat(cpus=()), on_progress
    )


def remote_workers(folder):
    """Return the processes that sshd started here as generators of this folder's fleet."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if words[1:4] != [b"-P", b"-m", b"prony.engine.fleet.cluster"]:
                continue
            if b"SSH_CONNECTION=" in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return sorted(found)


def gone(folder):
    return eventually(lambda: remote_workers(folder) == [], timeout_s=10)


def test_generators_that_are_started_over_ssh_share_a_load(server, folder):
    found = run(server, hosts(folder), OpenLoop(101.0), CountStop(303))
    assert found.account.scheduled == found.account.ok == json.loads(server.counts())["requests"] == 303
    assert [one.name for one in found.machines] == ["here-1", "here-2"]
    assert sum(one.requests for one in found.machines) == 303
    assert gone(folder)


def test_a_generator_that_is_killed_there_is_noticed_and_the_others_end(server, folder):
    killed = []

    def kill_one(event):
        if not killed and event["phase"] == "window" and event["elapsed_ns"] > SECOND_NS:
            killed.append(time.monotonic())
            os.kill(remote_workers(folder)[0], signal.SIGKILL)

    with pytest.raises(EngineError, match=r"generator `here-\d` was lost"):
        run(server, hosts(folder), OpenLoop(100.0), DurationStop(30 * SECOND_NS), on_event=kill_one)
    assert time.monotonic() - killed[0] < 6
    assert gone(folder)


def test_generators_end_when_the_connection_is_cut(folder):
    with opened(fleet_of(str(hosts(folder)))) as cluster:
        assert len(cluster.names) == 2
        assert len(remote_workers(folder)) == 2
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (entry / "cmdline").read_bytes().startswith(b"ssh\0-T"):
                    os.kill(int(entry.name), signal.SIGKILL)
        assert gone(folder)


@pytest.mark.parametrize(
    ("end", "status"),
    [pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_nothing_runs_there_when_prony_is_ended_here(server, folder, end, status):
    target = ("load", f"http://127.0.0.1:{server.port}/", "--fleet", str(hosts(folder)))
    command = own_command(*target, "--rate", "100", "-d", "60s", "--warmup", "0s")
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_all_signals_but,  # noqa: PLW1509 - nothing else runs meanwhile
    )
    with ended(process):
        assert eventually(lambda: json.loads(server.counts())["requests"] > 50, timeout_s=30)
        assert len(remote_workers(folder)) == 2
        process.send_signal(end)
        _, said = process.communicate(timeout=20)
        assert process.returncode == status, said
    assert gone(folder)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"python": "/nowhere/python"}, "/nowhere/python"),
        ({"certificates": "/nowhere"}, "/nowhere"),
        ({"certificates": "{folder}/other"}, "the certificates there are not those that are here"),
        ({"user": "nobody-of-this-name"}, "Permission denied"),
        ({"port": 1}, "Connection refused"),
    ],
)
def test_what_cannot_be_started_is_said_in_the_other_sides_words_and_leaves_nothing(folder, change, said):
    change = {
        name: value.format(folder=folder) if name == "certificates" else value
        for name, value in change.items()
    }
    with (
        pytest.raises(EngineError, match="ended when it was started") as failed,
        opened(fleet_of(str(hosts(folder, 1, **change)))),
    ):
        pytest.fail("it started")
    assert said in failed.value.message
    assert gone(folder)


def test_an_address_that_is_not_this_machines_is_refused(folder):
    file = hosts(folder)
    file.write_text(file.read_text().replace('listen = "127.0.0.1"', 'listen = "192.0.2.77"'))
    with pytest.raises(EngineError, match="cannot listen at"), opened(fleet_of(str(file))):
        pytest.fail("it listens")
