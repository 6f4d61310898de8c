"""Studies with real servers: from the command to the archive, the report, and nothing left."""

import json
import signal

import pytest

from commands import ended, eventually
from prony.archive import open_archive
from prony.model.observation import Phase
from prony.model.trial import Failed, Ok, RunStatus
from servers.world import processes_of

pytestmark = pytest.mark.usefixtures("nothing_left")

FLASK = 4
# For tests of what is run in which order, whatever it measures.
BRIEFLY = ("--profile", "brief")


def study(*more):
    return ("run", "short.toml", "--only", "*flask*", "--repeats", "1", "--out", "out.prony", *more)


@pytest.mark.quiet
def test_a_study_measures_every_subject_and_says_which_to_start(prony, folder, short, trials):
    done = prony(*study("--json", "out.json"), timeout_s=240)
    assert done.status == 0, done.err
    found = trials(folder / "out.prony")
    assert [trial.outcome for trial in found] == [Ok()] * FLASK
    for trial in found:
        account = trial.recording.account
        assert account.scheduled == 1100
        assert trial.recording.distributions.ok_response.count == account.ok > 1000
        assert {Phase.WARMUP, Phase.WINDOW, Phase.DRAIN} <= {sample.phase for sample in trial.samples}
        assert any(sample.processes for sample in trial.samples)
        assert trial.counters["PassiveOpens"] >= 0
        assert [event.event for event in trial.events] == ["window_open", "window_close"]
    assert any(trial.log.text for trial in found)

    report = json.loads((folder / "out.json").read_text())
    (group,) = report["groups"]
    assert len(group["cells"]) == FLASK
    for cell in group["cells"]:
        assert cell["metrics"]["response_ok_p50"]["mean"] > 0
        assert cell["metrics"]["rss_peak"]["mean"] > 1_000_000
    command = group["answer"]["command_line"]
    last = done.out.rstrip().splitlines()[-6:]
    assert any(command.splitlines()[0][:40] in line for line in last)
    assert last[-1].endswith("prony report out.prony --full")


@pytest.mark.slow
def test_subjects_run_in_the_seeded_order_of_their_block(prony, folder, short, trials):
    from prony.plan.order import block_order

    command = (
        "run",
        "short.toml",
        "--only",
        "wsgiref*",
        "--seed",
        "7",
        "--out",
        "out.prony",
        "--repeats",
        "3",
        "--no-calibration",
        *BRIEFLY,
    )
    assert prony(*command, timeout_s=240).status == 0
    with open_archive(folder / "out.prony") as archive:
        plan = archive.plan()
        # A trial that a busy machine spoilt comes once more, at the end of its block.
        found = [record.trial for record in archive.trials()]
        ran = [(trial.block, trial.cell_id) for trial in found if trial.attempt == 0]
    assert ran == [(block, cell.id) for block in range(3) for cell in block_order(plan, block)]


# --- ends that nobody planned -----------------------------------------------------------------------------


MANY = (
    *("run", "short.toml", "--only", "wsgiref*", "--repeats", "50", "--out", "out.prony"),
    *("--no-calibration", "--pilot", "0s"),
)


def in_a_later_trial(prony, folder):
    """Start a study of many trials and return it when it is in the midst of the second one or later."""
    process = prony.start(*MANY)
    line = ""
    while "[1/100]" not in line:
        line = process.stderr.readline()
        assert line, process.communicate()
    assert eventually(lambda: any("serve.py" in command for _, command in processes_of(prony.cache)), 10)
    return process


@pytest.mark.parametrize(
    ("number", "status"),
    [
        pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow),
        (signal.SIGTERM, 143),
        pytest.param(signal.SIGHUP, 143, marks=pytest.mark.slow),
    ],
)
def test_an_interrupted_study_reports_what_it_has_and_leaves_nothing(
    prony, folder, short, trials, number, status
):
    with ended(in_a_later_trial(prony, folder)) as process:
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert process.returncode == status, err
    assert processes_of(prony.cache) == []
    assert "Archive: out.prony" in out
    assert trials(folder / "out.prony")
    with open_archive(folder / "out.prony") as archive:
        assert archive.runs()[0].status is RunStatus.INTERRUPTED


def test_a_killed_study_leaves_its_trials_and_no_server_and_the_next_start_clears_its_folder(
    prony, folder, short, trials
):
    with ended(in_a_later_trial(prony, folder)) as process:
        process.kill()
        process.communicate(timeout=10)
    assert eventually(lambda: not processes_of(prony.cache), 5), processes_of(prony.cache)
    found = trials(folder / "out.prony")
    assert all(trial.outcome == Ok() or trial.fault is not None for trial in found)
    assert len(found) >= 1
    assert list((prony.cache / "run").glob("*"))
    report = prony("report", "out.prony")
    assert (report.status, report.err) == (0, "")
    cleaned = prony("clean")
    assert cleaned.status == 0
    assert not list((prony.cache / "run").glob("*"))


# --- subjects that cannot ---------------------------------------------------------------------------------


@pytest.fixture
def impossible(folder):
    """A catalogue entry that no package index can satisfy, in a study with one that works."""
    from prony.catalog.schema.loader import BUILT_IN_SERVERS

    text = (BUILT_IN_SERVERS / "wsgiref.toml").read_text()
    text = text.replace('name = "wsgiref"', 'name = "impossible"')
    text = text.replace("requirements = []", 'requirements = ["prony-has-no-such-package==1"]')
    (folder / "impossible.toml").write_text(text)
    (folder / "pair.toml").write_text(
        'format = 1\nname = "pair"\ntitle = "Pair"\n'
        '[[subjects]]\nserver = ["impossible", "wsgiref"]\napp = "hello"\n'
        '[[workloads]]\nloop = "closed"\nconnections = 2\n'
        '[profiles.quick]\nblocks = 1\nduration = "500ms"\n'
    )
    options = ("--no-calibration", "--full", "--force", "--out", "out.prony")
    return ("run", "pair.toml", "--catalog", "impossible.toml", *options)


