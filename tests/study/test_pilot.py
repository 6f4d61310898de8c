"""The pilot of a study, on paper: how long each server warms up, found before the first block."""

import math
import random
from dataclasses import replace

import pytest

from golden.build import recording
from prony.archive import open_archive
from prony.cli.protocol import with_protocol
from prony.cli.run_options import SureOptions
from prony.core.units import SECOND_NS, seconds
from prony.figures.steady_state import warm_after, warmup_ns
from prony.model.facts import PilotStep
from prony.model.trial import RunStatus, TrialRole
from prony.plan.document import ProfileDocument
from prony.reading.study import read_archive
from prony.report.formats.as_json import reading_json
from prony.report.sections.notes import warm_up_notes
from prony.study.extent import extent_of, pilot_seconds
from prony.study.pilot import piloted
from recordings import with_parts

# --- when a pace is warm ----------------------------------------------------------------------------------


def noisy(shape, length, noise, seed):
    rng = random.Random(seed)
    return [1000 * shape(second + 0.5) * (1 + rng.gauss(0, noise)) for second in range(length)]


def rising(tau):
    return lambda at: 1 - 0.5 * math.exp(-at / tau)


def test_a_flat_pace_is_warm_from_the_beginning():
    found = [warm_after(noisy(lambda _: 1, 13, 0.03, seed), 0.02) for seed in range(200)]
    assert found.count(0) >= 180
    assert found.count(None) <= 10


@pytest.mark.parametrize(("tau", "length"), [(2, 13), (5, 26), (10, 90)])
def test_what_is_left_of_a_warm_up_is_less_than_noise_can_hide(tau, length):
    for seed in range(100):
        found = warm_after(noisy(rising(tau), length, 0.01, seed), 0.02)
        if found is not None:
            assert 0.5 * math.exp(-found / tau) < 0.1


@pytest.mark.parametrize(("tau", "length"), [(5, 13), (10, 13), (10, 26)])
def test_a_pace_that_still_rises_is_not_warm(tau, length):
    found = [warm_after(noisy(rising(tau), length, 0.01, seed), 0.02) for seed in range(100)]
    assert sum(one is None for one in found) >= 95


def test_nothing_before_a_step_is_called_warm():
    found = [warm_after(noisy(lambda at: 0.7 if at < 8 else 1, 26, 0.03, seed), 0.02) for seed in range(100)]
    assert all(one is None or one >= 8 for one in found)
    assert found.count(None) <= 10


@pytest.mark.parametrize(
    ("step", "expected_s"),
    [
        (PilotStep(0, 13, after_s=1), 3),
        (PilotStep(0, 13, after_s=7), 7),
        (PilotStep(0, 45, after_s=35), 20),
        (PilotStep(0, 45, changes=True), 20),
        (PilotStep(0, 13, reason="there was no load"), 3),
        (None, 3),
    ],
)
def test_a_warm_up_is_at_least_as_planned_and_no_longer_than_allowed(step, expected_s):
    assert warmup_ns(3 * SECOND_NS, 20 * SECOND_NS, step) == expected_s * SECOND_NS


# --- in a study -------------------------------------------------------------------------------------------


def compiled(at):
    """Return the pace of a server whose code is compiled within its first 9 s."""
    return min(1, 0.5 + at / 18)


def study_of(world, longest_s=30, **changes):
    """Return a study of a server that warms up, wsgiref, and one that does not."""

    def replies(launch, workload):
        warms_up = not any("waitress" in word for word in launch.command)
        first, length = round(seconds(workload.warmup_ns)), round(seconds(workload.stop.duration_ns))
        pace = [compiled(first + k + 0.5) if warms_up else 1 for k in range(length)]
        counts = [round(100 * one) for one in pace]
        rows = [
            {"second": k, "scheduled": n, "ok": n, "failed": 0, "body_bytes": 0, "latency": None}
            for k, n in enumerate(counts)
        ]
        return with_parts(recording(workload, [1_000_000] * sum(counts)), series=rows)

    world.replies = replies
    profile = {"blocks": 3, "duration": "6s", "warmup": "1s", **changes}
    study = world.study(workloads=[{"loop": "closed", "connections": 4}], profiles={"quick": profile})
    design = replace(study.plan.design, pilot_ns=longest_s * SECOND_NS)
    return replace(study, plan=replace(study.plan, design=design))


