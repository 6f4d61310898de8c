"""A server that shares its CPUs with the generator has all of them, and what the generator takes is known."""

import os

import pytest

from prony.archive import open_archive
from prony.core.errors import EngineError
from prony.machine.cpus import available_cpus
from prony.model.sandbox import Placement
from prony.model.trial import TrialRole
from prony.model.workload import ClosedLoop, CountStop
from prony.sandbox.placement import place
from prony.study.reference_load import calibrated_sharing, drive, reference_server

pytestmark = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
CPUS = tuple(sorted(os.sched_getaffinity(0)))


class Listener:
    def notice(self, text):
        """Hear what is measured."""


def test_the_server_has_every_cpu_and_the_generator_the_last(prony, folder):
    done = prony(
        *("run", "--app", "hello", "--servers", "wsgiref", "--share-cpus", "--force", "--no-calibration"),
        *("-c", "2", "--duration", "500ms", "--warmup", "100ms", "--repeats", "1", "--no-html"),
        *("--out", "out.prony"),
        timeout_s=180,
    )
    assert done.status == 0, done.err
    with open_archive(folder / "out.prony") as archive:
        known = [record.trial for record in archive.trials()]
    trial = next(one for one in known if one.role is TrialRole.SUBJECT and one.counters)
    assert trial.placement == Placement(CPUS, CPUS[-1:], shared=True)
    assert trial.facts.strays == 0
    assert trial.counters["generator.taken_ns"] >= trial.counters["prony.cpu_ns"] > 0


def test_the_loss_is_at_least_what_the_generator_used_and_not_many_times_as_much():
    assert 1 <= calibrated_sharing(place(available_cpus(), share=True), Listener()) < 3


def test_where_it_cannot_be_measured_twice_the_generators_time_is_taken_and_said(monkeypatch):
    def absent(*_):
        raise EngineError("no engine")

    said = []
    monkeypatch.setattr("prony.study.reference_load.drive", absent)
    monkeypatch.setattr(Listener, "notice", lambda _, text: said.append(text))
    assert calibrated_sharing(place(available_cpus(), share=True), Listener()) == 2.0
    assert said[-1] == "not measured: no engine; twice its own CPU time is taken for it"


def test_known_work_takes_a_threads_cpu_time_and_no_more_beside_others():
    with reference_server(CPUS[-1:], "--work", "2ms") as server:
        found = drive(Placement(CPUS, CPUS[-1:], shared=True), server, ClosedLoop(2), CountStop(100))
    assert found.completed.ok == 100
    length_ns = found.window.length_ns
    assert length_ns >= 100 * 2_000_000
