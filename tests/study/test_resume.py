"""A study that breaks off and goes on, on paper: the same trials as if nothing had happened."""

import os
import random
import signal
import sqlite3
import time
import traceback
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

import pytest

from golden.build import recording
from prony.archive import open_archive, resume
from prony.catalog.schema.loader import load_catalog
from prony.core.errors import ArchiveError, HostError
from prony.machine.fingerprint import fingerprint
from prony.model.plan import Design
from prony.model.trial import Invalid, Ok, RunStatus, TrialRole
from prony.plan.build import calibrated
from prony.plan.document import CalibrationDocument
from prony.study import run_study
from prony.study.rates import searching

MS = 1_000_000


def archive_of(world):
    return world.folder / "out.prony"


def what_ran(world):
    """Return all of a study's trials but their times, and which programs ran beside them: what a run and its
    continuation must agree in.
    """
    with open_archive(archive_of(world)) as archive:
        trials = [record.trial for record in archive.trials()]
    return [
        (trial.block, trial.position, trial.cell_id, trial.attempt, trial.role, dict(trial.nuisances),
         trial.outcome, replace(trial.facts, others=()), trial.placement)
        for trial in trials
    ]  # fmt: skip


def trials_of(world):
    with open_archive(archive_of(world)) as archive:
        return [record.trial for record in archive.trials()]


def runs_of(world):
    with open_archive(archive_of(world)) as archive:
        return archive.runs()


def full(world):
    """Return a study with calibration, cross-checks, and trials that the machine spoils."""
    study = world.study()
    world.faults = {
        (block, cell, attempt): "other load"
        for block, cell, most in ((0, 1, 1), (1, 0, 3), (1, 3, 2), (2, 100, 1))
        for attempt in range(most)
    }
    checks = tuple(replace(cell, id=cell.id + 100) for cell in study.plan.cells[:1])
    plan = calibrated(study.plan, load_catalog(), CalibrationDocument())
    return replace(study, plan=plan, cross_checks=checks)


def search(world):
    """Return a study that searches for rates, with calibration, and a spoilt trial on the way."""
    highest = {"waitress": 700, "wsgiref": 300}

    def replies(launch, workload):
        server = "waitress" if any("waitress" in word for word in launch.command) else "wsgiref"
        rate = getattr(workload.loop, "rate_per_s", 0)
        return recording(workload, [(90 if rate > highest[server] else 2) * MS + k for k in range(200)])

    world.replies = replies
    world.faults = {(0, 6, 0): "other load", (2, 7, 0): "other load"}
    study = world.study(workloads=[{"loop": "closed", "connections": 4}])
    plan = calibrated(study.plan, load_catalog(), CalibrationDocument())
    return replace(study, plan=searching(plan, "p90 < 50ms"))


def looks(world):
    """Return a study of one subject that looks at its figures, and stops at the first look."""

    def replies(launch, workload):
        # Of the trial alone, and not of how many came before it in this process.
        count = 100 + int(launch.environment["PYTHONHASHSEED"]) % 3
        return recording(workload, [MS + k for k in range(count)])

    from prony.model.plan import Precision

    world.replies = replies
    study = world.study(
        subjects=[{"server": "wsgiref", "app": "hello"}], workloads=[{"loop": "closed", "connections": 4}]
    )
    return replace(study, plan=replace(study.plan, blocks=20, design=Design(precision=Precision(0.05))))


STUDIES = {"blocks": full, "search": search, "looks": looks}


def in_a_child(world, study):
    """Run a study in a child of this process, and return its id."""
    child = os.fork()
    if child:
        return child
    try:
        run_study(study, world.listener)
        os._exit(0)
    except BaseException:  # this is a copy of the test: nothing of it may go on
        archive_of(world).with_suffix(".error").write_text(traceback.format_exc())
    os._exit(1)


