"""One measurement with sandbox and engine made of paper: the order of events, and every way to go wrong."""

import os
from pathlib import Path
from types import MappingProxyType

import pytest

from prony.core.errors import EngineError, HostError, SubjectError
from prony.model.address import Address
from prony.model.exchange import Check, Contract, Request
from prony.model.facts import HotCode
from prony.model.launch import Launch
from prony.model.observation import LogTail, Phase
from prony.model.plan import Cell
from prony.model.sandbox import EngineSeat, Network, Placement, SandboxFacts
from prony.model.subject import App, Interface, Subject
from prony.model.trial import Failed, Invalid, Ok, TrialRole
from prony.model.workload import ClosedLoop, DurationStop, Workload
from prony.plan.order import Position
from prony.sandbox.cgroup.types import Counters
from prony.sandbox.pipe import StopReport
from prony.sandbox.watch.processes import ProcessMonitor
from prony.study.trial import Task, run_trial
from recordings import recording_of

ADDRESS = Address("127.0.0.1", 8000)
CONTRACT = Contract((Check(Request(path="/ready")),))
PLACEMENT = Placement((0,), (0,), shared=True)
LAUNCH = Launch(("serve", "--port", "8000"), ADDRESS)
WORKLOAD = Workload(ClosedLoop(1), DurationStop(1), Request(path="/load"))
BAD_LITTLE = {"in_flight_integral_ns": 10**9, "sojourn_sum_ns": 2 * 10**9, "residual": -0.5}


def recording(*, interrupted=False, little=None):
    return recording_of(
        window={"interrupted": interrupted},
        little=little or {"in_flight_integral_ns": 10**9, "sojourn_sum_ns": 10**9, "residual": 0.0},
        account={"scheduled": 1, "ok": 1, "bad_status": {}},
    )


@pytest.fixture(autouse=True)
def a_quiet_machine(monkeypatch):
    """What other programs and guests of this machine do meanwhile is no part of these tests."""
    monkeypatch.setattr("prony.study.trial.EnvironmentCounters.deltas", lambda _: ({}, {}))


class Bench:
    """Sandbox, subject and engine in one, each step of which is written down and may fail."""

    address, seat = ADDRESS, EngineSeat(cpus=(0,))
    tree_pid = network_pid = os.getpid()
    pids = MappingProxyType({"server": os.getpid()})
    facts = SandboxFacts(Network.HOST, False, "me")
    folder = Path("/nowhere")
    counted = MappingProxyType({})

    def __init__(self, fail=None, *, broken=None, died=None, result=None):
        self.steps = []
        self.left = 0
        self._fail = fail or {}
        self._broken, self._died = broken, died
        self._result = recording() if result is None else result

    def step(self, name):
        self.steps.append(name)
        if name in self._fail:
            raise self._fail[name]

    # --- a Sandbox
    def folder_for(self, name):
        return self.folder

    def free_port(self, random=None):
        return ADDRESS.port

    def start(self, launch, placement):
        assert (launch, placement) == (LAUNCH, PLACEMENT)
        self.step("start")
        return self

    # --- a RunningSubject
    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.stop()

    def wait_until_ready(self, request=None):
        assert request == WORKLOAD.request
        self.step("ready")
        return 1

    def verify(self, contract):
        assert contract is CONTRACT
        self.step("verify")
        return self._broken

    def strays(self, placement):
        return ()

    def counters(self):
        return self.counted

    def exit_reason(self):
        self.step("alive?")
        return self._died

    def log(self):
        self.step("log")
        return LogTail("last words")

    def stop(self):
        # A second call returns the first one's report.
        if "stop" not in self.steps:
            self.step("stop")
        return StopReport("ended", 0.0, left=self.left)

    # --- an Engine
    def run(self, workload, address, seat, on_event):
        assert (workload, address, seat) == (WORKLOAD, ADDRESS, self.seat)
        self.step("load")
        for event in ("started", "window_open", "progress", "window_close"):
            on_event({"event": event, "monotonic_ns": 1})
        self.step("loaded")
        return self._result

    def cancel(self):
        pass


def trial_of(bench, on_event=lambda event: None):
    return stay_of(bench, on_event).trial


def stay_of(bench, on_event=lambda event: None, role=TrialRole.PILOT, block=1, **others):
    app = App("hello", "Hello", "/apps/hello", {Interface.WSGI: "hello:app"}, contract=CONTRACT)
    subject = Subject("wsgiref+hello", "wsgiref", app, Interface.WSGI)
    task = Task(
        cell=Cell(3, subject, WORKLOAD),
        position=Position(block=block, position=2, attempt=4, role=role),
        launch=LAUNCH,
        contract=CONTRACT,
        sandbox=bench,
        engine=bench,
        placement=PLACEMENT,
        nuisances={"port": "8000"},
        **others,
    )
    return run_trial(task, on_event)


# --- when all goes well -----------------------------------------------------------------------------------


def test_the_steps_come_in_their_order():
    bench = Bench()
    trial_of(bench)
    assert bench.steps == ["start", "ready", "verify", "load", "loaded", "alive?", "log", "stop"]


