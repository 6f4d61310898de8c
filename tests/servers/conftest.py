import os
import subprocess
import sys
from pathlib import Path

import pytest

from commands import Done, Prony, cache, folder, prony  # noqa: F401 - fixtures
from prony.archive import open_archive
from prony.model.trial import TrialRole
from servers.cable import cable  # noqa: F401 - a fixture
from servers.nginx import nginx  # noqa: F401 - a fixture
from servers.world import processes_of

SHORT = """\
format = 1
name = "short"
title = "Embedded servers, briefly"

[[subjects]]
server = ["gunicorn-embedded", "tornado", "twisted", "wsgiref"]
app = ["falcon-hello", "flask-hello"]

[[workloads]]
loop = "open"
rate = 550

[calibration]
duration = "300ms"
warmup = "100ms"

[profiles.quick]
blocks = 2
warmup = "500ms"
duration = "2s"
timeout = "2s"

[profiles.brief]
blocks = 2
warmup = "100ms"
duration = "300ms"
timeout = "2s"
"""


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.servers)


@pytest.fixture
def short(folder: Path) -> Path:  # noqa: F811
    """The built-in study with two blocks of two seconds."""
    (folder / "short.toml").write_text(SHORT)
    return folder / "short.toml"


@pytest.fixture
def nothing_left(prony: Prony):  # noqa: F811
    """Checks, after the test, that no server runs and no folder of a run stands."""
    yield
    assert processes_of(prony.cache) == []
    assert not list((prony.cache / "run").glob("*"))


@pytest.fixture
def trials():
    """Return the trials of an archive's subjects: of several attempts the last."""

    def read(path):
        with open_archive(path) as archive:
            found = [record.trial for record in archive.trials()]
        own = [trial for trial in found if trial.role is TrialRole.SUBJECT]
        return list({(trial.cell_id, trial.block): trial for trial in own}.values())

    return read


@pytest.fixture(autouse=True)
def two_cpus():
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two CPUs: one for the server, one for the generator")


@pytest.fixture
def unlucky(prony: Prony):  # noqa: F811
    """Run a command after a shell's script, in a mount namespace of its own."""
    if os.geteuid() != 0:
        pytest.skip("needs root: mounts of its own")

    def run(script, *arguments, after="", **environment):
        (prony.cache / "run").mkdir(parents=True, exist_ok=True)
        within = ["unshare", "--mount", "sh", "-ec", f'{script}\n"$@" && s=0 || s=$?\n{after}\nexit $s', "sh"]
        done = subprocess.run(
            [*within, sys.executable, *prony.program, *map(str, arguments)],
            cwd=prony.folder,
            env=prony.environment() | environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode in (0, 2, 3), done.stderr
        assert "Traceback" not in done.stderr
        assert "fault in Prony" not in done.stdout + done.stderr
        return Done(done.returncode, done.stdout, done.stderr)

    return run
