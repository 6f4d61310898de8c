"""What limits a subject: the rules of the commonest cases, the bounds, and the one line over the trials."""

from dataclasses import replace

import pytest

from declared import declared
from diagnosis.test_rules import CELL, HEALTHY, answered, findings
from golden import build
from histograms import distribution
from prony.diagnosis import observe
from prony.diagnosis.conclusion import DiagnosisKind, Observed, conclude
from prony.diagnosis.connections import (
    ADD_WORKERS,
    CLOSED_AFTER_EACH,
    CONNECTION_CAP,
    CONNECTS_FILL_CPU,
    RAISE_CONNECTION_CAP,
    STARVED,
    STARVED_BY_SLOTS,
)
from prony.diagnosis.consumption import Consumption, Resource, bounds_of, consumption_of
from prony.diagnosis.cpu_time import ADD_PROCESSES, ONE_CORE_FULL, ONE_THREAD_FULL, THROTTLED
from prony.diagnosis.evidence import Affected, Confidence, Evidence, Finding
from prony.diagnosis.few_at_a_time import PEER_COMPUTES, PEER_FULL
from prony.diagnosis.generator import GENERATOR_BUSY, GENERATOR_KEPT_WAITING
from prony.diagnosis.kinds import Bearing, Symptom
from prony.diagnosis.knobs import Knob, Turned, knob_of
from prony.diagnosis.listen_queue import (
    BACKLOG_CLIPPED,
    CONNECTS_DROPPED,
    HALF_OPEN_QUEUE_FULL,
    QUEUE_FULL,
    QUEUE_OVERFLOWED,
    SOME_QUEUE_OVERFLOWED,
)
from prony.diagnosis.machine import OTHERS_RAN, STOLEN
from prony.diagnosis.memory import KILLED_FOR_MEMORY, WAITED_FOR_MEMORY
from prony.diagnosis.rules import PRECEDENCE
from prony.diagnosis.shared import KEEP_ALIVE
from prony.diagnosis.started_under_load import READ_LOG_FOR_LIMITS, RESTARTED
from prony.diagnosis.time_spent import ThreadState, thread_time
from prony.diagnosis.used_up import TRACKING_FULL
from prony.diagnosis.waiting import ADD_THREADS, DISK_WAITED, DOWNSTREAM_BUSY, SLOTS_BUSY
from prony.model.exchange import Request
from prony.model.facts import CodeKind, DeclaredFacts, FrontendFacts, HotCode, HotSpot, SubjectFacts
from prony.model.json_codec import encode
from prony.model.observation import Phase, Sample, ThreadUsage
from prony.model.sandbox import Placement
from prony.model.trial import Failed, SubjectRecord
from prony.model.workload import ClosedLoop, OpenLoop, RateStage
from prony.report.diagnoses import diagnosis_words
from prony.report.why import code_blocks
from recordings import with_parts

SECOND = build.SECOND
FACTS = {
    "concurrency": {"processes": "{workers}", "slots": "{workers}*{threads}"},
    "backlog": {"value": "{backlog}"},
}
ENTRY = {
    "server": {"name": "gunicorn", "language": "python", "facts": FACTS},
    "settings": {"workers": 1, "threads": 4, "backlog": 2048},
}


def record(slots=4, processes=1, entry=ENTRY, **facts):
    declared = DeclaredFacts(processes=processes, slots=slots)
    return SubjectRecord("a+b", facts=SubjectFacts(declared, entry=entry, **facts))


def loaded(in_flight=50.0, cores=0.04, cpus=(0,), cell=CELL, **parts):
    """A trial of one second, with so many requests open at a time and so much CPU used."""
    trial = build.trial(cell, 0, 0, [1_000_000] * 40)
    threads = parts.pop("threads", [])
    generator = {"threads": [worker(share) for share in threads]} if threads else {}
    little = {"in_flight_integral_ns": round(in_flight * SECOND)}
    recording = with_parts(trial.recording, little=little, generator=generator, **parts)
    counters = {"cgroup.server.cpu_ns": round(cores * SECOND)}
    return replace(trial, recording=recording, counters=counters, placement=Placement(cpus, (9,)))


def worker(share):
    return {"cpu": 1, "user_ns": round(share * SECOND), "system_ns": 0, "spin_ns": 0, "run_queue_ns": 0}


def rules(trial, subject=None, cell=CELL):
    return [found.rule for found in observe(Evidence(cell, trial, subject or record())).findings]


def concluded(*trials, subject=None, cell=CELL):
    return conclude([observe(Evidence(cell, trial, subject or record())) for trial in trials])


def line(found):
    return str(diagnosis_words([(found, "")]))


# --- all threads asleep -----------------------------------------------------------------------------------


def test_slots_that_are_all_busy_while_the_cpu_is_idle_wait_for_something_else():
    (found,) = findings(loaded(), subject=record())
    assert (found.kind, found.confidence) == (SLOTS_BUSY, Confidence.CERTAIN)
    assert found.numbers["held_ns"] == pytest.approx(100_000_000)


@pytest.mark.parametrize(
    ("generator", "cause", "named"),
    [
        (Confidence.LIKELY, Confidence.CERTAIN, STARVED_BY_SLOTS),
        (Confidence.LIKELY, Confidence.LIKELY, GENERATOR_KEPT_WAITING),
        (Confidence.CERTAIN, Confidence.CERTAIN, GENERATOR_KEPT_WAITING),
    ],
)
def test_a_generator_that_may_have_been_the_limit_steps_back_behind_a_cause_that_is_certain(
    generator, cause, named
):
    kept_waiting = replace(finding(GENERATOR_KEPT_WAITING, generator), affected=Affected.ALL)
    found = conclude([observed(kept_waiting, finding(STARVED_BY_SLOTS, cause))])
    assert found.cause_kind is named


@pytest.mark.parametrize("core", [ONE_THREAD_FULL, ONE_CORE_FULL])
def test_a_generator_that_may_have_been_the_limit_steps_back_behind_a_core_that_is_full(core):
    kept_waiting = replace(finding(GENERATOR_KEPT_WAITING, Confidence.LIKELY), affected=Affected.ALL)
    assert conclude([observed(kept_waiting, finding(core, Confidence.LIKELY))]).cause_kind is core


