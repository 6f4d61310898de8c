"""How `prony run` ends: exit status, report, JSON, and what is left, whatever the study itself did."""

import json
import shlex
from dataclasses import replace

import pytest

from golden.build import closed_study, study_two
from prony.archive import create, open_archive
from prony.cli.talk import Terminated
from prony.core.errors import SubjectError
from prony.model.facts import Fingerprint
from prony.model.sandbox import Placement
from prony.model.trial import Fault, FaultKind, Invalid, RunStatus

STUDY = """\
format = 1
name = "two"
title = "Two servers"

[[subjects]]
server = "wsgiref"
app = "hello"

[[workloads]]
loop = "open"
rate = 550

[profiles.quick]
blocks = 5
duration = "2s"
"""


@pytest.fixture
def ended(said, folder, monkeypatch):
    """Run a study that does what the test says, and return how the command ended."""
    (folder / "two.toml").write_text(STUDY)

    def run(study, *arguments):
        monkeypatch.setattr("prony.study.run_study", study)
        return said("run", "two.toml", "--out", "out.prony", *arguments)

    return run


def empty_archive(task):
    create(task.out, task.plan, Fingerprint()).close()


def with_replies(path, make, kept):
    """Write the archive with all but so many replies of a trial taken for errors."""
    with_trials(path, make, lambda trial: _with_replies(trial, kept))


def with_trials(path, make, changed):
    """Write the archive with each trial as ``changed`` returns it."""
    whole = path.with_name("whole.prony")
    make(whole)
    with open_archive(whole) as archive, create(path, archive.plan(), Fingerprint()) as writer:
        for record in archive.subjects().values():
            writer.record_subject(record)
        for record in archive.trials():
            writer.append(changed(record.trial))
        writer.finish(RunStatus.FINISHED)
    whole.unlink()


def _with_replies(trial, kept):
    if trial.recording is None:
        return trial
    account = trial.recording.account
    bad = {**account.bad_status, "500": account.ok - kept}
    changed = replace(account, ok=kept, bad_status=bad)
    return replace(trial, recording=replace(trial.recording, account=changed))


def beside_others(share):
    """Return what makes a trial one beside which other programs took a share of the CPUs."""
    fault = Fault(FaultKind.OTHER_LOAD, share=share)
    return lambda trial: replace(
        trial, outcome=Invalid("other load"), fault=fault, placement=Placement((0,), (1,))
    )


@pytest.mark.parametrize(
    ("share", "arguments", "status", "words"),
    [
        (0.3, [], 0, "shares the first place"),
        (0.3, ["--strict"], 3, "shares the first place"),
        (0.49, [], 3, "No verdict: no trial counts. What was answered is in brackets"),
    ],
    ids=["its figures are bounds", "strict", "they are void"],
)
def test_a_study_beside_other_programs_was_measured_where_its_figures_are_bounds(
    ended, share, arguments, status, words
):
    done = ended(lambda task, listener: with_trials(task.out, closed_study, beside_others(share)), *arguments)
    assert done.status == status, done.err
    assert words in done.out


def test_the_report_and_the_archives_path_come_before_the_json(ended, folder):
    done = ended(lambda task, listener: study_two(task.out), "--json", "out.json")
    assert done.status == 0, done.err
    assert "Archive: out.prony" in done.out
    assert json.loads((folder / "out.json").read_text())


def test_a_json_file_that_fails_at_the_end_costs_nothing_but_itself(ended, folder):
    def study(task, listener):
        study_two(task.out)
        (folder / "out.json").mkdir()

    done = ended(study, "--json", "out.json")
    assert done.status == 2
    assert "Archive: out.prony" in done.out
    assert "cannot write `out.json`" in done.err


def test_strict_fails_when_a_subject_is_unavailable(ended):
    assert ended(lambda task, listener: study_two(task.out), "--strict").status == 3


def test_a_study_without_a_valid_reply_is_no_measurement(ended):
    assert ended(lambda task, listener: with_replies(task.out, study_two, kept=0)).status == 3


def test_strict_fails_when_no_subject_qualifies(ended, folder):
    def errors_only(task, listener):
        with_replies(task.out, closed_study, kept=1)

    def sound(task, listener):
        closed_study(task.out)

    for study, arguments, status in (
        (errors_only, [], 0),
        (errors_only, ["--strict"], 3),
        (sound, ["--strict"], 0),
    ):
        assert ended(study, *arguments).status == status
        (folder / "out.prony").unlink()


@pytest.mark.parametrize(("signal", "status"), [(KeyboardInterrupt(), 130), (Terminated("SIGTERM"), 143)])
@pytest.mark.parametrize("prepare", [lambda task: None, empty_archive])
def test_an_interruption_before_the_first_trial_says_that_nothing_was_measured(
    ended, folder, prepare, signal, status
):
    def study(task, listener):
        prepare(task)
        raise signal

    done = ended(study)
    assert (done.status, done.out) == (status, "")
    assert "no figures, no archive" in done.err
    assert [path.name for path in folder.iterdir()] == ["two.toml"]


def test_a_study_of_which_no_server_starts_leaves_no_empty_archive(ended, folder):
    def study(task, listener):
        empty_archive(task)
        raise SubjectError("no server starts", hint="--requirements")

    done = ended(study)
    assert (done.status, done.out) == (3, "")
    assert "error: no server starts\n\nhint: --requirements" in done.err
    assert not (folder / "out.prony").exists()


def test_the_command_that_goes_on_is_the_typed_one(said, folder, monkeypatch):
    def study(task, listener):
        study_two(task.out)
        raise Terminated("SIGTERM")

    monkeypatch.setattr("prony.study.run_study", study)
    (folder / "shop.py").write_text("app = None\n")
    (folder / "my needs.txt").write_text("flask\n")
    own = ("--app", "shop:app", "--servers", "waitress", "--requirements", "my needs.txt")
    done = said("run", *own, "--out", "out.prony")
    assert done.status == 143
    assert (
        f"interrupted; to go on, type again: `prony run {shlex.join(own)} --out out.prony --no-html`"
        in done.err
    )
