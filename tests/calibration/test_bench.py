"""A trial that nobody watches: the same order of events as a study's, and every end has its outcome."""

from types import SimpleNamespace

import pytest

from prony.calibration import QUICK, USUAL
from prony.calibration.bench import unwatched
from prony.errors import EngineError, HostError, SubjectError
from prony.model.exchange import Request
from prony.model.trial import Failed, Invalid, Ok
from prony.model.workload import ClosedLoop, DurationStop, Workload
from prony.schedule import Position
from recordings import recording_of


class Subject:
    address, seat = "address", "seat"

    def __init__(self, log, silent=None, died=None):
        self._log, self._silent, self._died = log, silent, died

    def __enter__(self):
        self._log.append("start")
        return self

    def __exit__(self, *_):
        self._log.append("stop")

    def wait_until_ready(self, request):
        assert request == Request()
        if self._silent:
            raise SubjectError(self._silent)

    def exit_reason(self):
        return self._died


class Engine:
    def __init__(self, log, error=None):
        self._log, self._error = log, error

    def run(self, workload, address, seat, on_event):
        assert (address, seat) == ("address", "seat")
        self._log.append("load")
        if self._error:
            raise self._error
        on_event({"event": "progress"})
        return recording_of()


def task(log, subject, engine):
    def start(launch, placement):
        if isinstance(subject, Exception):
            raise subject
        return subject

    return SimpleNamespace(
        cell=SimpleNamespace(id=3, workload=Workload(ClosedLoop(1), DurationStop(1))),
        position=Position(2, 3),
        launch=SimpleNamespace(command=("serve",)),
        placement=None,
        sandbox=SimpleNamespace(start=start),
        engine=engine,
    )


@pytest.fixture
def run():
    def run(silent=None, died=None, error=None, refused=None):
        log, events = [], []
        subject = refused or Subject(log, silent, died)
        return unwatched(task(log, subject, Engine(log, error)), events.append), log, events

    return run


def test_a_trial_without_monitors_has_a_recording_and_no_samples(run):
    trial, log, events = run()
    assert (trial.outcome, trial.recording) == (Ok(), recording_of())
    assert (trial.cell_id, trial.block, trial.command) == (3, 2, ("serve",))
    assert (trial.samples, trial.counters, trial.threads) == ((), {}, ())
    assert log == ["start", "load", "stop"]
    assert events == [{"event": "progress"}]
    assert 0 < trial.started_unix_ns <= trial.ended_unix_ns


@pytest.mark.parametrize(
    ("trouble", "outcome"),
    [
        ({"silent": "not ready"}, Failed("start", "not ready")),
        ({"died": "the server exited with status 1"}, Failed("load", "the server exited with status 1")),
        ({"error": EngineError("no port")}, Invalid("the generator: no port")),
        ({"refused": HostError("no namespace")}, Invalid("no namespace")),
    ],
)
def test_what_goes_wrong_is_the_trials_outcome(run, trouble, outcome):
    trial, log, _ = run(**trouble)
    assert trial.outcome == outcome
    assert log.count("start") == log.count("stop")


def test_an_interruption_passes_when_the_server_is_stopped(run):
    log = []
    with pytest.raises(KeyboardInterrupt):
        unwatched(task(log, Subject(log), Engine(log, KeyboardInterrupt())), print)
    assert log == ["start", "load", "stop"]


def test_an_effort_has_enough_blocks_for_a_verdict():
    from prony.analysis.compare import LEAST_BLOCKS

    assert LEAST_BLOCKS <= QUICK.blocks < USUAL.blocks
    assert USUAL.in_words() == "10 blocks of 1.5 s windows"