def ran(world):
    with open_archive(world.folder / "out.prony") as archive:
        return [record.trial for record in archive.trials()]


def read(world):
    with open_archive(world.folder / "out.prony") as archive:
        return read_archive(archive)


@pytest.fixture
def watched(world, monkeypatch):
    """A world that also keeps what each trial was loaded with."""
    from prony.study import bench

    world.tasks = []

    def run_trial(task, on_event, really=bench.run_trial):
        world.tasks.append(task)
        return really(task, on_event)

    monkeypatch.setattr(bench, "run_trial", run_trial)
    return world


def lengths(world, role):
    """Return subject, warm-up and window of the trials of a role, in seconds, in their order."""
    return [
        (
            task.cell.subject.server,
            round(seconds(task.cell.workload.warmup_ns)),
            round(seconds(task.cell.workload.stop.duration_ns)),
        )
        for task in world.tasks
        if task.position.role is role
    ]


def test_the_pilot_comes_before_the_first_block_and_looks_longer_until_a_server_is_warm(watched):
    watched.measure(study_of(watched))
    roles = [trial.role for trial in ran(watched)]
    assert lengths(watched, TrialRole.PILOT) == [
        ("wsgiref", 0, 12), ("wsgiref", 0, 24), ("waitress", 0, 12),
    ]  # fmt: skip
    assert roles == [TrialRole.PILOT] * 3 + [TrialRole.SUBJECT] * 6


def test_what_warms_up_is_measured_warm_and_what_does_not_as_planned(watched):
    watched.measure(study_of(watched))
    found = {server: warmup for server, warmup, _ in lengths(watched, TrialRole.SUBJECT)}
    assert found["waitress"] == 1
    assert 8 <= found["wsgiref"] <= 10
    # Without its pilot the same server is not steady, and enters no verdict.
    assert all(cell.steadiness.is_steady for cell in read(watched).cells)


def test_without_a_pilot_the_same_server_is_measured_cold(watched):
    study = study_of(watched)
    watched.measure(
        replace(study, plan=replace(study.plan, design=replace(study.plan.design, pilot_ns=None)))
    )
    assert lengths(watched, TrialRole.PILOT) == []
    assert [cell.steadiness.is_steady for cell in read(watched).cells] == [False, True]


def test_a_warm_up_is_no_longer_than_allowed_and_the_report_says_that_it_had_no_end(watched):
    watched.measure(study_of(watched, longest_s=5))
    assert ("wsgiref", 5, 6) in lengths(watched, TrialRole.SUBJECT)
    (note,) = map(str, warm_up_notes(read(watched)))
    assert note == (
        "The pilot saw no end of the warm-up: wsgiref+hello (its pace still changed after 12 seconds; its "
        "trials warm up for 5 s)."
    )


def test_the_report_names_who_warmed_up_longer_and_its_json_has_the_looks(world):
    world.measure(study_of(world))
    reading = read(world)
    (note,) = map(str, warm_up_notes(reading))
    found = {one["subject"]: one for one in reading_json(reading)["warm_ups"]}
    used_s = found["wsgiref+hello"]["used_ns"] / SECOND_NS
    assert note == f"Warmed up longer than planned, as the pilot found: wsgiref+hello ({used_s:g} s)."
    assert [look["seconds"] for look in found["wsgiref+hello"]["looks"]] == [12, 24]
    assert found["waitress+hello"]["used_ns"] == found["waitress+hello"]["planned_ns"] == SECOND_NS


