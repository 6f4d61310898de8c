"""A server with a just-in-time compiler: a pilot lengthens its warm-up, and so it is measured warm."""

import pytest

from commands import Prony, cache, folder, prony  # noqa: F401 - fixtures
from prony.archive import open_archive
from prony.model import TrialRole
from prony.units import SECOND_NS

pytestmark = [pytest.mark.servers, pytest.mark.slow, pytest.mark.usefixtures("nothing_left")]

# Without a kept connection's delayed acknowledgements, which would hide what the compiler does.
JDK = "java-httpserver-tuned"
LOAD = ("--app", "hello", "-c", "20", "--repeats", "2", "--duration", "4s", "--warmup", "0s")


@pytest.fixture(autouse=True)
def jdk(prony):  # noqa: F811
    missing = prony("doctor", JDK, "--json").json["missing"]
    if missing:
        pytest.skip(f"{JDK} needs {', '.join(missing)}")


def test_a_jdk_server_is_measured_warm_after_a_pilot(prony, folder):  # noqa: F811
    done = prony(
        *("run", *LOAD, "--servers", JDK, "--pilot", "10s", "--no-calibration", "--no-html", "--force"),
        *("--out", "jdk.prony", "--json", "jdk.json"),
        timeout_s=400,
    )
    assert done.status in (0, 3), done.err
    with open_archive(folder / "jdk.prony") as archive:
        trials = [record.trial for record in archive.trials()]
    first = next(one for one in trials if one.role is TrialRole.PILOT)
    replies = [row.ok for row in first.recording.series]
    # What a study without a pilot would have measured: its compiler at work.
    cold = sum(replies[:3]) / 3
    found = first.facts.pilot
    warm = sum(replies[-3:]) / 3
    assert cold < 0.8 * warm, replies
    assert found.changes or found.after_s >= 1
    own = [one for one in trials if one.role is TrialRole.SUBJECT]
    (used_ns,) = {_warmup_ns(one) for one in own}
    assert SECOND_NS <= used_ns <= 10 * SECOND_NS
    rates = [one.recording.account.ok / 4 for one in own]
    assert min(rates) > cold
    # Warm from the first second of the window on.
    seconds = [[row.ok for row in one.recording.series[:4]] for one in own]
    assert all(row[0] > 0.9 * max(row) for row in seconds), seconds


def _warmup_ns(trial):
    """Return how long the generator loaded the server before the window."""
    return trial.recording.spec.workload.warmup_ns
