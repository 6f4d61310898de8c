"""One block of each built-in study at its smallest: every subject has figures, or a reason why not."""

import shutil

import pytest

from prony.archive import open_archive
from prony.catalog.schema.studies import built_in_studies
from prony.model.trial import Ok, TrialRole

STUDIES = built_in_studies()
# A profile that only this test has: the same subjects, the least load, short windows.
TINY = """
[profiles.tiny]
blocks = 1
duration = "500ms"
timeout = "2s"
"""
# Of this CI sees that a study runs as it is written, with the app that other tests of these servers do not
# serve; the subjects of the others it checks one by one.
OFTEN = pytest.param("embedded-servers", ("--only", "*+falcon-hello"), id="embedded-servers, one app")
BRIEF_CALIBRATION = 'duration = "300ms"\nwarmup = "100ms"\n'
LOADS = {
    "wsgi-servers": "connections = 100\n",
    "embedded-servers": "",
    "tls-http2": "",
    "psgi-servers": "workloads.behind-nginx = { connections = 10 }\n",
    "load-scripts": (
        "[profiles.tiny.workloads]\n"
        "processes = { connections = 20 }\n"
        "threads = { connections = 20 }\n"
        "coroutines = { connections = 20 }\n"
        "coroutines-in-4-processes = { connections = 320 }\n"
        "coroutines-in-6-processes = { skip = true }\n"
        "coroutines-in-8-processes = { skip = true }\n"
        "tools = { connections = 80 }\n"
        "weighttp = { connections = 80, requests = 800 }\n"
    ),
    "django-fastcgi": (
        "workloads.few = { requests = 20 }\nworkloads.many = { skip = true }\n"
        "workloads.threads-between = { skip = true }\n"
    ),
}


@pytest.fixture
def tiny(folder):
    """Return a copy of a study with the tiny profile."""

    def copy(name):
        file = STUDIES[name]
        if file.with_suffix(".csv").exists():
            shutil.copy(file.with_suffix(".csv"), folder)
        text = file.read_text().replace("[calibration]\n", f"[calibration]\n{BRIEF_CALIBRATION}")
        assert BRIEF_CALIBRATION in text
        # Subjects of some profiles only: those of the quick one.
        text = text.replace('profiles = ["quick", ', 'profiles = ["tiny", "quick", ')
        (folder / "tiny.toml").write_text(text + TINY + LOADS[name])
        return "tiny.toml"

    return copy


def test_every_study_has_its_smallest_load():
    assert set(LOADS) == set(STUDIES)


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize(
    ("name", "only"), [OFTEN, *(pytest.param(name, (), marks=pytest.mark.slow, id=name) for name in STUDIES)]
)
def test_a_block_of_a_study_gives_every_subject_figures_or_a_named_outcome(prony, folder, tiny, name, only):
    profile = ("--profile", "tiny", "--force", "--out", "out.prony")
    done = prony("run", tiny(name), *profile, *only, timeout_s=600)
    assert done.status == 0, done.err
    with open_archive(folder / "out.prony") as archive:
        plan, subjects = archive.plan(), archive.subjects()
        trials = [one.trial for one in archive.trials() if one.trial.role is TrialRole.SUBJECT]
    last = {trial.cell_id: trial for trial in trials}
    for cell in plan.cells:
        who = f"{cell.subject.name} by {cell.engine.name}"
        if cell.id in last:
            assert_told(last[cell.id], who)
        else:
            record = subjects.get(cell.subject.name)
            unavailable = record.unavailable if record else None
            assert unavailable or cell.engine.name in done.err, f"nothing is told of {who}"
    assert any(isinstance(trial.outcome, Ok) for trial in trials)


def assert_told(trial, who):
    if isinstance(trial.outcome, Ok):
        assert trial.recording, who
        assert trial.recording.account.scheduled > 0, who
    else:
        assert trial.outcome.reason, who
