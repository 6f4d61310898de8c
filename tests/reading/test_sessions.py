"""Which runs of a study begin a session, and what the report says of intervals within one."""

from dataclasses import replace

import pytest

from golden import build
from prony.archive import open_archive
from prony.model.facts import Fingerprint
from prony.model.trial import Run, RunStatus
from prony.reading.across import stretches
from prony.reading.study import read_archive, sessions_in
from prony.report.formats.as_json import reading_json
from prony.report.formats.markdown import markdown
from prony.report.study import study_report

HOUR = 3600 * build.SECOND
MORNING = 20_000 * 24 * HOUR + 8 * HOUR
OTHER = Fingerprint({**build.FINGERPRINT.free, "kernel": {"release": "6.2.0"}})


def run(started, fingerprint=build.FINGERPRINT):
    return Run(1, "0.1.0", started, started + HOUR, RunStatus.FINISHED, fingerprint)


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ((), ()),
        ((run(MORNING),), (0,)),
        ((run(MORNING), run(MORNING + 3 * HOUR)), (0, 0)),
        ((run(MORNING), run(MORNING + 24 * HOUR)), (0, 1)),
        (tuple(run(MORNING + hours * HOUR) for hours in (0, 1, 24, 25)), (0, 0, 1, 1)),
        ((run(MORNING), run(MORNING + 2 * HOUR, OTHER), run(MORNING + 4 * HOUR, OTHER)), (0, 1, 1)),
    ],
)
def test_a_session_begins_on_another_day_or_machine(runs, expected):
    numbered = [replace(one, id=k) for k, one in enumerate(runs, 1)]
    assert tuple(stretches(numbered).values()) == expected


@pytest.fixture
def reading(tmp_path):
    with open_archive(build.closed_study(tmp_path / "a.prony", 6)) as archive:
        return read_archive(archive)


def page(reading):
    return " ".join(markdown(study_report(reading)).split())


def test_a_report_of_one_session_says_that_its_intervals_are_within_it(reading):
    assert "within one session. The intervals hold for all pairs" in page(reading)
    assert "All intervals are within one session: on another day" in page(reading)


def test_a_report_of_several_does_not(reading):
    trials = tuple(replace(trial, session=trial.block // 3) for trial in reading.trials)
    several = replace(reading, trials=trials)
    assert "All intervals are within one session" not in page(several)
    assert "The trials are of 2 sessions (a pause, another day or machine), and each counts once" in page(
        several
    )
    assert reading_json(several)["extent"]["sessions"] == 2


def test_a_crafted_plan_of_no_sessions_has_one(reading):
    plan = replace(reading.plan, design=replace(reading.plan.design, sessions=0))
    (side,) = sessions_in(replace(reading, plan=plan), "a")
    assert (side.archive, side.blocks) == ("a", 6)


def test_runs_without_trials_are_no_sessions(reading):
    both = (reading.runs[0], replace(reading.runs[0], fingerprint=OTHER))
    assert replace(reading, runs=both).sessions == 1