def killed_at_random(world, study, length_s, rng):
    """Run a study in children that are killed at random moments until one comes to its end: how many were."""
    for kills in range(200):
        resumes = archive_of(world).exists() and runs_or_none(world) is not None
        child = in_a_child(world, replace(study, resumes=resumes))
        # Most of the way at first, so that all of it is met; the last one is let go.
        wait_s = rng.uniform(0, length_s) if kills < 4 else 3600.0
        deadline_s = time.monotonic() + wait_s
        while time.monotonic() < deadline_s:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                assert status == 0, archive_of(world).with_suffix(".error").read_text()
                return kills
            time.sleep(0.002)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if archive_of(world).exists() and is_finished(runs_or_none(world)):
            # It was done, and only had to leave.
            return kills
    raise AssertionError("it never came to its end")


def is_finished(runs):
    return bool(runs) and runs[-1].status is RunStatus.FINISHED


def runs_or_none(world):
    """Return the runs of an archive; null when the writer was killed before it was one."""
    try:
        return runs_of(world)
    except Exception:
        archive_of(world).unlink()
        return None


@pytest.mark.parametrize("kind", STUDIES)
def test_killed_at_random_moments_and_resumed_it_has_the_trials_of_an_undisturbed_run(world, kind):
    study = STUDIES[kind](world)
    begun = time.monotonic()
    assert os.waitpid(in_a_child(world, study), 0)[1] == 0
    length_s = time.monotonic() - begun
    expected, facts = what_ran(world), runs_of(world)[-1].facts
    assert len(expected) >= 10
    rng = random.Random(1)
    # Eight kills of each kind of study, at other moments in each run of the tests.
    for _ in range(2):
        archive_of(world).unlink()
        kills = killed_at_random(world, study, length_s, rng)
        assert what_ran(world) == expected
        *broken, last = runs_of(world)
        assert len(broken) <= kills
        assert {run.status for run in broken} <= {RunStatus.INTERRUPTED}
        assert (last.status, last.facts) == (RunStatus.FINISHED, facts)


@pytest.mark.parametrize("number", [0, 1, 7, 20, 21])
def test_interrupted_in_any_trial_it_goes_on_with_that_trial(world, number):
    undisturbed = full(world)
    world.measure(undisturbed)
    expected = what_ran(world)
    archive_of(world).unlink()
    world.log.clear()
    world.errors = {number: KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        world.measure(undisturbed)
    assert what_ran(world) == expected[:number]
    world.errors = {}
    world.measure(replace(undisturbed, resumes=True))
    assert what_ran(world) == expected


def broken_off(world, study, trials):
    world.errors = {trials: KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        world.measure(study)
    world.errors = {}
    world.log.clear()


def test_a_study_that_is_complete_runs_nothing_more(world):
    study = full(world)
    world.measure(study)
    before = what_ran(world)
    world.log.clear()
    world.measure(replace(study, resumes=True))
    assert what_ran(world) == before
    assert world.happened("start") == []


def test_the_listener_is_told_how_many_trials_are_left(world):
    study = world.study()
    broken_off(world, study, 5)
    world.measure(replace(study, resumes=True))
    assert world.listener.of("planned") == [12, 7]


# --- not the same study any more --------------------------------------------------------------------------


def with_other_versions(world, monkeypatch):
    prepare = world._prepare

    def newer(*arguments, **options):
        found = prepare(*arguments, **options)
        return {
            key: replace(one, version="2.0", packages={key: "2.0"}, lock_digest="e")
            if key == "waitress"
            else one
            for key, one in found.items()
        }

    monkeypatch.setattr("prony.study.preparing.prepare", newer)


def test_an_archive_that_another_process_writes_is_refused_before_a_server_is_prepared(world, monkeypatch):
    study = world.study()
    broken_off(world, study, 5)
    monkeypatch.setattr("prony.study.run.prepare_subjects", None)
    with resume(archive_of(world), fingerprint()):
        with pytest.raises(ArchiveError, match=r"out\.prony` is being written by another process"):
            world.measure(replace(study, resumes=True))
        assert len(runs_of(world)) == 2


def test_another_version_of_a_server_is_refused_with_the_difference(world, monkeypatch):
    study = world.study()
    broken_off(world, study, 5)
    with_other_versions(world, monkeypatch)
    before = what_ran(world)
    with pytest.raises(HostError) as refused:
        world.measure(replace(study, resumes=True))
    said = refused.value.message
    assert "the study has changed since it began" in said
    assert "waitress+hello: server version was 1.0, is 2.0" in said
    assert "waitress+hello: waitress was 1.0, is 2.0" in said
    assert "wsgiref" not in said
    assert what_ran(world) == before
    assert len(runs_of(world)) == 1


def test_force_goes_on_and_the_archive_says_so(world, monkeypatch):
    study = world.study()
    broken_off(world, study, 5)
    with_other_versions(world, monkeypatch)
    world.measure(replace(study, resumes=True, force=True))
    assert len(what_ran(world)) == 12
    assert "waitress+hello: server version was 1.0, is 2.0" in runs_of(world)[-1].fingerprint.forced


def test_another_version_of_a_frontend_is_refused_with_the_difference(world, monkeypatch):
    study = world.study(subjects=[{"server": "waitress@nginx", "app": "hello"}])
    broken_off(world, study, 2)
    prepare = world._prepare

    def newer(*arguments, **options):
        found = prepare(*arguments, **options)
        return {
            key: replace(one, version="9.9") if key.startswith("frontend") else one
            for key, one in found.items()
        }

    monkeypatch.setattr("prony.study.preparing.prepare", newer)
    with pytest.raises(HostError, match=r'frontend was .*"version": "1\.0".*, is .*"version": "9\.9"'):
        world.measure(replace(study, resumes=True))


def test_another_entry_of_the_catalogue_is_refused(world):
    study = world.study()
    broken_off(world, study, 5)
    known = load_catalog()
    entry = known.servers["wsgiref"].model_copy(update={"title": "another"})
    changed = replace(known, servers={**known.servers, "wsgiref": entry})
    with pytest.raises(HostError, match=r'wsgiref\+hello: of its .*, server\.title was ".+", is "another"'):
        world.measure(replace(study, catalog=changed, resumes=True))


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM subject",
        "DELETE FROM subject WHERE subject_name = 'waitress+hello'",
        "UPDATE subject SET entry_digest = NULL",
    ],
)
def test_a_subject_that_was_measured_and_is_not_described_any_more_is_refused(world, statement):
    study = world.study()
    broken_off(world, study, 5)
    with closing(sqlite3.connect(archive_of(world))) as database, database:
        database.execute(statement)
    with pytest.raises(HostError, match=r"waitress\+hello: was measured, but its record is missing"):
        world.measure(replace(study, resumes=True))


