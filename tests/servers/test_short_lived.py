"""CPU of children that live for less than a sample is that of the role of which they are."""

import pytest

from prony.figures.trial_metrics import role_metrics, trial_metrics
from prony.model.trial import Ok
from servers.cable import BRIEF

pytestmark = pytest.mark.usefixtures("nothing_left")

# 20 ms of CPU in a child, which is waited for: a database forks one for each connection in the same way.
APP = """
import os
import time


def app(environ, start_response):
    child = os.fork()
    if not child:
        while time.process_time() < 0.02:
            pass
        os._exit(0)
    os.waitpid(child, 0)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "1")])
    return [b"."]
"""


@pytest.mark.parametrize("sandbox", ["cgroup", "process"])
def test_children_between_two_samples_are_in_their_role(sandbox, prony, folder, trials):
    (folder / "forking.py").write_text(APP)
    words = ("--app", "forking:app", "--servers", "gunicorn", "--set", "gunicorn.workers=2", "-c", "1")
    kind = ("--sandbox", sandbox, "--repeats", "1", "--out", folder / "out.prony")
    done = prony("run", *words, *BRIEF, *kind, timeout_s=240)
    if sandbox == "cgroup" and "cgroup" in done.err and done.status:
        pytest.skip(f"needs control groups: {done.err.splitlines()[0]}")
    assert done.status == 0, done.err
    trial = trials(folder / "out.prony")[-1]
    assert isinstance(trial.outcome, Ok)
    assert any(name.startswith("cgroup.") for name in trial.counters) == (sandbox == "cgroup")
    in_all, roles = trial_metrics(trial), role_metrics(trial)
    length_s = trial.recording.window.duration_s
    in_children = 100 * 0.02 * trial.recording.account.ok / length_s
    # Twice what the samples may miss; on a machine with other work few requests have their turn.
    assert in_children > 10
    assert roles["worker"]["cpu_percent"] > 0.8 * in_children
    assert in_all["cpu_unsampled_percent"] < 5
    assert sum(one["cpu_percent"] for one in roles.values()) == pytest.approx(in_all["cpu_percent"], abs=5)
