"""A server with a just-in-time compiler: a pilot lengthens its warm-up, so it is compared, and warm."""

import pytest

from commands import Prony, cache, folder, prony  # noqa: F401 - fixtures
from prony.archive import open_archive
from prony.core.units import SECOND_NS
from prony.figures.missing import Missing
from prony.model.trial import TrialRole
from prony.reading.study import read_archive

pytestmark = [
    pytest.mark.quiet,
    pytest.mark.servers,
    pytest.mark.slow,
    pytest.mark.usefixtures("nothing_left"),
]

# Without a kept connection's delayed acknowledgements, which would hide what the compiler does.
JDK = "java-httpserver-tuned"
OTHER = "gunicorn"
WINDOW_S = 4
LOAD = ("--app", "hello", "-c", "20", "--repeats", "5", "--duration", f"{WINDOW_S}s", "--warmup", "0s")


@pytest.fixture(autouse=True)
def jdk(prony):  # noqa: F811
    missing = prony("doctor", JDK, "--json").json["missing"]
    if missing:
        pytest.skip(f"{JDK} needs {', '.join(missing)}")


def test_a_jdk_server_is_measured_warm_after_a_pilot(prony, folder):  # noqa: F811
    done = prony(
        *("run", *LOAD, "--servers", f"{JDK},{OTHER}", "--pilot", "10s", "--no-calibration", "--no-html"),
        *("--out", "jdk.prony", "--json", "jdk.json"),
        timeout_s=500,
    )
    assert done.status == 0, done.err
    with open_archive(folder / "jdk.prony") as archive:
        reading = read_archive(archive)
        (name,) = (one.name for one in archive.plan().subjects() if one.name.startswith(JDK))
        places = {cell.id for cell in archive.cells(TrialRole.PILOT) if cell.subject.name == name}
        places |= {cell.id for cell in archive.plan().cells if cell.subject.name == name}
        trials = [one.trial for one in archive.trials() if one.trial.cell_id in places]
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
    rates = [one.recording.account.ok / WINDOW_S for one in own]
    assert min(rates) > cold
    # Warm from the first second of the window on.
    seconds = [[row.ok for row in one.recording.series[:WINDOW_S]] for one in own]
    assert all(row[0] > 0.9 * max(row) for row in seconds), seconds
    # So it is steady, and enters the verdict, which is not taken by force.
    (group,) = reading.groups
    (cell,) = (one for one in group.cells if one.name == name)
    assert not isinstance(cell.steadiness, Missing)
    assert cell.steadiness.is_steady, cell.steadiness
    assert cell.unqualified is None
    assert group.answer.decided
    assert name in {group.answer.leader, *group.answer.comparisons}


def _warmup_ns(trial):
    """Return how long the generator loaded the server before the window."""
    return trial.recording.spec.workload.warmup_ns