def test_of_an_added_cell_only_its_rate_is_taken_from_the_archive(world):
    study = search(world)
    broken_off(world, study, 8)
    with closing(sqlite3.connect(archive_of(world))) as database, database:
        database.execute(
            "UPDATE cell SET subject_json = json_set(subject_json, '$.app.targets.wsgi', 'os:system(1)'),"
            " sandbox_json = json_set(sandbox_json, '$.network', 'host') WHERE role = 'find-rate'"
        )
    world.measure(replace(study, resumes=True))
    commands = [word for trial in trials_of(world) for word in trial.command]
    assert commands
    assert not any("system" in word for word in commands)


def test_another_machine_is_refused_with_the_difference(world, monkeypatch):
    study = world.study()
    broken_off(world, study, 5)
    here = fingerprint()
    kernel = {**here.free["kernel"], "release": "99.0"}
    elsewhere = replace(here, free={**here.free, "kernel": kernel})
    monkeypatch.setattr("prony.study.run.fingerprint", lambda **options: elsewhere)
    with pytest.raises(HostError, match=r"kernel: was .*, is 99\.0"):
        world.measure(replace(study, resumes=True))


def test_a_subject_that_has_gone_is_refused_and_one_that_came_late_stays_out(world):
    study = world.study()
    world.unavailable = {"waitress": "no network"}
    broken_off(world, study, 2)
    world.unavailable = {}
    world.measure(replace(study, resumes=True))
    assert {trial[2] for trial in what_ran(world)} == {0, 1}
    world.unavailable = {"wsgiref": "no network"}
    with pytest.raises(HostError, match=r"wsgiref\+hello: is unavailable now: no network"):
        world.measure(replace(study, resumes=True))


