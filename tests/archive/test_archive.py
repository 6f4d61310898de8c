"""What is written is what is read; nothing is overwritten; a kill loses at most the running trial."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from golden import build
from golden.faults import FAULTS
from prony.archive import create, open_archive, resume
from prony.core.errors import ArchiveError
from prony.model.exchange import Request
from prony.model.facts import Fingerprint, TrialFacts
from prony.model.observation import Slice, ThreadUsage
from prony.model.plan import Cell, Claim, ClaimKind, Design, Needs, Original, Plan, Precision
from prony.model.sandbox import Network, SandboxChoice, SandboxFacts
from prony.model.trial import Failed, FaultKind, Invalid, RunStatus, SubjectRecord, TrialRole
from prony.model.workload import Arrivals, CountStop, EngineChoice, OpenLoop, Pacing, Workload


def plan_of(*workloads):
    cells = tuple(Cell(k + 1, build.subject("gunicorn+falcon-hello"), w) for k, w in enumerate(workloads))
    return Plan("study", "A study", "verbatim = 'ü'\n", "quick", cells, 3, 42, "Which?")


WORKLOAD = Workload(
    OpenLoop(12.5, Arrivals.POISSON, 9, 77),
    CountStop(33),
    Request("POST", "/a", (("x-a", "b"),), b"\x00\xff", keep_alive=False),
    warmup_ns=1,
    timeout_ns=2,
    grace_ns=3,
    expect_status=201,
    expect_body=b"ok\x00",
)


def closed_trial(block=0, **kwargs):
    workload = build.Workload(build.ClosedLoop(1), build.DurationStop(build.SECOND))
    cell = Cell(1, build.subject("gunicorn+falcon-hello"), workload)
    return build.trial(cell, block, 0, [1_000_000 + k for k in range(100)], **kwargs)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.prony"


def test_faults_of_every_kind_read_as_they_were_written(path):
    with create(path, plan_of(WORKLOAD), Fingerprint()) as writer:
        for attempt, fault in enumerate(FAULTS):
            spoilt = closed_trial(attempt=attempt, outcome=Invalid("spoilt"))
            writer.append(replace(spoilt, fault=fault))
    with open_archive(path) as archive:
        assert tuple(one.trial.fault for one in archive.trials()) == FAULTS
    assert {fault.kind for fault in FAULTS} == set(FaultKind)


def test_a_plan_reads_as_it_was_written(path):
    plan = plan_of(WORKLOAD)
    cell = Cell(
        7,
        plan.cells[0].subject,
        WORKLOAD,
        EngineChoice("wrk", 2, Pacing.PRECISE),
        SandboxChoice(run_as="www"),
    )
    plan = Plan(
        name="study",
        title="A study",
        text=plan.text,
        profile="quick",
        cells=(*plan.cells, cell),
        blocks=3,
        seed=42,
        question="Which?",
        source="a blog, 2016",
        calibration=replace(cell, id=8),
        design=Design(0.03, {"connections": 100.0}, True, Precision(0.02, (10, 20), 5)),
        claims=(
            Claim("c", "one core", ClaimKind.SINGLE_CORE, "cpu_percent", load={"rate": 5.0}, needs=Needs(2)),
        ),
        originals=(
            Original("a*", "ok_per_s", 61476.4, {"connections": 100.0}, note="two dead runs", role="worker"),
        ),
        notes=("another machine", "newer servers"),
    )
    create(path, plan, Fingerprint({"kernel": "6"})).close()
    with open_archive(path) as archive:
        assert archive.plan() == plan
        assert archive.cells() == plan.cells
        assert archive.fingerprint() == Fingerprint({"kernel": "6"})


@pytest.mark.parametrize(
    "outcome", [None, Failed("start", "no port"), Invalid("steal")], ids=["ok", "failed", "invalid"]
)
def test_a_trial_reads_as_it_was_written(path, outcome):
    trial = closed_trial(outcome=outcome, log="é\x1b[31m\n")
    gauges = {"established": 4, "pressure_cpu_some_us": 0}
    trial = replace(
        trial,
        samples=tuple(replace(sample, gauges=gauges) for sample in trial.samples),
        threads=(ThreadUsage(7, 8, "worker", 12),),
        facts=TrialFacts(strays=1, free={"network": "isolated"}),
    )
    with create(path, plan_of(WORKLOAD), Fingerprint()) as writer:
        writer.append(trial)
    with open_archive(path) as archive:
        (record,) = archive.trials()
    assert record.trial == trial


def test_a_cell_beside_the_grid_is_read_by_its_role(path):
    plan = plan_of(WORKLOAD)
    cell = replace(plan.cells[0], id=5, engine=EngineChoice("wrk"))
    with create(path, plan, Fingerprint()) as writer:
        writer.record_cell(cell, TrialRole.CROSS_CHECK)
    with open_archive(path) as archive:
        assert archive.cells() == plan.cells
        assert archive.cells(TrialRole.CROSS_CHECK) == (cell,)


def test_an_open_loop_recording_reads_as_it_was_written(path):
    cell = Cell(
        1,
        build.subject("gunicorn+falcon-hello"),
        build.Workload(OpenLoop(10), build.DurationStop(build.SECOND)),
    )
    trial = build.trial(cell, 0, 0, [5] * 40, errors={"bad_status": {"503": 2}, "timed_out": 1}, censored=[9])
    with create(path, plan_of(WORKLOAD), Fingerprint()) as writer:
        writer.append(trial)
    with open_archive(path) as archive:
        assert next(archive.trials()).trial == trial


def test_subjects_read_as_they_were_written_and_are_replaced_by_name(path):
    first = SubjectRecord("a", unavailable="no compiler")
    known = (SandboxFacts(Network.HOST, free={"later": 1}), build.declared(backlog=5))
    second = SubjectRecord("a", "1", "CPython", {"x": "1"}, "d", {"workers": 2}, "cmd", *known)
    with create(path, plan_of(WORKLOAD), Fingerprint()) as writer:
        writer.record_subject(first)
        writer.record_subject(second)
    with open_archive(path) as archive:
        assert archive.subjects() == {"a": second}


def test_results_are_never_overwritten(path):
    path.write_text("mine")
    with pytest.raises(ArchiveError, match="exists already"):
        create(path, plan_of(WORKLOAD), Fingerprint())
    assert path.read_text() == "mine"


def test_a_run_is_interrupted_until_it_finishes_and_a_resumed_study_has_two(path):
    create(path, plan_of(WORKLOAD), Fingerprint()).close()
    with resume(path, Fingerprint({"again": True})) as writer:
        writer.append(closed_trial())
        writer.finish()
    with open_archive(path) as archive:
        assert [run.status for run in archive.runs()] == [RunStatus.INTERRUPTED, RunStatus.FINISHED]
        assert [record.run_id for record in archive.trials()] == [2]


def test_an_archive_is_never_seen_without_a_run(path, monkeypatch):
    # It is killed as soon as its plan is on the disk.
    def killed(_database):
        raise KeyboardInterrupt

    monkeypatch.setattr("prony.archive.writer._durable", killed)
    with pytest.raises(KeyboardInterrupt):
        create(path, plan_of(WORKLOAD), Fingerprint({"kernel": "6"}))
    with open_archive(path) as archive:
        assert [run.fingerprint for run in archive.runs()] == [Fingerprint({"kernel": "6"})]


def test_what_is_learnt_of_the_machine_at_the_end_joins_what_was_known_and_is_of_its_own_run(path):
    create(path, plan_of(WORKLOAD), Fingerprint({"kernel_log": None, "cpu": 2})).close()
    with resume(path, Fingerprint({"kernel_log": None, "cpu": 4})) as writer:
        writer.add_to_fingerprint({"kernel_log": {"messages": []}})
    with open_archive(path) as archive:
        assert [run.fingerprint for run in archive.runs()] == [
            Fingerprint({"kernel_log": None, "cpu": 2}),
            Fingerprint({"kernel_log": {"messages": []}, "cpu": 4}),
        ]


def test_a_trial_of_an_unknown_cell_is_refused_and_leaves_nothing(path):
    with create(path, plan_of(WORKLOAD), Fingerprint()) as writer:
        stray = build.trial(
            Cell(99, build.subject("a+b"), build.Workload(OpenLoop(1), CountStop(1))),
            0,
            0,
            [],
            outcome=Failed("start", "x"),
        )
        with pytest.raises(ArchiveError):
            writer.append(stray)
        writer.append(closed_trial())
    with open_archive(path) as archive:
        assert len(list(archive.trials())) == 1


def test_an_archive_that_is_being_written_can_be_read(path):
    with create(path, plan_of(WORKLOAD), Fingerprint()) as writer:
        writer.append(closed_trial())
        with open_archive(path) as archive:
            assert len(list(archive.trials())) == 1
        writer.append(closed_trial(1))


WRITER = """
import sys
sys.path[:0] = sys.argv[2:]
import histograms
histograms.stand_in_for_the_engine()
from pathlib import Path
from prony.archive import create
from prony.model.facts import Fingerprint
from test_archive import WORKLOAD, closed_trial, plan_of
writer = create(Path(sys.argv[1]), plan_of(WORKLOAD), Fingerprint())
trial = closed_trial()
while True:
    print(writer.append(trial), flush=True)