def test_a_trial_that_nobody_watches_has_a_recording_alone():
    bench, heard = Bench(), []
    trial = stay_of(bench, heard.append, is_watched=False).trial
    assert bench.steps == ["start", "ready", "verify", "load", "loaded", "alive?", "log", "stop"]
    assert (trial.outcome, trial.recording) == (Ok(), recording())
    assert (trial.samples, trial.threads, trial.events) == ((), (), ())
    assert [event["event"] for event in heard] == ["started", "window_open", "progress", "window_close"]


@pytest.mark.parametrize(
    ("role", "is_asked"),
    [(TrialRole.SUBJECT, True), (TrialRole.CONFIRMATION, True), (TrialRole.FIND_RATE, False)],
)
def test_one_connection_asks_after_the_window_of_what_is_diagnosed(monkeypatch, role, is_asked):
    bench = Bench()

    def alone(engine, cell, loaded, where):
        bench.step("alone")
        assert (engine, loaded, where) == (bench, recording(), (ADDRESS, bench.seat))
        return {"alone.requests": 9}

    monkeypatch.setattr("prony.study.trial.alone", alone)
    trial = stay_of(bench, role=role).trial
    assert trial.counters.get("alone.requests") == (9 if is_asked else None)
    rest = ["alone"] if is_asked else []
    assert bench.steps == ["start", "ready", "verify", "load", "loaded", "alive?", *rest, "log", "stop"]


@pytest.mark.parametrize(
    ("role", "block", "is_looked_at"),
    [(TrialRole.SUBJECT, 0, True), (TrialRole.SUBJECT, 1, False), (TrialRole.CONFIRMATION, 0, False)],
)
def test_the_code_of_busy_processes_is_looked_at_last_in_the_first_block(
    monkeypatch, role, block, is_looked_at
):
    bench, code = Bench(), HotCode(40)

    def profiled(engine, cell, loaded, subject, threads):
        bench.step("profiled")
        assert (engine, loaded, subject, threads) == (bench, recording(), bench, [])
        return code

    monkeypatch.setattr("prony.study.trial.alone", lambda *_: {})
    monkeypatch.setattr("prony.study.trial.busy_processes", lambda _, cpus: (7,) if cpus == 1 else ())
    monkeypatch.setattr("prony.study.trial.profiled", profiled)
    trial = stay_of(bench, role=role, block=block).trial
    assert trial.facts.code == (code if is_looked_at else None)
    assert bench.steps[-3:] == ["profiled" if is_looked_at else "alive?", "log", "stop"]


def test_how_a_subject_began_and_ended_comes_with_its_trial():
    stay = stay_of(Bench())
    assert (stay.ready_ns, stay.stopped) == (1, StopReport("ended", 0.0, left=0))
    refused = stay_of(Bench({"start": SubjectError("no")}))
    assert (refused.ready_ns, refused.stopped) == (None, None)
    silent = stay_of(Bench({"ready": SubjectError("no")}))
    assert (silent.ready_ns, silent.stopped) == (None, StopReport("ended", 0.0, left=0))


def test_a_trial_says_what_was_run_where_and_when():
    trial = trial_of(Bench())
    assert (trial.cell_id, trial.block, trial.position, trial.attempt) == (3, 1, 2, 4)
    assert (trial.role, trial.command, trial.placement) == (TrialRole.PILOT, LAUNCH.command, PLACEMENT)
    assert trial.nuisances == {"port": "8000"}
    assert 0 < trial.started_unix_ns <= trial.ended_unix_ns


def test_a_trial_that_ran_its_window_is_ok_with_all_its_evidence():
    trial = trial_of(Bench())
    assert trial.outcome == Ok()
    assert trial.recording == recording()
    assert trial.log == LogTail("last words")
    assert trial.counters
    assert {Phase.WARMUP, Phase.WINDOW, Phase.DRAIN} <= {sample.phase for sample in trial.samples}


def test_the_edges_of_the_window_are_kept_and_all_events_are_passed_on():
    heard = []
    trial = trial_of(Bench(), heard.append)
    assert [event.event for event in trial.events] == ["window_open", "window_close"]
    assert [event["event"] for event in heard] == ["started", "window_open", "progress", "window_close"]


# --- when it does not -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fail", "outcome", "steps"),
    [
        (
            {"start": SubjectError("no such program", log="exec failed")},
            Failed("start", "no such program"),
            "start",
        ),
        (
            {"ready": SubjectError("it ended before it was ready")},
            Failed("start", "it ended before it was ready"),
            "start ready log stop",
        ),
        (
            {"verify": SubjectError("it gives no answer", stage="contract")},
            Failed("contract", "it gives no answer"),
            "start ready verify log stop",
        ),
        ({"start": HostError("no namespace")}, Invalid("no namespace"), "start"),
        (
            {"load": EngineError("it was killed")},
            Invalid("the generator: it was killed"),
            "start ready verify load log stop",
        ),
        (
            {"load": KeyError("event")},
            Invalid("a fault in Prony: KeyError: 'event'"),
            "start ready verify load log stop",
        ),
    ],
)
def test_what_goes_wrong_becomes_the_outcome_and_everything_is_stopped(fail, outcome, steps):
    bench = Bench(fail)
    assert trial_of(bench).outcome == outcome
    assert bench.steps == steps.split()