@pytest.mark.parametrize(("cores", "kind"), [(0.98, DiagnosisKind.CPU), (0.96, DiagnosisKind.CAUSE)])
def test_a_generator_was_no_limit_of_a_server_whose_cpu_is_full(cores, kind):
    usage = observe(Evidence(CELL, loaded(cores=cores), record())).usage
    busy = replace(finding(GENERATOR_KEPT_WAITING), affected=Affected.ALL)
    assert conclude([Observed((busy,), usage)]).kind is kind


def test_threads_that_mostly_wait_for_requests_are_only_likely_all_busy():
    trial = loaded()
    looks = {"threads.looks": 100, "threads.accept": 90, "threads.awake": 10}
    (found,) = findings(replace(trial, counters=trial.counters | looks), subject=record())
    assert (found.kind, found.confidence) == (SLOTS_BUSY, Confidence.LIKELY)


def test_the_setting_that_gives_more_slots_is_named_as_the_server_calls_it():
    (found,) = findings(loaded(), subject=record())
    assert found.knob == Knob("gunicorn", "threads", 4)


@pytest.mark.parametrize(
    ("trial", "subject"),
    [
        (loaded(in_flight=4), record()),
        (loaded(cores=0.8), record()),
        (loaded(), record(slots=None)),
        (loaded(threads=[0.8]), record()),
        (
            replace(loaded(), counters={"cgroup.server.cpu_ns": 1, "ListenOverflows": 0}, placement=None),
            record(),
        ),
    ],
    ids=[
        "as many requests as slots",
        "its CPU is busy",
        "no fixed slots",
        "a busy generator",
        "no known CPUs",
    ],
)
def test_slots_are_not_blamed_when_something_else_explains_what_is_open(trial, subject):
    assert rules(trial, subject) == []