"""


@pytest.mark.parametrize("seed", range(6))
def test_a_writer_killed_at_any_moment_loses_at_most_the_running_trial(path, seed):
    here = Path(__file__).parent
    folders = [str(here.parents[1] / "python"), str(here.parent), str(here)]
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path), *folders], stdout=subprocess.PIPE)
    first = writer.stdout.readline()
    time.sleep(random.Random(seed).uniform(0.0, 0.15))
    os.kill(writer.pid, signal.SIGKILL)
    appended = [int(line) for line in (first + writer.stdout.read()).split(b"\n") if line]
    writer.wait()
    writer.stdout.close()
    with open_archive(path) as archive:
        stored = [record.id for record in archive.trials()]
    assert stored[: len(appended)] == appended
    assert len(stored) - len(appended) <= 1


HALF_A_TRANSACTION = """
import os, sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("PRAGMA cache_size=1")  # so that pages are written before the commit
database.execute("BEGIN")
database.execute("DELETE FROM distribution")
database.execute("CREATE TABLE x (y)")
database.executemany("INSERT INTO x VALUES (?)", [("z" * 3000,)] * 500)
os._exit(9)
"""


def test_a_transaction_left_half_done_is_rolled_back_by_the_next_reader(path, tmp_path):
    with create(path, plan_of(WORKLOAD), Fingerprint()) as writer:
        writer.append(closed_trial())
    subprocess.run([sys.executable, "-c", HALF_A_TRANSACTION, str(path)], check=False)
    assert path.with_name("a.prony-journal").exists()
    with open_archive(path) as archive:
        assert next(archive.trials()).trial == closed_trial()


def test_the_journal_is_a_rollback_journal(path):
    create(path, plan_of(WORKLOAD), Fingerprint()).close()
    database = sqlite3.connect(path)
    assert database.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    database.close()


def test_slices_are_added_to_the_last_attempt_at_a_cell(path):
    slices = [Slice(n, 1, 2, 3, 4, 5, 6, 7, 8, None if n else 9, 10, 11, 12, counts=not n) for n in range(2)]
    with create(path, plan_of(WORKLOAD), Fingerprint()) as writer:
        writer.append(closed_trial(attempt=0))
        writer.append(closed_trial(attempt=1))
        writer.append(closed_trial(block=1))
        writer.append_slices(0, {1: slices, 2: slices})
    with open_archive(path) as archive:
        assert [one.trial.slices for one in archive.trials()] == [(), tuple(slices), ()]