def test_what_was_spoilt_before_the_interruption_is_repeated_after_it(world):
    study = world.study()
    first = next(iter(study.plan.cells)).id
    world.faults = {(0, first, 0): "other load"}
    broken_off(world, study, 4)
    world.measure(replace(study, resumes=True))
    with open_archive(archive_of(world)) as archive:
        own = [record.trial for record in archive.trials()]
    again = [trial for trial in own if (trial.block, trial.cell_id) == (0, first)]
    assert [(trial.attempt, trial.outcome) for trial in again] == [(0, Invalid("other load")), (1, Ok())]
    assert {trial.role for trial in own} == {TrialRole.SUBJECT}


# --- sessions ---------------------------------------------------------------------------------------------


def in_sessions(world, pause_ns):
    study = world.study()
    design = replace(study.plan.design, sessions=2, pause_ns=pause_ns)
    return replace(study, plan=replace(study.plan, blocks=4, design=design))


def test_a_study_pauses_before_each_further_session_and_says_for_what(world):
    run_study(in_sessions(world, 300 * MS), world.listener)
    trials = trials_of(world)
    assert {trial.block for trial in trials} == {0, 1, 2, 3}
    ended = max(trial.ended_unix_ns for trial in trials if trial.block < 2)
    began = min(trial.started_unix_ns for trial in trials if trial.block == 2)
    assert began - ended >= 300 * MS
    assert set(world.listener.of("paused")) == {"session 2 of 2"}
    assert any("before session 2 of 2, until" in notice for notice in world.listener.notices)


def test_a_clock_that_was_set_back_makes_no_pause_longer(world, monkeypatch):
    study = in_sessions(world, 20_000_000)
    now = time.time_ns
    # A year back, once the first session is over.
    moved = SimpleNamespace(**{**vars(time), "time_ns": lambda: now() - 365 * 86_400_000_000_000})
    monkeypatch.setattr("prony.study.blocks.time", moved)
    slept = []
    moved.sleep = lambda length_s: slept.append(length_s) or time.sleep(length_s)
    run_study(study, world.listener)
    assert sum(slept) < 1


def test_a_study_that_is_interrupted_in_a_pause_keeps_its_first_session_and_goes_on_with_the_second(world):
    study = in_sessions(world, 3_600_000 * MS)

    def interrupt(until_unix_ns, words):
        raise KeyboardInterrupt

    world.listener.paused = interrupt
    with pytest.raises(KeyboardInterrupt):
        run_study(study, world.listener)
    assert {trial.block for trial in trials_of(world)} == {0, 1}
    assert runs_of(world)[-1].status is RunStatus.INTERRUPTED
    # An hour later nothing is left of the pause: it counts from the last trial.
    shorter = replace(study.plan, design=replace(study.plan.design, pause_ns=1))
    run_study(replace(study, plan=shorter, resumes=True), world.listener)
    assert {trial.block for trial in trials_of(world)} == {0, 1, 2, 3}
    assert runs_of(world)[-1].status is RunStatus.FINISHED


def test_a_study_that_is_killed_in_a_pause_waits_for_what_is_left_of_it_and_has_the_same_trials(world):
    pause_ns = 3000 * MS
    study = in_sessions(world, pause_ns)
    run_study(in_sessions(world, 1), world.listener)
    expected = what_ran(world)
    archive_of(world).unlink()
    seen, told = os.pipe()
    world.listener.paused = lambda left_s, words: os.write(told, b"p")
    child = in_a_child(world, study)
    assert os.read(seen, 1) == b"p"
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert {trial.block for trial in trials_of(world)} == {0, 1}
    (broken,) = runs_of(world)
    assert (broken.status, broken.ended_unix_ns) == (RunStatus.INTERRUPTED, None)
    run_study(replace(study, resumes=True), world.listener)
    os.close(seen)
    os.close(told)
    assert what_ran(world) == expected
    assert runs_of(world)[-1].status is RunStatus.FINISHED
    trials = trials_of(world)
    waited = min(one.started_unix_ns for one in trials if one.block == 2) - max(
        one.ended_unix_ns for one in trials if one.block < 2
    )
    # Of the pause, and not of a second one.
    assert pause_ns <= waited
    assert any("before session 2 of 2" in notice for notice in world.listener.notices)
