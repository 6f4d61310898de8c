"""Studies with several generators: on this machine, and on another one, which here is another network, joined
by two ends of a cable.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from commands import ended, eventually
from dask_workers import are_there, secure_scheduler
from prony.archive import open_archive
from prony.core.temporary import clear_temporary
from prony.engine.fleet.certificates import write_certificates
from prony.model.limit import LimitKind
from prony.model.sandbox import Network
from prony.model.trial import Ok
from servers.cable import BRIEF, GENERATORS, SERVER, commands_with, installed
from sshd import ssh_server

pytestmark = pytest.mark.usefixtures("nothing_left")


@pytest.fixture
def hosts(folder, cable):
    """The file of a fleet of two generators beyond the cable."""
    keys = folder / "ssh"
    keys.mkdir()
    write_certificates(keys / "certificates", 1)
    with ssh_server(keys, GENERATORS, cable[1]):
        lines = (
            f'listen = "{SERVER}"\ncertificates = "certificates"\nssh_config = "config"\n[[hosts]]\n'
            f'address = "{GENERATORS}"\nname = "far"\nworkers = 2\npython = {json.dumps(sys.executable)}\n'
            f'certificates = "{keys}/certificates"\n'
        )
        (keys / "hosts.toml").write_text(lines)
        yield keys / "hosts.toml"


def started(prony, within, *words):
    return subprocess.Popen(
        [*within, sys.executable, *prony.program, "run", *map(str, words)],
        cwd=prony.folder,
        env=prony.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def generators(folder=None):
    """Return the commands of generators: all, or those that have this folder in a variable."""
    return commands_with("prony.engine.fleet", folder)


HERE = ("--app", "hello", "--servers", "waitress", *BRIEF, "--repeats", "1")


# A server that is quick on a busy machine, too: each generator works for more than its quota.
QUICK = ("--app", "hello", "--servers", "bjoern", *BRIEF, "--repeats", "1")


def test_generators_with_a_quota_each_are_stopped_by_it(prony, folder, trials):
    done = prony("run", *QUICK, "--engine", "local:2@1%", "-c", "16", "--out", "a.prony", timeout_s=180)
    if "needs control groups" in done.err:
        pytest.skip("no control groups")
    assert done.status == 0, done.err
    (trial,) = trials(folder / "a.prony")
    machines = trial.recording.machines
    assert [one.name for one in machines] == ["generator-1", "generator-2"]
    kinds = [{found.kind for found in one.evidence} for one in machines]
    assert all(LimitKind.THROTTLED in own for own in kinds), kinds
    assert list(Path("/sys/fs/cgroup").rglob("generator-1")) == []


@pytest.mark.slow
def test_workers_of_a_scheduler_of_the_users_own_load_a_study_and_stay(prony, folder, trials):
    keys = folder / "dask"
    keys.mkdir()
    with secure_scheduler(keys) as (url, certificates):
        assert eventually(lambda: are_there((url, certificates)), timeout_s=60)
        where = ("--fleet", url, "--fleet-certificates", certificates)
        done = prony("run", *HERE, *where, "-c", "8", "--out", "a.prony", "--full", timeout_s=180)
        assert done.status == 0, done.err
        assert are_there((url, certificates))
    (trial,) = trials(folder / "a.prony")
    assert isinstance(trial.outcome, Ok)
    machines = trial.recording.machines
    assert {one.name for one in machines} == {"far-0", "far-1"}
    assert sum(one.ok for one in machines) == trial.recording.account.ok > 0
    names, text = ", ".join(one.name for one in machines), " ".join(done.out.split())
    assert f"Load from {names}: " in text
    assert (f"Ran as root: {names}." in text) == (os.geteuid() == 0)


@pytest.mark.parametrize("end", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGKILL])
def test_generators_end_with_the_study_also_while_they_start(prony, end):
    installed(prony, *HERE[:4])
    # Other tests have generators too; these are known by their PATH.
    path = f"{os.environ['PATH']}:{prony.folder}"
    clear_temporary()
    with ended(prony.start("run", *HERE, "--engine", "local:2", "--out", "a.prony", PATH=path)) as process:
        # A worker has a folder while it starts, and for no longer.
        assert eventually(lambda: list((prony.cache / "run").rglob("prony-fleet-*")), timeout_s=120)
        assert generators(prony.folder)
        process.send_signal(end)
        process.communicate(timeout=30)
    assert eventually(lambda: generators(prony.folder) == [], timeout_s=10)
    assert clear_temporary() == 0
    if end is signal.SIGKILL:
        assert prony("clean").status == 0


def test_servers_here_and_generators_beyond_a_cable(prony, folder, cable, hosts, trials):
    out = folder / "far.prony"
    subjects = ("--app", "hello", "--servers", "waitress,waitress@nginx")
    installed(prony, *subjects)
    where = ("--fleet", hosts, "--listen", SERVER, "--out", out, "--full")
    process = started(prony, cable[0], *subjects, *BRIEF, "-c", "8", "--repeats", "1", *where)
    text, said = process.communicate(timeout=180)
    assert process.returncode == 0, said + text
    with open_archive(out) as archive:
        plan = archive.plan()
    assert {(cell.engine.name, cell.sandbox.listen, cell.sandbox.network) for cell in plan.cells} == {
        ("fleet", SERVER, Network.HOST)
    }
    found = trials(out)
    assert [type(trial.outcome) for trial in found] == [Ok, Ok]
    for trial in found:
        assert trial.recording.account.ok > 0
        assert trial.recording.spec.target.host == SERVER
        assert sorted(one.name for one in trial.recording.machines) == ["far-1", "far-2"]
        assert {"window_open", "window_close"} <= {event.event for event in trial.events}
        assert sum(sample.phase == "window" for sample in trial.samples) >= 2
    assert f"took the load at {SERVER}" in " ".join(text.split())
    assert "Load from far-1, far-2: " in " ".join(text.split())
    assert "each generator's verdict is its own" in " ".join(text.split()).lower()
    rows = [line.split() for line in text.splitlines() if line.startswith("far-")]
    assert [row[:2] for row in rows[:2]] == [["far-1", "2"], ["far-2", "2"]]


@pytest.mark.slow
def test_a_study_of_generators_elsewhere_goes_on(prony, folder, cable, hosts, trials):
    out = folder / "far.prony"
    subjects = ("--app", "hello", "--servers", "waitress")
    installed(prony, *subjects)
    where = ("--fleet", hosts, "--listen", SERVER)
    typed = (*subjects, *BRIEF, "--repeats", "3", *where, "--out", out)
    begun = started(prony, cable[0], *typed)
    next(line for line in begun.stderr if "answered" in line)
    begun.kill()
    begun.communicate()
    assert eventually(lambda: generators() == [], timeout_s=10)
    again = started(prony, cable[0], *typed)
    _, said = again.communicate(timeout=120)
    assert again.returncode == 0, said
    loaded = trials(out)
    assert len(loaded) == 3
    assert all(len(trial.recording.machines) == 2 for trial in loaded)
