"""A grid of settings with real servers: each subject has its settings, its limits and its kernel."""

import json
from pathlib import Path

import pytest

from prony.archive import open_archive
from prony.model.trial import Ok

pytestmark = pytest.mark.usefixtures("nothing_left")

HOST = Path("/proc/sys/net/core/somaxconn")
APP = """\
from pathlib import Path


def app(environ, start_response):
    queue = Path("/proc/sys/net/core/somaxconn").read_text().strip().encode()
    start_response("200 OK", [("Content-Length", str(len(queue)))])
    return [queue]
"""

WHO = """\
def app(environ, start_response):
    start_response("200 OK", [("Content-Length", "2")])
    return [b"hi"]
"""


def test_two_settings_in_two_values_each(prony, folder):
    (folder / "shop.py").write_text(APP)
    own = HOST.read_text()
    done = prony(
        *("run", "--app", "shop:app", "--servers", "waitress", "--net", "isolated", "--out", "out.prony"),
        *("--set", "waitress.threads=2,4", "--set", "sandbox.sysctl.net.core.somaxconn=77,1024"),
        *(
            "--duration",
            "500ms",
            "--warmup",
            "0s",
            "--repeats",
            "1",
            "--no-calibration",
            "--expect-status",
            "200",
        ),
        *("--force", "--json", "out.json"),
    )
    assert done.status == 0, done.err
    with open_archive(folder / "out.prony") as archive:
        trials = {record.trial.cell_id: record.trial for record in archive.trials()}
        cells = archive.plan().cells
    assert [type(trials[cell.id].outcome) for cell in cells] == [Ok] * 4
    for cell in cells:
        assert f"--threads={cell.subject.levels['threads']}" in trials[cell.id].command
        (usage,) = trials[cell.id].facts.listeners
        # The kernel cuts the server's own backlog of 1024 to its setting.
        assert usage.limit == cell.subject.levels["sandbox.sysctl.net.core.somaxconn"]
    (sweep,) = json.loads((folder / "out.json").read_text())["sweeps"]
    assert [factor["title"] for factor in sweep["factors"]] == ["threads", "somaxconn"]
    assert len(sweep["points"]) == 4
    assert HOST.read_text() == own


@pytest.mark.slow
def test_several_back_ends_behind_a_frontend_share_its_requests(prony, folder):
    (folder / "shop.py").write_text(WHO)
    done = prony(
        *("run", "--app", "shop:app", "--servers", "gunicorn@nginx", "--out", "out.prony"),
        *("--set", "nginx.backends=1,2", "--duration", "500ms", "--warmup", "0s", "--repeats", "1"),
        *("--no-calibration", "--expect-status", "200", "--force", "--no-html"),
    )
    assert done.status == 0, done.err
    with open_archive(folder / "out.prony") as archive:
        trials = [record.trial for record in archive.trials()]
        subjects = {cell.id: cell.subject for cell in archive.plan().cells}
    used = {
        subjects[trial.cell_id].levels["nginx.backends"]: {
            row.pid for row in trial.samples[-1].processes if row.role == "worker" and row.user_ns
        }
        for trial in trials
    }
    assert {many: len(pids) for many, pids in used.items()} == {1: 1, 2: 2}