def test_the_log_of_a_subject_that_never_ran_is_that_of_its_error():
    assert trial_of(Bench({"start": SubjectError("no", log="exec failed")})).log == LogTail("exec failed")


def test_the_log_of_a_subject_that_ran_is_its_own():
    assert trial_of(Bench({"ready": SubjectError("no", log="shorter")})).log == LogTail("last words")


def test_a_broken_contract_ends_a_trial_before_the_load():
    bench = Bench(broken="GET /ready: status 500; expected 200")
    trial = trial_of(bench)
    assert trial.outcome == Failed("contract", "GET /ready: status 500; expected 200")
    assert "load" not in bench.steps
    assert trial.recording is None


def test_a_server_that_died_under_load_has_failed_with_its_recording():
    trial = trial_of(Bench(died="the server exited with status 3"))
    assert trial.outcome == Failed("load", "the server exited with status 3 under load")
    assert trial.recording is not None


@pytest.mark.parametrize(
    ("bench", "outcome"),
    [
        (Bench(), Failed("stop", "it left 2 processes that could not be killed and may still run")),
        (
            Bench(broken="no reply"),
            Failed("contract", "no reply; it left 2 processes that could not be killed and may still run"),
        ),
        (
            Bench({"load": EngineError("lost")}),
            Invalid(
                "the generator: lost; it left 2 processes that could not be killed and may still run",
            ),
        ),
    ],
)
def test_a_trial_that_leaves_processes_says_so_whatever_else_came_of_it(bench, outcome):
    bench.left = 2
    assert trial_of(bench).outcome == outcome


@pytest.mark.quiet
def test_a_generator_that_breaks_off_leaves_what_was_gathered():
    trial = trial_of(Bench({"loaded": EngineError("out of memory")}))
    assert trial.outcome == Invalid("the generator: out of memory")
    assert trial.recording is None
    assert trial.samples
    assert trial.counters


def test_an_interrupted_window_does_not_count():
    assert trial_of(Bench(result=recording(interrupted=True))).outcome == Invalid("interrupted")


def test_ports_that_wait_are_read_when_the_window_is_closed_for_all_else(monkeypatch):
    class Late:
        def open_window(self):
            closed.append("opened")

        def close_window(self):
            closed.append("ports")

        def deltas(self):
            return {"ports.waiting": 7}, {}

    def close(processes, real=ProcessMonitor.close_window):
        real(processes)
        closed.append("processes")

    closed = []
    monkeypatch.setattr("prony.study.trial._waiting_ports", lambda *_: (Late(),))
    monkeypatch.setattr("prony.study.trial.ProcessMonitor.close_window", close)
    assert trial_of(Bench()).counters["ports.waiting"] == 7
    assert closed == ["opened", "processes", "ports"]


def test_figures_that_contradict_each_other_do_not_count():
    outcome = trial_of(Bench(result=recording(little=BAD_LITTLE))).outcome
    assert outcome == Invalid("Little's law is off by -50%: the generator's own figures disagree")


@pytest.mark.parametrize(
    "little",
    [
        {**BAD_LITTLE, "in_flight_integral_ns": 1000},
        {**BAD_LITTLE, "residual": None},
        {**BAD_LITTLE, "residual": 0.09},
    ],
)
def test_too_little_in_flight_or_a_small_residual_says_nothing(little):
    assert trial_of(Bench(result=recording(little=little))).outcome == Ok()


@pytest.mark.parametrize("step", ["start", "ready", "verify", "load", "loaded"])
def test_an_interruption_passes_through_after_everything_is_stopped(step):
    bench = Bench({step: KeyboardInterrupt()})
    with pytest.raises(KeyboardInterrupt):
        trial_of(bench)
    assert step == "start" or bench.steps[-1] == "stop"


def test_a_listener_that_fails_is_a_fault_of_prony_and_stops_the_server():
    def fail(event):
        raise RuntimeError("no screen")

    bench = Bench()
    assert trial_of(bench, fail).outcome == Invalid("a fault in Prony: RuntimeError: no screen")
    assert bench.steps[-1] == "stop"


def test_a_log_that_cannot_be_read_does_not_keep_the_server_running():
    bench = Bench({"log": OSError("gone")})
    assert isinstance(trial_of(bench).outcome, Invalid)
    assert bench.steps[-1] == "stop"


def test_what_the_kernel_killed_for_memory_has_failed_at_its_stage(monkeypatch):
    monkeypatch.setattr(Bench, "counted", {"server": Counters(oom_kills=2)})
    monkeypatch.setattr("prony.study.trial.memory_bytes", lambda: 2 << 30)
    words = (
        "out of memory: the kernel killed 2 processes of the server: no limit was asked for, and Prony's own "
        "ceiling is 2.00 GiB"
    )
    assert trial_of(Bench()).outcome == Failed("load", words)
    ended = SubjectError("the server was killed by SIGKILL before it was ready", stage="start")
    assert trial_of(Bench({"ready": ended})).outcome == Failed("start", words)