def test_where_all_are_warm_the_report_says_so(world):
    study = study_of(world)
    cells = tuple(cell for cell in study.plan.cells if cell.subject.server == "waitress")
    world.measure(replace(study, plan=replace(study.plan, cells=cells)))
    assert list(map(str, warm_up_notes(read(world)))) == [
        "The pilot found all warm within the planned warm-up."
    ]


def test_the_figures_of_a_pilot_are_in_no_mean(world):
    world.measure(study_of(world))
    reading = read(world)
    assert [cell.total for cell in reading.cells] == [3, 3]
    assert reading.count(TrialRole.PILOT) == 3


@pytest.mark.parametrize("broken_at", [0, 2, 5])
def test_a_pilot_that_breaks_off_goes_on_as_if_nothing_had_happened(watched, broken_at):
    watched.measure(study_of(watched))
    whole = [(task.position, task.cell.id, task.cell.workload) for task in watched.tasks]
    (watched.folder / "out.prony").unlink()
    watched.tasks.clear()
    watched.log.clear()
    watched.errors = {broken_at: KeyboardInterrupt()}
    study = study_of(watched)
    with pytest.raises(KeyboardInterrupt):
        watched.measure(study)
    watched.errors = {}
    done = len(ran(watched)) if broken_at else 0
    watched.tasks = watched.tasks[:done]
    watched.measure(replace(study, resumes=True))
    assert [(task.position, task.cell.id, task.cell.workload) for task in watched.tasks] == whole
    with open_archive(watched.folder / "out.prony") as archive:
        assert archive.runs()[-1].status is RunStatus.FINISHED


def test_a_server_that_fails_in_its_pilot_keeps_its_planned_warm_up(watched):
    watched.fail = lambda launch: None if any("waitress" in word for word in launch.command) else "it fails"
    watched.measure(study_of(watched))
    assert lengths(watched, TrialRole.PILOT) == [("wsgiref", 0, 12), ("waitress", 0, 12)]
    assert "The pilot found no warm-up of 1 cell, such as wsgiref+hello: there was no load." in map(
        str, warm_up_notes(read(watched))
    )


def test_the_extent_counts_the_first_looks(world):
    study = study_of(world)
    without = replace(study.plan, design=replace(study.plan.design, pilot_ns=None))
    least, most = pilot_seconds(study.plan)
    assert extent_of(study.plan, study.catalog).trials == (8, 8)
    assert (
        extent_of(study.plan, study.catalog).seconds[1] - extent_of(without, study.catalog).seconds[1]
        == least
        == 2 * 14.5
    )
    assert most == 2 * (12 + 24 + 60 + 3 * 2.5)


# --- which studies have one -------------------------------------------------------------------------------


def test_what_can_give_verdicts_has_a_pilot_unless_its_file_says_otherwise(world):
    none = replace(study_of(world).plan.design, pilot_ns=None)
    plan = replace(study_of(world).plan, design=none, blocks=5)
    assert with_protocol(plan, SureOptions(), None).design.pilot_ns == 30 * SECOND_NS
    assert with_protocol(replace(plan, blocks=4), SureOptions(), None).design.pilot_ns is None
    said = replace(plan, design=replace(none, pilot_ns=0))
    assert with_protocol(said, SureOptions(), None).design.pilot_ns is None
    assert with_protocol(said, SureOptions(pilot="20s"), None).design.pilot_ns == 20 * SECOND_NS


def test_a_profile_says_how_long_a_warm_up_to_look_for(world):
    assert ProfileDocument(blocks=5, duration="6s", pilot="0s").pilot == 0
    study = world.study(profiles={"quick": {"blocks": 5, "duration": "6s", "pilot": "20s"}})
    assert study.plan.design.pilot_ns == 20 * SECOND_NS


def test_what_has_no_seconds_to_compare_has_no_pilot(world):
    plan = study_of(world, duration="1s").plan
    assert piloted(plan) == ()
    wrk = replace(plan.cells[0], engine=replace(plan.cells[0].engine, name="wrk"))
    assert piloted(replace(study_of(world).plan, cells=(wrk,))) == ()
