"""The samples of a very long trial are thinned, so that its archive can be read."""

from dataclasses import replace
from functools import partial

from cells import cell_of
from golden import build
from prony.archive import create, open_archive
from prony.archive.caps import MOST_ROWS_OF_A_TRIAL, thinned
from prony.model.address import AddressKind
from prony.model.facts import Fingerprint, TrialEvent
from prony.model.observation import ListenerUsage, Phase, ThreadUsage
from prony.model.plan import Plan
from prony.model.workload import OpenLoop

CELL = cell_of("a+hello", OpenLoop(1000))
TRIAL = build.trial(CELL, 0, 0, [1_000_000] * 2000)


def long(count):
    """A trial of so many samples, the first and the last of which are not of the window."""
    one = TRIAL.samples[0]
    phases = [Phase.IDLE, *[Phase.WINDOW] * (count - 2), Phase.DRAIN]
    samples = (replace(one, monotonic_ns=k, phase=phase) for k, phase in enumerate(phases))
    return replace(TRIAL, samples=tuple(samples))


def test_a_trial_that_fits_stays_as_it_is():
    assert thinned(TRIAL) is TRIAL


def test_of_one_that_does_not_every_so_many_are_kept_with_the_ends_of_each_phase():
    each = len(TRIAL.samples[0].processes)
    most = {**MOST_ROWS_OF_A_TRIAL, "process_sample": 45 * each}
    found = thinned(long(100), most)
    assert [sample.monotonic_ns for sample in found.samples] == [0, 1, *range(3, 98, 3), 98, 99]
    assert found.facts.free["one_sample_in"] == 3


def test_of_too_many_threads_the_busiest_are_kept_and_of_events_the_first():
    threads = tuple(ThreadUsage(1, tid, "worker", cpu_ns) for tid, cpu_ns in enumerate((5, 9, 7)))
    events = tuple(TrialEvent("probe", at) for at in range(3))
    found = thinned(
        replace(TRIAL, threads=threads, events=events), {**MOST_ROWS_OF_A_TRIAL, "thread": 2, "event": 1}
    )
    assert ([one.cpu_ns for one in found.threads], found.events) == ([9, 7], events[:1])
    assert (found.facts.free["threads_left_out"], found.facts.free["events_left_out"]) == (1, 2)


def test_what_a_writer_stores_a_reader_takes(tmp_path, monkeypatch):
    caps = {**MOST_ROWS_OF_A_TRIAL, "sample": 50}
    monkeypatch.setattr("prony.archive.rows.MOST_ROWS_OF_A_TRIAL", caps)
    monkeypatch.setattr("prony.archive.writer.thinned", partial(thinned, most=caps))
    with create(tmp_path / "a.prony", Plan("a", "", "", "quick", (CELL,), 1, 1), Fingerprint()) as writer:
        writer.append(long(100))
    with open_archive(tmp_path / "a.prony") as archive:
        (record,) = archive.trials()
    assert len(record.trial.samples) <= 50
    assert record.trial.facts.free["one_sample_in"] == 3


def test_a_subject_cannot_make_its_archive_unreadable(tmp_path):
    """It listens as often as it likes, and has any command line; what is no text takes three bytes."""
    sample = TRIAL.samples[0]
    named = replace(sample.processes[0], command="\ufffd" * 2**21)
    sockets = (ListenerUsage(None, AddressKind.TCP4, f"127.0.0.1:{k}", k, 0, 1, 3) for k in range(20_000))
    hostile = replace(
        TRIAL,
        samples=(replace(sample, processes=(named,)), *TRIAL.samples[1:]),
        facts=replace(TRIAL.facts, listeners=tuple(sockets)),
    )
    with create(tmp_path / "a.prony", Plan("a", "", "", "quick", (CELL,), 1, 1), Fingerprint()) as writer:
        writer.append(hostile)
    with open_archive(tmp_path / "a.prony") as archive:
        (record,) = archive.trials()
    assert record.trial.facts.free["listeners_left_out"] == 19_000
    assert record.trial.samples[0].processes[0].command == "\ufffd" * 2**16
    assert record.trial.recording == TRIAL.recording
