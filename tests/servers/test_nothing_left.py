"""However a run ends, nothing of it stays: no process, control group, namespace, mount, socket or folder."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands import ended, eventually
from prony.catalog.schema.loader import BUILT_IN_SERVERS
from prony.sandbox.cgroup.files import parse_mark
from prony.sandbox.cgroup.scope import open_cgroups
from prony.sandbox.cgroup.types import NoCgroups
from prony.sandbox.choice import Absent
from prony.sandbox.container_engine import find_engine
from servers.world import groups_of, processes_of, world

SERVER = ("--servers", "gunicorn", "--set", "gunicorn.workers=2", "-c", "4", "--repeats", "1")
LONG = (*SERVER, "--warmup", "100ms", "--duration", "60s")
KINDS = [
    pytest.param("process", marks=pytest.mark.slow),
    "cgroup",
    pytest.param("container", marks=pytest.mark.slow),
]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    if request.param == "cgroup":
        groups = open_cgroups()
        if isinstance(groups, NoCgroups):
            pytest.skip(groups.reason)
        groups.close()
    if request.param == "container" and isinstance(engine := find_engine(), Absent):
        pytest.skip(engine.reason)
    return request.param


@pytest.fixture
def temporary(prony, monkeypatch) -> Path:
    """Return the folder for temporary files of all that the test starts."""
    made = prony.folder / "temporary"
    made.mkdir()
    made.chmod(0o1777)
    monkeypatch.setenv("TMPDIR", str(made))
    return made


@pytest.fixture(autouse=True)
def nothing_more(prony, temporary) -> Iterator[None]:
    """What is there before the test is, soon after it, all that there is: an engine takes its time."""
    before = world(prony.cache, temporary)
    yield
    eventually(lambda: world(prony.cache, temporary) == before, timeout_s=15)
    assert world(prony.cache, temporary) == before


def own(kind, *arguments):
    return ("run", "--no-calibration", "--app", "hello", "--net", "isolated", "--sandbox", kind, *arguments)


def in_a_trial(prony, process):
    """Wait until the server's workers run and load is on its way."""
    workers = "gunicorn"
    return eventually(
        lambda: (
            sum(workers in command for _, command in processes_of(prony.cache)) >= 3
            or process.poll() is not None
        ),
        timeout_s=120,
    )


def test_nothing_is_left_after_success(prony, kind):
    done = prony(*own(kind, *SERVER, "--warmup", "100ms", "--duration", "500ms"), timeout_s=180)
    assert done.status == 0, done.err


def test_nothing_is_left_after_a_server_that_does_not_start(prony, folder, kind):
    (folder / "broken.py").write_text("app = None\nraise RuntimeError('planted')\n")
    options = ("--no-calibration", "--app", "broken:app", "--sandbox", kind, *SERVER)
    done = prony("run", *options, "--duration", "500ms", timeout_s=180)
    assert done.status != 0
    # What Gunicorn writes before it ends depends on which of its processes is first.
    assert re.search("planted|failed to boot|HaltServer", done.err + done.out)


def test_nothing_is_left_after_a_server_that_is_never_ready(prony, folder, kind):
    text = (BUILT_IN_SERVERS / "wsgiref.toml").read_text().replace('name = "wsgiref"', 'name = "sleeper"')
    head, _, _ = text.partition("[files]")
    script = "import os, time\nos.fork()\ntime.sleep(600)\n"
    ready = '[readiness]\ntimeout = "1s"\n'
    (folder / "sleeper.toml").write_text(f"{head}{ready}[files]\n\"serve.py\" = '''{script}'''\n")
    options = ("--no-calibration", "--catalog", "sleeper.toml", "--servers", "sleeper", "--app", "hello")
    done = prony("run", *options, "--sandbox", kind, "-c", "2", "--repeats", "1", timeout_s=180)
    assert done.status == 3
    assert "was not ready within 1.00 s" in " ".join((done.err + done.out).split())


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow)]
)
def test_nothing_is_left_after_an_interruption(prony, kind, number, status):
    with ended(prony.start(*own(kind, *LONG))) as process:
        assert in_a_trial(prony, process)
        process.send_signal(number)
        process.communicate(timeout=60)
    assert process.returncode == status


def test_after_kill_9_the_next_start_clears_all_that_was_left(prony, kind):
    process = prony.start(*own(kind, *LONG))
    with ended(process):
        assert in_a_trial(prony, process)
        others = {one for one in groups_of() if parse_mark(one.name).owner.pid != process.pid}
        assert (kind == "cgroup") == bool(groups_of() - others)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=30)
    # Its supervisor has seen the end and killed the server; groups and folders wait for the next start.
    assert eventually(lambda: processes_of(prony.cache) == [], timeout_s=10)
    assert list((prony.cache / "run").iterdir())
    # Any other Prony that starts meanwhile clears them too.
    left = groups_of() - others
    done = prony("clean")
    assert done.status == 0
    if left:
        assert "removed control groups that a killed Prony had left" in done.out


@pytest.mark.slow
def test_after_kill_9_nothing_runs_on_that_was_stopped_before(prony):
    built = prony(*own("process", *SERVER, "--warmup", "100ms", "--duration", "300ms"), timeout_s=120)
    assert built.status in (0, 3), built.err
    process = prony.start(*own("process", *LONG))
    with ended(process):
        assert in_a_trial(prony, process)
        (supervisor,) = children_of(process.pid, "prony.sandbox.supervisor")
        for pid in (supervisor, *(pid for pid, _ in processes_of(prony.cache) if pid != process.pid)):
            os.kill(pid, signal.SIGSTOP)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=30)
    assert eventually(lambda: not Path(f"/proc/{supervisor}").exists(), timeout_s=10)
    assert eventually(lambda: processes_of(prony.cache) == [], timeout_s=10)
    assert prony("clean").status == 0


def test_after_kill_9_of_all_that_could_clean_up_the_next_run_ends_the_server(prony, kind):
    process = prony.start(*own(kind, *LONG))
    with ended(process):
        assert in_a_trial(prony, process)
        (supervisor,) = children_of(process.pid, "prony.sandbox.supervisor")
        for pid in (process.pid, supervisor):
            os.kill(pid, signal.SIGKILL)
        process.communicate(timeout=30)
    done = prony(*own("process", *SERVER, "--warmup", "100ms", "--duration", "300ms"), timeout_s=120)
    assert done.status == 0, done.err


def children_of(parent, word):
    """Return the children of a process whose command line holds a word."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                command = (entry / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if int(fields[1]) == parent and word in command:
                found.append(int(entry.name))
    return found