@pytest.mark.parametrize(
    "counters",
    [
        {"threads.queue_ns": SECOND},
        {"cgroup.server.cpu_stalled_ns": SECOND // 2},
        {"threads.queue_ns": SECOND, "cgroup.server.cpu_stalled_ns": 0},
    ],
    ids=["its threads were ready", "its group was", "threads prevail"],
)
def test_a_server_that_gets_no_cpu_waits_for_that_and_no_slot_is_blamed(counters):
    trial = loaded(cores=0.19)
    starved = replace(trial, counters=trial.counters | counters)
    found = concluded(starved)
    assert found.kind is DiagnosisKind.UNKNOWN
    assert Resource.CPU not in found.ruled_out


def test_a_few_ready_threads_of_many_that_sleep_change_nothing():
    trial = loaded()
    asleep = replace(trial, counters=trial.counters | {"threads.queue_ns": SECOND // 4})
    assert concluded(asleep).cause_kind is SLOTS_BUSY


@pytest.mark.parametrize(
    ("kind", "share", "cause"),
    [
        (OTHERS_RAN, 0.89, OTHERS_RAN),
        (OTHERS_RAN, 0.1, None),
        (STOLEN, 0.3, STOLEN),
        (STOLEN, 0.03, None),
    ],
)
def test_others_on_the_cpus_are_the_cause_only_where_they_had_much_of_them(kind, share, cause):
    assert conclude([observed(finding(kind, share=share))]).cause_kind is cause


def test_a_server_with_one_thread_in_each_worker_is_advised_more_workers():
    sync = {**ENTRY, "settings": {"workers": 1, "threads": 1, "backlog": 2048}}
    (found,) = findings(loaded(), subject=record(slots=1, entry=sync))
    assert found.knob.setting == "workers"


def looked_at(trial, **looks):
    counters = {f"threads.{name}": count for name, count in looks.items()}
    return replace(trial, counters=trial.counters | {"threads.looks": sum(looks.values())} | counters)


@pytest.mark.parametrize(
    ("looks", "names"),
    [
        ({"sleep": 80, "events": 20}, {"waits": "a sleep"}),
        ({"sleep": 40, "socket": 40, "awake": 20}, {}),
        ({"awake": 90, "sleep": 10}, {}),
        ({}, {}),
    ],
    ids=["mostly asleep", "nothing stands out", "ready to run", "not watched"],
)
def test_what_busy_slots_wait_for_is_named_where_their_threads_show_it(looks, names):
    (found,) = findings(looked_at(loaded(), **looks), subject=record())
    assert found.names == names


def test_the_shares_of_the_threads_time_add_up_and_the_schedulers_count_prevails():
    counted = {"threads.run_ns": 10, "threads.queue_ns": 20, "threads.alive_ns": 100}
    time = thread_time(looked_at(loaded(), sleep=3, socket=1, awake=6).counters | counted)
    assert time == {
        ThreadState.RUNNING: pytest.approx(0.1),
        ThreadState.READY: pytest.approx(0.2),
        ThreadState.SLEEP: pytest.approx(0.525),
        ThreadState.SOCKET: pytest.approx(0.175),
    }


def test_threads_that_no_look_found_asleep_ran_all_the_time():
    counted = {"threads.run_ns": 50, "threads.queue_ns": 20, "threads.alive_ns": 100}
    time = thread_time(looked_at(loaded(), awake=6).counters | counted)
    assert time == {ThreadState.RUNNING: pytest.approx(0.8), ThreadState.READY: pytest.approx(0.2)}


def bar(in_flight, threads=4, **looks):
    counted = {"threads.run_ns": 0, "threads.queue_ns": 0, "threads.alive_ns": threads * SECOND}
    trial = looked_at(loaded(in_flight=in_flight), **looks)
    found = consumption_of(Evidence(CELL, replace(trial, counters=trial.counters | counted), record())).time
    assert sum(found.values()) == pytest.approx(1.0)
    return {state.value: round(share, 3) for state, share in found.items()}


@pytest.mark.parametrize(
    ("in_flight", "looks", "shown"),
    [
        (0.5, {"accept": 4}, {"idle": 1.0}),
        (4, {"accept": 1, "sleep": 3}, {"idle": 0.25, "a sleep": 0.75}),
        (1, {"wait": 3, "events": 1}, {"idle": 0.75, "another thread": 0.188, "events": 0.062}),
        (4, {"wait": 3, "events": 1}, {"another thread": 0.75, "events": 0.25}),
        (9, {"wait": 4}, {"another thread": 1.0}),
        (0.2, {"sleep": 3, "wait": 1}, {"a sleep": 0.75, "idle": 0.25}),
        (2, {"accept": 2, "wait": 2}, {"idle": 0.5, "another thread": 0.5}),
        (1, {"timed_wait": 4}, {"a lock": 1.0}),
        (1, {"timed_wait": 2, "wait": 2}, {"a lock": 0.5, "idle": 0.5}),
    ],
    ids=[
        *(
            "all accept",
            "one accepts",
            "a pool without work",
            "a thread for each request",
            "more than threads",
        ),
        *("asleep is not idle", "who accepts is idle already"),
        *("a convoy before CPython's lock", "a convoy beside a pool without work"),
    ],
)
def test_threads_that_no_request_keeps_busy_are_idle_and_the_bar_adds_up(in_flight, looks, shown):
    assert bar(in_flight, **looks) == shown


def test_who_was_idle_among_threads_that_nobody_counted_is_not_known():
    found = consumption_of(Evidence(CELL, looked_at(loaded(in_flight=0.1), wait=3, accept=1), record())).time
    assert found == {ThreadState.THREAD: 0.75, ThreadState.IDLE: 0.25}


def test_the_time_of_the_threads_is_the_mean_over_the_trials_that_watched_them():
    trials = (looked_at(loaded(), sleep=1), looked_at(loaded(), sleep=1, socket=1), loaded())
    assert concluded(*trials).time == {ThreadState.SLEEP: 0.75, ThreadState.SOCKET: 0.25}


@pytest.mark.parametrize(
    ("cores", "sure"), [(0.98, []), (0.6, [Confidence.LIKELY]), (0.1, [Confidence.CERTAIN])]
)
def test_threads_that_share_one_core_of_several_wait_for_that_and_not_for_more_slots(cores, sure):
    found = findings(loaded(cores=cores, cpus=(0, 1)), subject=record())
    assert [one.confidence for one in found if one.kind is SLOTS_BUSY] == sure


def test_a_process_that_fills_one_core_is_named_and_no_slot_where_it_may_fill_more():
    other = {**ENTRY, "server": {**ENTRY["server"], "language": "go"}}
    trial = loaded(cores=0.98, cpus=(0, 1))
    threads = tuple(ThreadUsage(7, 7 + place, "loop", SECOND // 4) for place in range(4))
    edges = tuple(Sample(at, Phase.WINDOW, (), 0, 0, 0, {}) for at in (0, SECOND))
    full = replace(trial, threads=threads, samples=edges)
    found = [one.kind for one in findings(full, subject=record(entry=other))]
    assert found == [ONE_CORE_FULL]


def test_requests_that_wait_to_be_accepted_keep_no_slot_busy():
    trial = loaded()
    overflowed = replace(trial, counters=trial.counters | {"ListenOverflows": 9})
    assert rules(overflowed) == ["D01"]


def test_a_little_queue_before_a_half_busy_cpu_is_only_likely():
    (found,) = findings(loaded(in_flight=5, cores=0.6), subject=record())
    assert found.confidence is Confidence.LIKELY


# --- more than it can do ----------------------------------------------------------------------------------


FIFTY = build.Workload(OpenLoop(60), build.DurationStop(4 * SECOND))


def offered(ended, due=60, **more):
    """A trial of an open loop: how many requests ended in each second."""
    cell = replace(CELL, workload=FIFTY)
    trial = loaded(cell=cell, **more)
    series = [
        {"second": k, "scheduled": due, "ok": done, "failed": 0, "body_bytes": 0, "latency": None}
        for k, done in enumerate(ended)
    ]
    recording = with_parts(
        trial.recording,
        series=series,
        account=account(trial.recording, scheduled=due * len(ended), ok=sum(ended)),
        completed={"ok": sum(ended), "failed": 0},
    )
    return replace(trial, recording=recording)


def test_a_queue_that_grows_all_the_time_is_more_than_it_can_do():
    found = [one for one in findings(offered([50] * 4), subject=record()) if one.rule == "D41"]
    assert [
        (one.numbers["asked_per_s"], one.numbers["done_per_s"], one.numbers["owed"]) for one in found
    ] == [(60, 50, 40)]


def test_a_rate_that_rises_in_stages_leaves_more_and_more_open_at_a_steady_server():
    cell = replace(
        CELL, workload=replace(FIFTY, loop=replace(FIFTY.loop, stages=(RateStage(SECOND, 6, 60),)))
    )
    found = observe(Evidence(cell, offered([50] * 4), record())).findings
    assert [one.confidence for one in found if one.rule == "D41"] == [Confidence.LIKELY]


def test_a_few_long_pages_leave_requests_open_too():
    trial = offered([50] * 4)
    times = {
        "ok_service": distribution([5_000_000] * 200),
        "censored_service": distribution([3 * SECOND] * 20),
    }
    slow = with_parts(trial.recording, distributions=times, window={"open_ns": 0, "close_ns": 4 * SECOND})
    found = [one for one in findings(replace(trial, recording=slow)) if one.rule == "D41"]
    assert [one.confidence for one in found] == [Confidence.LIKELY]


@pytest.mark.parametrize(("took_s", "sure"), [(3.2, Confidence.LIKELY), (0.5, Confidence.CERTAIN)])
def test_a_page_that_takes_most_of_the_window_may_leave_as_many_open(took_s, sure):
    trial = offered([50] * 4)
    times = {"ok_service": distribution([round(took_s * SECOND)] * 200)}
    slow = with_parts(trial.recording, distributions=times, window={"open_ns": 0, "close_ns": 4 * SECOND})
    found = [one for one in findings(replace(trial, recording=slow)) if one.rule == "D41"]
    assert [one.confidence for one in found] == [sure]


@pytest.mark.parametrize(
    "ended", [[60, 60, 60, 30], [60] * 4, [59] * 4], ids=["a stall", "all", "a few late"]
)
def test_a_rate_that_is_answered_but_for_a_moment_is_not_too_much(ended):
    assert "D41" not in rules(offered(ended))


def test_a_page_that_takes_some_time_keeps_a_queue_open_that_does_not_grow():
    # A page of 200 ms owes twelve of sixty a second at any time.
    assert "D41" not in rules(offered([48, 60, 60, 60]))


def test_a_queue_that_time_outs_keep_from_growing_is_likely_more_than_it_can_do():
    trial = offered([30, 60, 60, 60])
    late = with_parts(trial.recording, account=account(trial.recording, timed_out=60))
    found = [one for one in findings(replace(trial, recording=late)) if one.rule == "D41"]
    assert [one.confidence for one in found] == [Confidence.LIKELY]


def test_a_queue_of_less_than_three_per_cent_of_the_requests_is_not_too_much():
    # 12 of 600 are due at the end of ten seconds.
    tail = {"open_ns": 0, "close_ns": 10 * SECOND}
    trial = offered([59, 59, 59, 59, 59, 59, 59, 59, 58, 58])
    assert "D41" not in rules(replace(trial, recording=with_parts(trial.recording, window=tail)))


def test_a_rate_that_was_not_answered_is_no_rate_that_it_carries():
    assert concluded(offered([60, 60, 60, 30], in_flight=9)).kind is DiagnosisKind.UNKNOWN


def test_a_server_beyond_its_limit_says_what_was_asked_and_what_it_did():
    found = concluded(offered([50] * 4, cores=3.98))
    assert (found.kind, found.overloaded) == (DiagnosisKind.CPU, True)
    assert line(found).endswith("60.0 /s were asked for, it did 50.0 /s")


# --- one request a connection -----------------------------------------------------------------------------


def reconnecting(again, done=40, cell=CELL):
    return loaded(in_flight=1, cell=cell, connections={"reconnects": again})


def test_a_server_that_closes_after_each_reply_is_named():
    assert rules(reconnecting(40)) == ["D12"]


@pytest.mark.parametrize(
    ("done", "cores", "kind"),
    [(6000, 0.95, CONNECTS_FILL_CPU), (4000, 0.95, CLOSED_AFTER_EACH), (6000, 0.9, CLOSED_AFTER_EACH)],
    ids=["a cheap page", "a page that costs more", "a CPU with room"],
)
def test_connects_fill_the_cpu_of_a_server_whose_page_costs_little_more(done, cores, kind):
    trial = loaded(cores=cores, connections={"reconnects": done}, completed={"ok": done, "failed": 0})
    found = next(one for one in findings(trial, subject=record(slots=None)) if one.rule == "D12")
    assert found.kind is kind


def test_clients_that_ask_for_a_new_connection_each_time_get_one():
    cell = replace(CELL, workload=replace(CELL.workload, request=Request(keep_alive=False)))
    assert rules(reconnecting(40, cell=cell), cell=cell) == []


def test_a_few_connections_that_end_are_not_one_for_each_request():
    assert rules(reconnecting(20)) == []


def test_connections_that_the_generator_closed_after_time_outs_are_not_the_servers_doing():
    trial = reconnecting(180)
    slow = with_parts(trial.recording, completed={"ok": 20, "failed": 180})
    assert "D12" not in rules(replace(trial, recording=slow))
    slow = with_parts(trial.recording, completed={"ok": 160, "failed": 20})
    assert "D12" in rules(replace(trial, recording=slow))


def account(recording, **classes):
    return {**encode(recording)["account"], **classes}


def silent(timed_out=10, most=1, without_reply=0, reply_ns=1_000_000):
    recording = build.trial(CELL, 0, 0, [reply_ns] * 200).recording
    recording = answered(without_reply=without_reply, most=most, limited=recording)
    recording = with_parts(recording, account=account(recording, timed_out=timed_out))
    return replace(HEALTHY, recording=recording)


@pytest.mark.parametrize(
    ("trial", "found"),
    [
        (silent(), ["D11"]),
        (silent(timed_out=3), []),
        (silent(most=2), []),
        (silent(timed_out=200, without_reply=5), []),
        (silent(reply_ns=SECOND // 2), []),
    ],
    ids=["silent", "few wait", "a second reply", "slow for most", "slow for all"],
)
def test_connections_that_nobody_reads_after_one_reply_are_named(trial, found):
    assert rules(trial) == found


def test_clients_that_open_a_connection_for_each_request_get_one_reply_on_each():
    closing = replace(CELL.workload.request, keep_alive=False)
    cell = replace(CELL, workload=replace(CELL.workload, request=closing))
    assert rules(silent(), cell=cell) == []


# --- what is used, and what it allows ---------------------------------------------------------------------


def test_the_kernels_count_of_cpu_includes_processes_that_no_sample_shows():
    usage = consumption_of(Evidence(CELL, loaded(cores=0.9), record()))
    assert usage.shares[Resource.CPU] == pytest.approx(0.9)


def test_one_process_of_python_can_fill_one_core_of_two():
    usage = consumption_of(Evidence(CELL, loaded(cores=0.5, cpus=(0, 1)), record()))
    assert (usage.shares[Resource.CPU], usage.shares[Resource.CORES]) == (0.25, 0.5)


def test_a_program_with_threads_of_its_own_can_fill_all_cores():
    other = {**ENTRY, "server": {**ENTRY["server"], "language": "go"}}
    usage = consumption_of(Evidence(CELL, loaded(cpus=(0, 1)), record(entry=other)))
    assert Resource.CORES not in usage.shares


def test_a_quota_is_what_the_cpu_is_measured_against():
    cell = replace(CELL, sandbox=replace(CELL.sandbox, cpu_quota=0.5))
    assert consumption_of(Evidence(cell, loaded(cores=0.25), record())).shares[Resource.CPU] == 0.5


def test_the_nearest_bound_comes_first():
    shares = {Resource.CPU: 0.2, Resource.GENERATOR: 0.5}
    rates = (100, 105, 110, 115, 120)
    bounds = bounds_of([Consumption(rate, float(rate), None, 1.0, shares) for rate in rates])
    assert [(one.resource, one.per_s, one.times) for one in bounds] == [
        (Resource.GENERATOR, pytest.approx(220), pytest.approx(2)),
        (Resource.CPU, pytest.approx(550), pytest.approx(5)),
    ]
    assert bounds[1].low < 550 < bounds[1].high


def test_slots_that_are_busy_with_the_cpu_are_no_bound_of_their_own():
    (bound,) = bounds_of([Consumption(100, 100.0, None, 1.0, {Resource.CPU: 0.2, Resource.SLOTS: 0.22})])
    assert bound.resource is Resource.CPU


def test_a_share_of_a_few_ticks_gives_no_bound():
    assert bounds_of([Consumption(100, 100.0, None, 1.0, {Resource.CPU: 0.01})]) == ()


# --- the one line -----------------------------------------------------------------------------------------


def test_a_cpu_that_is_full_and_nothing_else_is_the_limit_with_what_a_page_costs():
    found = concluded(loaded(cores=0.99), loaded(cores=0.98))
    assert (found.kind, found.confidence) == (DiagnosisKind.CPU, Confidence.CERTAIN)
    # 40 replies in a second.
    assert line(found) == "CPU-bound: 24.6 ms a page; busy 98% of the time"
    assert line(replace(found, page_cpu_ns=None)) == "CPU-bound, busy 98% of the time"


def with_code(code, **parts):
    trial = loaded(**parts)
    return replace(trial, facts=replace(trial.facts, code=code))


CALL = HotSpot(CodeKind.APP, "ssl.create_default_context", "app.py:12", 0.9)
CODE = HotCode(300, {CodeKind.APP: 0.9, CodeKind.LIBRARY: 0.06, CodeKind.SERVER: 0.04}, (CALL,), 0.02)


def test_of_what_a_page_costs_the_hottest_code_is_named_with_the_line_that_calls_it():
    found = concluded(loaded(cores=1.0), with_code(CODE, cores=1.0))
    assert line(found) == (
        "CPU-bound: 25.0 ms a page, of which 22.5 ms in ssl.create_default_context (app.py:12); "
        "busy 100% of the time"
    )
    several = [(found, ""), (replace(found, page_cpu_ns=5e6), "")]
    assert str(diagnosis_words(several)) == "CPU-bound: 5.00 ms to 25.0 ms a page; busy 100% of the time"


def test_a_cause_has_the_code_beside_it():
    found = conclude([Observed((finding(GENERATOR_BUSY, share=0.99),), usage_with(CODE))])
    assert line(found).endswith(
        "; CPU: 25.0 ms a page, of which 22.5 ms in ssl.create_default_context (app.py:12)"
    )


def usage_with(code):
    return Consumption(40, 40.0, None, 9.0, {Resource.CPU: 0.5}, page_cpu_ns=25e6, code=code)


def why_blocks(code):
    found = conclude([Observed((), usage_with(code))])
    return list(code_blocks(found.code, ""))


def test_why_says_whose_code_it_is_what_the_server_needs_and_what_the_look_costs():
    said, table, notes = why_blocks(CODE)
    assert str(said.text) == (
        "Which code uses the CPU, by 300 samples of its stacks after the window: the app 90 %, "
        "its framework and packages 6 %, the server 4 %."
    )
    assert [str(one.text) for one in table.rows[0]] == [
        "ssl.create_default_context",
        "app.py:12",
        "22.5 ms",
        "90 %",
    ]
    assert [str(one) for _, one in notes.items] == [
        "A page costs 25.0 times what the server itself does for it.",
        "The rate fell by 2% while stacks were sampled; no figure above is from then.",
    ]


def test_garbage_collection_is_named_apart():
    found = HotSpot(CodeKind.RUNTIME, "garbage collection", "", 0.3)
    said, table, *_ = why_blocks(HotCode(300, {CodeKind.APP: 0.7, CodeKind.RUNTIME: 0.3}, (found,)))
    assert str(said.text).endswith("the app 70 %, garbage collection 30 %.")
    assert [str(one.text) for one in table.rows[0]][:2] == ["garbage collection", "—"]


def test_too_few_samples_of_the_server_give_no_ratio():
    code = replace(CODE, samples=100)
    assert conclude([Observed((), usage_with(code))]).code.times_server is None


def test_code_that_could_not_be_looked_at_is_named_with_the_reason():
    (said,) = why_blocks(HotCode(missing="`py-spy` is not installed"))
    assert str(said.text) == "Which code uses the CPU is not known: `py-spy` is not installed."


def test_a_cpu_that_is_nearly_full_is_only_likely_the_limit():
    assert concluded(loaded(cores=0.94)).confidence is Confidence.LIKELY


def test_a_cause_is_named_when_more_than_half_of_the_trials_have_it():
    asleep, other = loaded(), loaded(in_flight=1)
    assert concluded(asleep, asleep, other).cause_kind is SLOTS_BUSY
    assert concluded(asleep, other).cause is None


def test_a_cause_is_named_where_nobody_looked_at_the_cpu():
    usage = Consumption(1000, 1000.0, None, 9.0, {})
    cause = finding(GENERATOR_BUSY, share=0.99)
    assert line(conclude([Observed((cause,), usage)])).startswith("limited by the generator: ")


def test_a_cause_beside_a_full_cpu_says_so_only_where_all_that_share_the_line_are_full():
    cause = finding(GENERATOR_BUSY, share=0.99)
    full, idle = (conclude([observed(cause, cpu=share)]) for share in (1.0, 0.3))
    assert "its CPU is full too" in line(full)
    assert "full" not in str(diagnosis_words([(full, ""), (idle, "")]))


def test_a_rate_that_was_kept_is_no_limit_and_the_next_one_is_named():
    found = concluded(offered([60] * 4, in_flight=0.4, cores=1.0))
    assert found.kind is DiagnosisKind.NOT_AT_LIMIT
    assert line(found).startswith(
        "not at its limit, carries at least 60.0 /s; next limit: its CPU, at about 4.0"
    )


def test_fewer_connections_than_slots_wait_for_their_own_replies_only():
    found = concluded(loaded(in_flight=3))
    assert (found.kind, found.confidence) == (DiagnosisKind.NOT_AT_LIMIT, Confidence.LIKELY)


@pytest.mark.parametrize("in_flight", [3.85, 3.99, 4.0])
def test_as_many_connections_as_slots_do_not_show_which_of_them_limits_and_more_do(in_flight):
    found = concluded(loaded(in_flight=in_flight))
    assert found.kind is DiagnosisKind.UNKNOWN
    assert Resource.SLOTS not in found.ruled_out
    assert line(found) == (
        "what limits it is unknown: the load had as many connections as it has workers and threads (4), and "
        "each asks again only after its reply: which of them limits it, twice as many connections show (-c); "
        "ruled out: its CPU (4%), the generator (0%)"
    )
    assert "as many connections" not in line(replace(found, asked_per_s=60.0))


def test_slots_that_are_nearly_all_busy_at_a_fixed_rate_are_not_ruled_out():
    full, some = (concluded(offered([40] * 4, in_flight=busy, cores=1.0)) for busy in (15.7, 12.0))
    assert Resource.SLOTS in some.ruled_out
    assert Resource.SLOTS not in full.ruled_out


@pytest.mark.parametrize(
    "trial", [offered([60] * 4, in_flight=0.4, cores=1.0), loaded(in_flight=3)], ids=["open", "closed"]
)
@pytest.mark.parametrize(
    ("failed", "kind"),
    [(0, DiagnosisKind.NOT_AT_LIMIT), (8, DiagnosisKind.UNKNOWN), (39, DiagnosisKind.UNKNOWN)],
)
def test_a_request_that_fails_is_not_carried(trial, failed, kind):
    completed = {"ok": trial.recording.completed.ok - failed, "failed": failed}
    failing = replace(trial, recording=with_parts(trial.recording, completed=completed))
    assert concluded(failing).kind is kind


def test_what_is_carried_and_what_a_resource_allows_are_valid_replies():
    usage = Consumption(100, 100.0, None, 1.0, {Resource.CPU: 0.5}, failed_per_s=40.0)
    found = conclude([Observed((), usage)])
    assert (found.done_per_s, found.bounds[0].per_s, found.bounds[0].times) == (60.0, 120.0, 2.0)
    nothing = conclude([Observed((), replace(usage, failed_per_s=100.0))])
    assert (nothing.done_per_s, nothing.bounds) == (0.0, ())


def test_without_a_reason_the_limit_is_unknown_and_what_it_is_not_is_listed():
    found = concluded(loaded(), subject=record(slots=None))
    assert (found.kind, found.ruled_out) == (
        DiagnosisKind.UNKNOWN,
        (Resource.CPU, Resource.GENERATOR),
    )
    assert line(found) == "what limits it is unknown; ruled out: its CPU (4%), the generator (0%)"


@pytest.mark.parametrize("change", [{"asked_per_s": 60.0}, {"ruled_out": (Resource.GENERATOR,)}])
def test_more_connections_are_advised_only_in_a_closed_loop_that_leaves_it_idle(change):
    found = concluded(loaded(), subject=record(slots=None))
    assert "-c" not in line(replace(found, **change))


def finding(kind, confidence=Confidence.CERTAIN, **numbers):
    return Finding(kind, confidence, numbers)


def observed(*found, cpu=0.3):
    return Observed(found, Consumption(1000, 1000.0, None, 9.0, {Resource.CPU: cpu}))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (GENERATOR_BUSY, QUEUE_OVERFLOWED),
        (KILLED_FOR_MEMORY, QUEUE_OVERFLOWED),
        (THROTTLED, QUEUE_OVERFLOWED),
        (QUEUE_OVERFLOWED, SLOTS_BUSY),
        (ONE_THREAD_FULL, SLOTS_BUSY),
    ],
)
def test_of_two_causes_the_first_by_precedence_is_named(first, second):
    found = conclude([observed(finding(second, overflows=9), finding(first, overflows=9))])
    assert found.cause_kind is first
    assert [one.finding.kind for one in found.beside] == [second]


@pytest.mark.parametrize("kind", [kind for kind in PRECEDENCE if kind.meaning.bearing is Bearing.LIMITS_IDLE])
def test_a_cause_of_idle_cpus_is_none_where_they_are_full(kind):
    assert conclude([observed(finding(kind, share=0.9), cpu=0.99)]).kind is DiagnosisKind.CPU
    assert conclude([observed(finding(kind, share=0.9), cpu=0.3)]).cause_kind is kind


@pytest.mark.parametrize("kind", [kind for kind in PRECEDENCE if kind.meaning.bearing is Bearing.ADDS])
def test_what_only_adds_is_never_the_cause(kind):
    assert conclude([observed(finding(kind))]).kind is DiagnosisKind.UNKNOWN


def test_what_is_only_possible_is_never_the_cause():
    assert conclude([observed(finding(THROTTLED, Confidence.POSSIBLE))]).cause is None


def cut(asked=2048, given=8):
    return finding(BACKLOG_CLIPPED, asked=asked, given=given)


def overflowed(overflows=90, **numbers):
    return finding(QUEUE_OVERFLOWED, overflows=overflows, **numbers)


@pytest.mark.parametrize(
    ("found", "named"),
    [
        ([cut(), overflowed(limit=8)], True),
        ([cut(asked=16), overflowed(limit=8)], True),
        ([cut(), overflowed(overflows=0.1, limit=8)], False),
        ([cut(), overflowed()], False),
        ([cut(), overflowed(limit=511)], False),
        ([cut(), replace(overflowed(limit=8), names={"process": "frontend"})], False),
        ([cut(asked=9), overflowed(limit=8)], False),
        ([cut(), finding(QUEUE_FULL, longest=9)], False),
    ],
    ids=[
        *("it overflowed", "half of it", "hardly", "some queue", "a queue of another length"),
        *("another process's", "a cut that is hardly one", "it was full, and nobody was turned away"),
    ],
)
def test_a_queue_that_the_kernel_cut_short_is_the_cause_where_that_turned_clients_away(found, named):
    concluded = conclude([observed(*found)])
    assert (concluded.cause_kind is BACKLOG_CLIPPED) is named
    if named:
        assert line(concluded).startswith("limited by a listen queue that the kernel cut short: ")


def test_one_overflow_among_thousands_of_requests_is_not_what_limits():
    assert conclude([observed(finding(QUEUE_OVERFLOWED, overflows=1))]).cause_kind is not None
    usage = Consumption(100_000, 1e5, None, 9.0, {Resource.CPU: 0.3})
    assert conclude([Observed((finding(QUEUE_OVERFLOWED, overflows=1),), usage)]).cause is None


@pytest.mark.parametrize(
    ("levels", "sure"),
    [
        ("certain possible possible", Confidence.POSSIBLE),
        ("possible possible certain", Confidence.POSSIBLE),
        ("possible certain certain", Confidence.CERTAIN),
        ("possible certain likely", Confidence.LIKELY),
        ("certain likely", Confidence.LIKELY),
    ],
)
def test_over_trials_a_finding_is_as_sure_as_in_more_than_half_of_them(levels, sure):
    each = [observed(finding(THROTTLED, Confidence(one))) for one in levels.split()]
    found = conclude(each)
    (one,) = [found.cause] if found.cause else found.beside
    assert (one.finding.confidence, one.trials) == (sure, len(each))
    assert (found.cause is None) is (sure is Confidence.POSSIBLE)


@pytest.mark.parametrize(
    ("overflows", "is_cause"),
    [((1, 900, 900), True), ((900, 1, 1), False), ((900, 900, 1, None, None), False)],
)
def test_what_mattered_in_more_than_half_of_the_trials_is_the_cause(overflows, is_cause):
    usage = Consumption(10_000, 1e4, None, 9.0, {Resource.CPU: 0.3})
    found = [() if one is None else (finding(QUEUE_OVERFLOWED, overflows=one),) for one in overflows]
    assert (conclude([Observed(one, usage) for one in found]).cause is not None) is is_cause


def test_the_numbers_over_trials_are_those_of_the_median_one():
    found = conclude([observed(finding(STOLEN, share=one)) for one in (0.9, 0.2, 0.3)])
    assert (found.cause.finding.numbers["share"], found.cause.trials) == (0.3, 3)


def test_two_findings_of_a_kind_in_one_trial_are_one_trial_and_the_stronger_counts():
    twice = observed(finding(RESTARTED, restarts=1), finding(RESTARTED, restarts=8))
    found = conclude([twice, observed(), observed()])
    assert found.cause is None
    assert [(one.trials, one.finding.numbers) for one in found.beside] == [(1, {"restarts": 8})]


def test_a_subject_without_any_load_has_a_cause_or_nothing_to_say():
    died = build.trial(CELL, 0, 0, [], outcome=Failed("load", "it exited"))
    assert concluded(died) is None
    killed = replace(died, counters={"cgroup.server.oom_kills": 1})
    assert concluded(killed).cause_kind is KILLED_FOR_MEMORY


def test_every_kind_of_finding_has_a_meaning():
    assert set(PRECEDENCE) == declared(Symptom)


# --- settings ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("turned", "setting"),
    [(Turned.PROCESSES, "workers"), (Turned.THREADS, "threads"), (Turned.BACKLOG, "backlog")],
)
def test_a_setting_is_found_where_the_entry_declares_what_it_changes(turned, setting):
    assert knob_of(record().facts, turned).setting == setting


@pytest.mark.parametrize(
    ("turned", "settings", "setting"),
    [
        (Turned.LIFE, {"timeout": 30, "max_requests": 0}, "timeout"),
        (Turned.LIFE, {"timeout": 30, "max_requests": 100}, "max_requests"),
        (Turned.LIFE, {"keepalive_timeout": 5, "timeout": 0}, None),
        (Turned.NO_DELAY, {"no_delay": False}, "no_delay"),
        (Turned.OWN_SOCKETS, {"reuse_port": False}, "reuse_port"),
        (Turned.LOG, {"access_log": True}, "access_log"),
        (Turned.LOG, {"access_log": False}, None),
        (Turned.CONNECTIONS, {"connection_limit": 20}, "connection_limit"),
    ],
)
def test_a_setting_that_nothing_declares_is_found_by_its_name_where_it_can_be_the_reason(
    turned, settings, setting
):
    found = knob_of(record(entry={**ENTRY, "settings": settings}).facts, turned)
    assert (found and found.setting) == setting


KEPT_BY_SETTINGS = [
    {"when": {"if": "keep_alive", "is": False}, "on": False},
    {"when": {"if": "worker_class", "is": "gthread"}, "on": True},
    {"when": None, "on": False},
]


@pytest.mark.parametrize(
    ("settings", "knob"),
    [
        ({"keep_alive": False, "worker_class": "gthread"}, Knob("gunicorn", "keep_alive", False)),
        ({"keep_alive": True, "worker_class": "sync"}, Knob("gunicorn", "worker_class", "sync")),
    ],
)
def test_keep_alive_is_turned_by_what_turns_it_off_or_else_by_what_would_turn_it_on(settings, knob):
    server = {"name": "gunicorn", "facts": {**FACTS, "keep_alive": KEPT_BY_SETTINGS}}
    facts = record(entry={"server": server, "settings": settings}).facts
    assert knob_of(facts, Turned.KEEP_ALIVE) == knob


@pytest.mark.parametrize(
    "entry", [None, {}, {"server": 7}, {"server": {"facts": {"concurrency": [], "backlog": {"value": 5}}}}]
)
def test_an_entry_of_another_shape_has_no_settings(entry):
    assert knob_of(SubjectFacts(entry=entry), Turned.BACKLOG) is None


def test_behind_a_frontend_a_queue_that_no_sample_shows_has_no_setting():
    trial = loaded(cores=0.3)
    overflowed = replace(trial, counters=trial.counters | {"ListenOverflows": 9})
    direct = findings(overflowed, subject=record())
    behind = findings(overflowed, subject=record(frontend=FrontendFacts("nginx")))
    assert (direct[0].knob, behind[0].knob) == (Knob("gunicorn", "backlog", 2048), None)


NGINX = {
    "name": "nginx",
    "facts": {"keep_alive": KEPT_BY_SETTINGS, "concurrency": {"processes": "{workers}"}},
}
BEHIND = record(
    entry={
        "server": {**ENTRY["server"], "facts": {**FACTS, "keep_alive": KEPT_BY_SETTINGS}},
        "settings": {
            "workers": 2,
            "threads": 4,
            "max_requests": 9,
            "keep_alive": False,
            "connection_limit": 9,
        },
        "frontend": NGINX,
        "frontend_settings": {"workers": 3, "keep_alive": False, "worker_connections": 8},
    },
    frontend=FrontendFacts("nginx"),
)


@pytest.mark.parametrize(
    ("kind", "advice", "names", "knob"),
    [
        (RESTARTED, READ_LOG_FOR_LIMITS, {"role": "worker"}, "gunicorn.max_requests"),
        (RESTARTED, READ_LOG_FOR_LIMITS, {"role": "frontend-worker"}, None),
        (ONE_THREAD_FULL, ADD_PROCESSES, {}, "gunicorn.workers"),
        (ONE_THREAD_FULL, ADD_PROCESSES, {"process": "frontend"}, "nginx.workers"),
        (ONE_THREAD_FULL, ADD_PROCESSES, {"process": "database"}, None),
        (CLOSED_AFTER_EACH, KEEP_ALIVE, {}, "nginx.keep_alive"),
        (CONNECTION_CAP, RAISE_CONNECTION_CAP, {}, "nginx.worker_connections"),
        (STARVED, ADD_WORKERS, {}, None),
        (SLOTS_BUSY, ADD_THREADS, {}, "gunicorn.threads"),
    ],
)
def test_a_setting_is_one_of_the_part_that_the_finding_is_about(kind, advice, names, knob, monkeypatch):
    found = Finding(kind, Confidence.LIKELY, names=names, advice=advice)
    monkeypatch.setattr("prony.diagnosis.RULES", {"D00": lambda _: [found]})
    (named,) = findings(HEALTHY, subject=BEHIND)
    assert (named.knob and named.knob.name) == knob


@pytest.mark.parametrize("kind", [HALF_OPEN_QUEUE_FULL, CONNECTS_DROPPED, TRACKING_FULL])
@pytest.mark.parametrize(("dropped", "limits"), [(1, False), (50, True)])
def test_a_drop_among_many_requests_limits_nothing(kind, dropped, limits):
    busy = Consumption(10_000, 10_000.0, None, 9.0, {Resource.CPU: 0.5})
    found = conclude([Observed((finding(kind, dropped=dropped),), busy)])
    assert (found.cause_kind is kind) is limits


FEW_DROPS = [
    (Confidence.CERTAIN, 5, Confidence.CERTAIN, TRACKING_FULL),
    (Confidence.LIKELY, 5, Confidence.CERTAIN, STARVED),
    (Confidence.CERTAIN, 3, Confidence.CERTAIN, STARVED),
    (Confidence.CERTAIN, 5, Confidence.POSSIBLE, None),
]


@pytest.mark.parametrize(("sure", "dropped", "starved", "cause"), FEW_DROPS)
def test_a_few_drops_of_a_full_table_keep_as_many_connections_out_for_good(sure, dropped, starved, cause):
    busy = Consumption(10_000, 10_000.0, None, 9.0, {Resource.CPU: 0.5})
    full = finding(TRACKING_FULL, sure, dropped=dropped)
    out = finding(STARVED, starved, served=6, connections=10)
    assert conclude([Observed((full, out), busy)]).cause_kind is cause


@pytest.mark.parametrize("kind", [DISK_WAITED, OTHERS_RAN, DOWNSTREAM_BUSY])
@pytest.mark.parametrize(
    ("done", "sure", "limits"),
    [
        (100, Confidence.LIKELY, False),
        (100, Confidence.CERTAIN, True),
        (90, Confidence.LIKELY, True),
    ],
)
def test_what_only_idle_cpus_explain_limits_no_server_that_carries_its_rate(kind, done, sure, limits):
    usage = Consumption(done, done, 100.0, 9.0, {Resource.CPU: 0.3})
    found = conclude([Observed((finding(kind, sure, share=0.3),), usage)])
    assert (found.cause_kind is kind) is limits
    assert (found.kind is DiagnosisKind.NOT_AT_LIMIT) is not limits


@pytest.mark.parametrize("kind", [THROTTLED, WAITED_FOR_MEMORY, RESTARTED])
@pytest.mark.parametrize("sure", [Confidence.CERTAIN, Confidence.LIKELY])
def test_what_is_only_likely_so_steps_back_behind_what_is_certain(kind, sure):
    found = conclude([observed(finding(kind, sure), finding(SLOTS_BUSY))])
    assert found.cause_kind is (kind if sure is Confidence.CERTAIN else SLOTS_BUSY)


def test_one_connection_cannot_show_what_a_pool_can_do():
    cell = replace(CELL, workload=replace(CELL.workload, loop=ClosedLoop(1)))
    assert concluded(loaded(in_flight=1, cell=cell), cell=cell).kind is DiagnosisKind.NOT_AT_LIMIT


# --- the next limit ---------------------------------------------------------------------------------------


def at_rate(*shares):
    """Trials that kept up with 100 requests a second, and used so much of the CPU."""
    return [Consumption(100, 100.0, 100.0, 1.0, {Resource.CPU: share}) for share in shares]


def test_the_next_limit_has_the_interval_of_its_trials():
    found = conclude([Observed((), one) for one in at_rate(0.46, 0.47, 0.48, 0.49, 0.5)])
    (bound,) = found.bounds
    assert (bound.times_low, bound.times_high) == pytest.approx((bound.low / 100, bound.high / 100))
    assert line(found).endswith("next limit: its CPU, at about 2.1 times this rate (2.0 to 2.2)")


@pytest.mark.parametrize("shares", [(0.48,), (0.46, 0.48, 0.48, 0.5)])
def test_of_fewer_than_five_trials_the_next_limit_has_no_interval(shares):
    found = conclude([Observed((), one) for one in at_rate(*shares)])
    assert found.bounds[0].times_low is None
    assert line(found).endswith("at about 2.1 times this rate")


def test_a_limit_that_was_not_passed_is_not_below_what_was_carried():
    (bound,) = bounds_of(at_rate(0.4, 0.9, 0.4, 0.9, 0.4))
    assert bound.low < 100 and bound.times_low == 1.0


# --- what says the same ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trials", "kind"),
    [
        ([(QUEUE_OVERFLOWED,), (SOME_QUEUE_OVERFLOWED,)], QUEUE_OVERFLOWED),
        ([(QUEUE_OVERFLOWED,), ()], None),
        ([(QUEUE_OVERFLOWED, SOME_QUEUE_OVERFLOWED), (), ()], None),
        ([(PEER_FULL,), (PEER_COMPUTES,)], PEER_FULL),
    ],
    ids=["perhaps its own", "once", "twice in one trial", "two sides"],
)
def test_what_says_the_same_counts_once_a_trial(trials, kind):
    sure = {SOME_QUEUE_OVERFLOWED: Confidence.POSSIBLE}
    usage = Consumption(10_000, 1e4, None, 9.0, {Resource.CPU: 0.3})
    each = [
        tuple(finding(one, sure.get(one, Confidence.CERTAIN), overflows=900) for one in kinds)
        for kinds in trials
    ]
    found = conclude([Observed(one, usage) for one in each])
    assert found.cause_kind is kind
    assert kind is None or found.confidence is Confidence.LIKELY