@pytest.mark.parametrize(
    ("options", "status"), [((), 0), pytest.param(("--strict",), 3, marks=pytest.mark.slow)]
)
def test_a_subject_that_cannot_be_installed_does_not_stop_the_others(
    prony, folder, impossible, trials, options, status
):
    done = prony(*impossible, *options, timeout_s=120)
    assert done.status == status, done.err
    assert "impossible+hello is unavailable: " in done.err
    assert "prony-has-no-such-package" in " ".join(done.out.split())
    assert [trial.outcome for trial in trials(folder / "out.prony")] == [Ok()]


def test_a_study_without_a_single_subject_is_no_measurement(prony, folder, impossible):
    done = prony(*impossible, "--only", "impossible*", timeout_s=120)
    assert done.status == 3, done.err
    assert "prony-has-no-such-package" in " ".join(done.err.split())
    assert done.out == ""


def test_a_trial_that_failed_is_kept_with_its_reason(prony, folder, trials):
    from prony.catalog.schema.loader import BUILT_IN_SERVERS

    # With a built-in app there is no probe before the first trial, which would stop here.
    text = (BUILT_IN_SERVERS / "wsgiref.toml").read_text().replace('name = "wsgiref"', 'name = "broken"')
    script = "print('about to fail')\nraise RuntimeError('no database')\n"
    (folder / "broken.toml").write_text(
        f'{text.partition("[files]")[0]}[files]\n"serve.py" = """{script}"""\n'
    )
    options = ("--repeats", "1", "--no-calibration", "--full", "--out", "out.prony")
    done = prony("run", "--catalog", "broken.toml", "--app", "hello", "--servers", "broken", *options)
    assert done.status == 3, done.err
    (trial,) = trials(folder / "out.prony")
    assert isinstance(trial.outcome, Failed)
    assert trial.outcome.stage == "start"
    assert "RuntimeError: no database" in trial.log.text
    assert "RuntimeError: no database" in done.out


def test_a_server_of_ones_own_runs_built_in_apps_with_what_they_need(prony, folder, trials):
    from prony.catalog.schema.loader import BUILT_IN_SERVERS

    text = (BUILT_IN_SERVERS / "wsgiref.toml").read_text().replace('name = "wsgiref"', 'name = "mine"')
    (folder / "mine.toml").write_text(text)
    (folder / "study.toml").write_text(
        'format = 1\nname = "own"\ntitle = "Own"\n[[subjects]]\nserver = "mine"\napp = "flask-hello"\n'
        '[[workloads]]\nloop = "closed"\nconnections = 2\n[profiles.quick]\nblocks = 1\nduration = "500ms"\n'
    )
    options = ("--catalog", "mine.toml", "--no-calibration", "--force", "--out", "out.prony")
    done = prony("run", "study.toml", *options, timeout_s=120)
    assert done.status == 0, done.err
    assert [trial.outcome for trial in trials(folder / "out.prony")] == [Ok()]


# --- going on ---------------------------------------------------------------------------------------------


def planned_trials(path):
    """Return what was run, but for when and how it went: a busy machine may have trials repeated."""
    with open_archive(path) as archive:
        return [
            (trial.block, trial.position, trial.cell_id, trial.role, dict(trial.nuisances), trial.placement)
            for trial in (record.trial for record in archive.trials())
            if trial.attempt == 0
        ]


def test_a_study_that_was_killed_goes_on_as_if_nothing_had_happened(prony, folder, short):
    study = ("run", "short.toml", "--only", "wsgiref*", "--seed", "5", "--repeats", "2", *BRIEFLY)
    whole = prony(*study, "--out", "whole.prony", timeout_s=240)
    assert whole.status == 0, whole.err
    with ended(prony.start(*study, "--out", "out.prony")) as process:
        line = ""
        while "[3/10]" not in line:
            line = process.stderr.readline()
            assert line, process.communicate()
        process.kill()
        process.communicate(timeout=10)
    done = prony(*study, "--out", "out.prony", timeout_s=240)
    assert done.status == 0, done.err
    assert planned_trials(folder / "out.prony") == planned_trials(folder / "whole.prony")
    with open_archive(folder / "out.prony") as archive:
        assert [run.status for run in archive.runs()] == [RunStatus.INTERRUPTED, RunStatus.FINISHED]
    again = prony(*study, "--out", "out.prony")
    assert "is complete: no trial is left to run" in again.err


@pytest.mark.slow
def test_the_highest_rate_of_a_server_is_found_and_confirmed(prony, folder):
    from prony.model.trial import TrialRole
    from prony.reading.saturation import SearchEnd, confirmed_rates

    done = prony(
        *("run", "--app", "hello", "--servers", "reference", "--find-rate", "p90 < 20ms, errors < 1%"),
        *("--rate", "100000", "--duration", "300ms", "--warmup", "50ms", "--repeats", "2"),
        *("--no-calibration", "--out", "out.prony"),
        timeout_s=280,
    )
    assert done.status == 0, done.err
    with open_archive(folder / "out.prony") as archive:
        (found,) = confirmed_rates(archive.runs())
        assert {record.trial.role for record in archive.trials()} == {TrialRole.FIND_RATE}
    # Other programs may spoil a trial three times: then the search ends there, and says so.
    assert (found.rate_per_s or 0) > 100 or found.end is SearchEnd.UNDECIDED, found
    assert (found.of + found.unknown, bool(found.steps)) == (2 if found.rate_per_s else 0, True)
