"""Rules that read the monitor's evidence: each fires on its symptom, and not on less."""

from dataclasses import replace

import pytest

from diagnosis.test_rules import CELL, HEALTHY, answered, findings
from golden import build
from prony.diagnosis import diagnose, observe
from prony.diagnosis.conclusion import conclude
from prony.diagnosis.evidence import Confidence, Evidence
from prony.diagnosis.listen_queue import BACKLOG_CLIPPED, QUEUE_OVERFLOWED
from prony.diagnosis.rules import RULES
from prony.model.address import AddressKind
from prony.model.facts import DeclaredFacts, FrontendFacts, SubjectFacts, TrialFacts
from prony.model.observation import ListenerUsage, Phase, ProcessRow, Sample, ThreadUsage
from prony.model.sandbox import Network, Placement, SandboxFacts
from prony.model.trial import Failed, SubjectRecord
from prony.report.findings import finding_words
from recordings import with_parts

SECOND = build.SECOND
FULL = {"listen.server.queued": 6, "listen.server.limit": 5}


def sentence(found):
    """Return what a report says of a finding."""
    return str(finding_words(found, ""))


def row(pid, role="worker", cpu_s=0.0):
    return ProcessRow(pid, 1, role, "server", round(cpu_s * SECOND), 0, 1, 1, 1)


def sample(second, *rows, gauges=None):
    return Sample(second * SECOND, Phase.WINDOW, rows, 0, 0, 0, gauges or {})


def observed(*samples, **more):
    return replace(HEALTHY, samples=samples, **more)


def ids(trial, **kwargs):
    return [found.rule for found in findings(trial, **kwargs)]


# --- queues -----------------------------------------------------------------------------------------------


def test_a_queue_that_was_seen_full_is_told_with_the_limit_that_the_kernel_holds_it_to():
    trial = observed(sample(0), sample(10, gauges=FULL), counters={"ListenOverflows": 9})
    (found,) = findings(
        trial, subject=SubjectRecord("a+b", facts=SubjectFacts(frontend=FrontendFacts("nginx")))
    )
    assert "9 connections arrived when the listen queue of 5 was full" in sentence(found)


def test_a_queue_that_was_seen_full_is_the_servers_own_on_the_hosts_network_too():
    trial = observed(sample(0), sample(10, gauges=FULL), counters={"ListenOverflows": 9})
    (found,) = findings(trial, subject=SubjectRecord("a+b", sandbox=SandboxFacts(Network.HOST)))
    assert found.confidence is Confidence.CERTAIN


def test_of_two_queues_that_may_have_overflowed_none_is_named_and_no_cut_of_one_is_the_cause():
    front = {"listen.frontend.queued": 511, "listen.frontend.limit": 511}
    facts = SubjectFacts(
        DeclaredFacts(backlog=511), FrontendFacts("nginx"), behind_it=DeclaredFacts(backlog=2048)
    )
    subject = SubjectRecord("a+b", facts=facts)
    for gauges, cause in ((FULL, BACKLOG_CLIPPED), (FULL | front, QUEUE_OVERFLOWED)):
        trial = observed(sample(0), sample(10, gauges=gauges), counters={"ListenOverflows": 5000})
        found = conclude([observe(Evidence(CELL, trial, subject))])
        assert found.cause_kind is cause
        told = [one.numbers for one in findings(trial, subject=subject) if one.rule == "D01"]
        assert told == [{"overflows": 5000} | ({"limit": 5} if gauges is FULL else {})]


def test_a_full_queue_is_told_before_it_overflows_and_one_with_room_is_not():
    (found,) = findings(observed(sample(0), sample(10, gauges=FULL)))
    assert (found.rule, found.numbers) == ("D01", {"longest": 6, "limit": 5})
    assert ids(observed(sample(0), sample(10, gauges=FULL | {"listen.server.queued": 5}))) == []


@pytest.mark.parametrize(("asked", "rules"), [(2048, ["D01", "D03"]), (5, ["D01"])])
def test_a_kernel_that_gives_less_than_was_asked_for_is_told(asked, rules):
    trial = observed(sample(0), sample(10, gauges=FULL))
    record = SubjectRecord("a+b", facts=build.declared(backlog=asked))
    assert ids(trial, subject=record) == rules


def listens(kind, address):
    return ListenerUsage(None, kind, address, inode=7, queued_max=0, limit=5, samples=2)


ELSEWHERE = listens(AddressKind.TCP4, "127.0.0.1:9000")
CONTROL = listens(AddressKind.UNIX, "/run/control")


@pytest.mark.parametrize(
    ("network", "more", "also", "limit"),
    [
        (Network.ISOLATED, {}, CONTROL, 5),
        (Network.ISOLATED, {"listen.db.queued": 0, "listen.db.limit": 9}, CONTROL, None),
        (Network.ISOLATED, {}, ELSEWHERE, None),
        (Network.HOST, {}, CONTROL, 2048),
    ],
    ids=["its only queue", "two queues", "a listener of its own for others", "other servers' too"],
)
def test_a_queue_that_overflowed_between_two_looks_has_the_limit_that_the_kernel_gave(
    network, more, also, limit
):
    seen = FULL | {"listen.server.queued": 2} | more
    trial = observed(sample(0), sample(10, gauges=seen), counters={"ListenOverflows": 9})
    own = ListenerUsage("server", AddressKind.TCP4, "127.0.0.1:80", 6, 2, 5, 2)
    trial = replace(trial, facts=TrialFacts(listeners=(own, also)))
    facts, sandbox = build.declared(backlog=2048), SandboxFacts(network)
    found = findings(trial, subject=SubjectRecord("a+b", facts=facts, sandbox=sandbox))
    assert [one.numbers.get("limit") for one in found if one.rule == "D01"] == [limit]
    assert [one.numbers["given"] for one in found if one.rule == "D03"] == ([5] if limit == 5 else [])
    sure = {5: Confidence.CERTAIN, None: Confidence.LIKELY, 2048: Confidence.POSSIBLE}
    assert {one.confidence for one in found if one.rule == "D01"} == {sure[limit]}


@pytest.mark.parametrize(
    ("services", "sure"), [({}, Confidence.CERTAIN), ({"postgresql": "16"}, Confidence.LIKELY)]
)
def test_where_nobody_read_who_listens_a_database_may_have_overflowed(services, sure):
    facts = replace(build.declared(backlog=5), services=services)
    (found,) = findings(
        observed(sample(0), sample(10), counters={"ListenOverflows": 12}),
        subject=SubjectRecord("a+b", facts=facts, sandbox=SandboxFacts(Network.ISOLATED)),
    )
    assert (found.rule, found.confidence) == ("D01", sure)


@pytest.mark.parametrize(("queued", "certain"), [(5, False), (6, True)])
def test_on_the_hosts_network_only_a_queue_that_was_seen_full_is_said_to_have_overflowed(queued, certain):
    seen = FULL | {"listen.server.queued": queued}
    trial = observed(sample(0), sample(10, gauges=seen), counters={"ListenOverflows": 5000})
    found = findings(trial, subject=SubjectRecord("a+b", sandbox=SandboxFacts(Network.HOST)))
    assert any(one.confidence is Confidence.CERTAIN for one in found) is certain


def test_behind_a_frontend_the_servers_own_backlog_is_what_the_kernel_may_have_cut():
    trial = observed(sample(0), sample(10, gauges=FULL))
    front = SubjectFacts(DeclaredFacts(backlog=4096), FrontendFacts("nginx"))
    facts = replace(front, behind_it=DeclaredFacts(backlog=5))
    assert ids(trial, subject=SubjectRecord("a+b", facts=facts)) == ["D01"]
    facts = replace(front, behind_it=DeclaredFacts(backlog=1024))
    assert ids(trial, subject=SubjectRecord("a+b", facts=facts)) == ["D01", "D03"]


@pytest.mark.parametrize(
    ("counters", "rules"),
    [
        ({"ListenDrops": 0}, []),
        ({"ListenDrops": 3}, ["D02"]),
        ({"ListenDrops": 0, "TCPReqQFullDrop": 2}, ["D02"]),
    ],
)
def test_drops_beyond_the_overflows_have_another_cause(counters, rules):
    assert ids(replace(HEALTHY, counters={"ListenOverflows": 0, **counters})) == rules


def test_processes_that_chose_the_generators_cpus_are_told_unless_they_were_to_be_shared():
    apart, shared = Placement((0,), (1,)), Placement((0, 1), (0, 1), shared=True)
    (found,) = findings(replace(HEALTHY, placement=apart, facts=TrialFacts(strays=2)))
    assert (found.rule, found.numbers) == ("D24", {"strays": 2})
    assert ids(replace(HEALTHY, placement=apart, facts=TrialFacts(strays=0))) == []
    assert ids(replace(HEALTHY, placement=shared, facts=TrialFacts(strays=2))) == []


# --- processes and threads --------------------------------------------------------------------------------


def test_a_worker_that_was_replaced_is_a_restart():
    (found,) = findings(
        observed(sample(0, row(1), row(2)), sample(5, row(1), row(2)), sample(10, row(1), row(3)))
    )
    assert sentence(found).startswith("a worker was restarted once within the window")


def test_a_worker_that_was_not_replaced_has_ended():
    (found,) = findings(observed(sample(0, row(1), row(2)), sample(5, row(1), row(2)), sample(10, row(1))))
    assert sentence(found) == "1 process of the role worker ended within the window without a replacement"


def ended(before, after, *, seconds=10, recording=HEALTHY.recording):
    """How sure the finding is that workers of these numbers came and went."""
    each = zip((0, seconds // 2, seconds), (before, before, after), strict=True)
    samples = (sample(second, *map(row, pids)) for second, pids in each)
    (found,) = (one for one in findings(observed(*samples, recording=recording)) if one.rule == "D22")
    return found.confidence


FAILING = build.trial(CELL, 0, 0, [1_000_000] * 180, errors={"reset": 3}).recording
MISSING_PAGES = build.trial(CELL, 0, 0, [1_000_000] * 180, errors={"bad_status": {"404": 20}}).recording
RETRYING = with_parts(HEALTHY.recording, connections={"retried": 3})
EIGHT, SEVEN = range(1, 9), range(1, 8)


@pytest.mark.parametrize(
    ("before", "after", "seconds", "recording", "sure"),
    [
        ((1, 2), (1, 3), 10, FAILING, Confidence.CERTAIN),
        ((1, 2), (1, 3), 10, HEALTHY.recording, Confidence.LIKELY),
        (EIGHT, (*SEVEN, 9), 60, MISSING_PAGES, Confidence.POSSIBLE),
        (EIGHT, (*SEVEN, 9), 60, HEALTHY.recording, Confidence.POSSIBLE),
        ((1,), (2,), 60, HEALTHY.recording, Confidence.POSSIBLE),
        (EIGHT, (*SEVEN, 9), 60, FAILING, Confidence.CERTAIN),
        (range(1, 21), (*range(1, 20), 21), 60, FAILING, Confidence.POSSIBLE),
    ],
    ids=[
        "short lives",
        "nothing lost",
        "wrong pages",
        "one of eight in a minute",
        "the only one",
        "requests failed",
        "one of twenty",
    ],
)
def test_workers_that_are_replaced_matter_where_they_live_short_or_requests_fail(
    before, after, seconds, recording, sure
):
    assert ended(before, after, seconds=seconds, recording=recording) is sure


@pytest.mark.parametrize(
    ("after", "recording", "sure"),
    [
        ((1, 2, 3), HEALTHY.recording, Confidence.POSSIBLE),
        (range(1, 6), FAILING, Confidence.CERTAIN),
        (range(1, 6), RETRYING, Confidence.CERTAIN),
        ((1, 2, 3), FAILING, Confidence.POSSIBLE),
    ],
    ids=["idle ones are trimmed", "each took a request", "that was sent again", "more than took one"],
)
def test_workers_that_nothing_replaces_matter_where_each_took_a_request_along(after, recording, sure):
    assert ended(EIGHT, after, recording=recording) is sure


def test_where_an_open_loop_keeps_its_rate_workers_that_end_limit_nothing():
    cell = replace(CELL, workload=build.Workload(build.OpenLoop(100), CELL.workload.stop))
    recording = build.trial(cell, 0, 0, [1_000_000] * 100).recording
    assert recording.is_open
    assert ended((1, 2), (1, 3), recording=recording) is Confidence.POSSIBLE


def test_a_process_for_each_request_restarts_nothing():
    assert ids(observed(*(sample(at, row(1), row(10 + at), row(20 + at)) for at in range(4)))) == []


def test_a_databases_processes_come_and_go_with_their_connections():
    assert ids(observed(sample(0, row(1, "database")), sample(10, row(2, "database")))) == []


def test_a_server_that_died_is_not_said_to_have_restarted():
    died = observed(sample(0, row(1)), sample(10), outcome=Failed("load", "it exited with status 1"))
    assert "D22" not in ids(died)


def test_workers_that_are_added_within_the_window_are_a_growing_pool():
    three = row(1), row(2), row(3)
    (found,) = findings(observed(sample(0, row(1)), sample(5, *three), sample(10, *three)))
    assert (found.rule, found.numbers, found.confidence) == ("D37", {"more": 2}, Confidence.CERTAIN)


def test_a_pool_that_replaces_workers_may_not_have_grown():
    before, after = (row(1), row(2)), (row(1), row(3), row(4), row(5))
    found = findings(observed(sample(0, *before), sample(5, *before), sample(9, *after), sample(10, *after)))
    assert [one.confidence for one in found if one.rule == "D37"] == [Confidence.LIKELY]


def test_one_more_process_may_be_a_helper():
    two = row(1), row(2)
    (found,) = findings(observed(sample(0, row(1)), sample(5, *two), sample(10, *two)))
    assert (found.rule, found.confidence) == ("D37", Confidence.LIKELY)


def test_a_child_that_only_the_last_look_sees_is_no_growing_pool():
    assert ids(observed(sample(0, row(1)), sample(5, row(1)), sample(10, row(1), row(2)))) == []


BUSY = with_parts(HEALTHY.recording, little={"in_flight_integral_ns": 8 * SECOND})


def loaded(*used_s, cpus=(0, 1), total_s=None, role="worker", recording=BUSY):
    """A process whose threads used so much in ten seconds."""
    threads = tuple(ThreadUsage(1, tid, "loop", round(used * SECOND)) for tid, used in enumerate(used_s))
    samples = (sample(0, row(1, role)), sample(10, row(1, role, cpu_s=total_s or sum(used_s))))
    return observed(*samples, threads=threads, placement=Placement(cpus, (9,)), recording=recording)


def test_one_thread_on_one_of_two_cpus_is_told():
    (found,) = findings(loaded(9.8))
    assert found.rule == "D13"
    said = "one process filled one core with one thread, while others of its 2 CPUs were free"
    assert said in sentence(found)


@pytest.mark.parametrize(("language", "sure"), [("python", Confidence.LIKELY), ("java", Confidence.POSSIBLE)])
def test_threads_that_take_turns_are_told(language, sure):
    entry = {"server": {"name": "a", "language": language}}
    subject = SubjectRecord("a+b", facts=SubjectFacts(entry=entry))
    (found,) = findings(loaded(3.0, 3.5, 3.4), subject=subject)
    assert "with 3 threads that took turns" in sentence(found)
    assert found.confidence is sure


# What threads do in calls of the system needs no turn.
@pytest.mark.parametrize(
    ("language", "used_s", "rules"), [("python", 4.0, ["D13"]), ("java", 4.0, []), ("python", 4.3, [])]
)
def test_threads_that_take_turns_use_a_little_more_than_one_core(language, used_s, rules):
    subject = SubjectRecord("a+b", facts=SubjectFacts(entry={"server": {"name": "a", "language": language}}))
    assert ids(loaded(used_s, used_s, used_s), subject=subject) == rules


def test_a_full_frontend_is_told_however_uneven_the_workers_behind_it_are():
    trial = loaded(9.8, role="frontend-worker")
    first, last = trial.samples
    behind = [row(pid, cpu_s=used) for pid, used in ((2, 8.2), (3, 3.0))]
    samples = (
        replace(first, processes=(*first.processes, row(2), row(3))),
        replace(last, processes=(*last.processes, *behind)),
    )
    found = findings(replace(trial, samples=samples, placement=Placement(tuple(range(8)), (9,))))
    assert {one.rule: one.names for one in found} == {"D13": {"process": "frontend"}, "D18": {}}


def test_one_core_that_is_full_beside_idle_workers_is_uneven_and_wants_no_more_processes():
    trial = loaded(9.5)
    others = [row(pid, cpu_s=3 if trial else 0) for pid in (2, 3, 4)]
    first, last = trial.samples
    samples = (
        replace(first, processes=(*first.processes, row(2), row(3), row(4))),
        replace(last, processes=(*last.processes, *others)),
    )
    wide = replace(trial, samples=samples, placement=Placement((0, 1, 2, 3), (9,)))
    assert ids(wide) == ["D18"]


@pytest.mark.parametrize(
    ("role", "process"), [("frontend-worker", "frontend"), ("server", None), ("database", "database")]
)
def test_the_process_that_fills_a_core_is_said_to_be_of_the_part_that_it_is_of(role, process):
    (found,) = findings(loaded(9.8, role=role))
    assert found.names.get("process") == process


ONE_AT_A_TIME = with_parts(HEALTHY.recording, little={"in_flight_integral_ns": SECOND})


def test_a_quota_of_one_core_is_all_that_it_can_use():
    cell = replace(CELL, sandbox=replace(CELL.sandbox, cpu_quota=1.0))
    rules = [found.rule for found in diagnose(Evidence(cell, loaded(9.8)))]
    assert "D13" not in rules and "D13" in ids(loaded(9.8))


@pytest.mark.parametrize(
    "trial",
    [
        loaded(9.8, cpus=(0,)),
        loaded(9.0),
        loaded(9.0, 9.0),
        loaded(9.8, total_s=19.0),
        loaded(9.8, recording=ONE_AT_A_TIME),
    ],
    ids=[
        "it has one CPU only",
        "it was not busy",
        "it used two cores",
        "its other processes used the rest",
        "one request at a time",
    ],
)
def test_a_server_that_could_not_use_more_is_not_blamed(trial):
    assert ids(trial) == []


def turns(run_s, queue_s, stalled_s, cpus=(0,)):
    """A second in which its threads ran and were ready for so long in all."""
    counters = {
        "threads.run_ns": round(run_s * SECOND),
        "threads.queue_ns": round(queue_s * SECOND),
        "cgroup.server.cpu_stalled_ns": round(stalled_s * SECOND),
    }
    return observed(counters=counters, placement=Placement(cpus, (9,)))


def test_more_threads_ready_than_cpus_is_told():
    (found,) = findings(turns(1, 3, 0.9))
    assert (found.rule, found.numbers) == ("D36", {"ready": 4, "cpus": 1})
    assert sentence(found).startswith("4.0 of its threads ran or were ready to, on average, on 1 CPU")


@pytest.mark.parametrize(
    "trial",
    [turns(1, 0.9, 0.9), turns(1, 3, 0.2), turns(1.9, 2, 0.9, cpus=(0, 1))],
    ids=["one waits for the other", "the group did not wait", "it has two CPUs"],
)
def test_threads_that_find_a_cpu_are_not_told(trial):
    assert "D36" not in ids(trial)


# --- the machine ------------------------------------------------------------------------------------------


def machine(other_s=0.0, steal_s=0.0, **more):
    times = {"busy": 9 + other_s, "interrupts": 0.5, "steal": steal_s, "idle": 10.5 - other_s - steal_s}
    found = {f"cpus.{name}_ns": round(value * SECOND) for name, value in times.items()}
    return {**found, "subject.cpu_ns": 6 * SECOND, "prony.cpu_ns": 3 * SECOND, **more}


@pytest.mark.parametrize(("other_s", "rules"), [(0.9, []), (1.2, ["D28"])])
def test_other_programs_are_told_beyond_what_the_kernels_books_differ_by(other_s, rules):
    assert ids(replace(HEALTHY, counters=machine(other_s=other_s))) == rules


def test_other_programs_whose_cpu_nobody_missed_are_only_possible():
    counters = machine(other_s=4, **{"threads.queue_ns": 0})
    (found,) = findings(replace(HEALTHY, counters=counters))
    assert (found.rule, found.confidence) == ("D28", Confidence.POSSIBLE)


@pytest.mark.parametrize(("steal_s", "rules"), [(0.1, []), (0.3, ["D26"])])
def test_stolen_time_is_told_beyond_one_per_cent(steal_s, rules):
    assert ids(replace(HEALTHY, counters=machine(steal_s=steal_s))) == rules


@pytest.mark.parametrize(("times", "rules"), [(0, []), (1, ["D27"])])
def test_a_cpu_that_was_slowed_down_for_heat_is_told(times, rules):
    assert ids(replace(HEALTHY, counters={"machine.throttles": times})) == rules


@pytest.mark.parametrize(
    ("counters", "rules"),
    [
        ({"cpus.softirq_most_ns": 4 * SECOND, "softnet.dropped": 0}, []),
        ({"cpus.softirq_most_ns": 6 * SECOND, "softnet.dropped": 0}, ["D25"]),
        ({"cpus.softirq_most_ns": 0, "softnet.dropped": 1}, ["D25"]),
    ],
)
def test_network_work_of_the_kernel_that_fills_a_cpu_is_told(counters, rules):
    assert ids(observed(sample(0, row(1)), sample(10, row(1)), counters=counters)) == rules


@pytest.mark.parametrize(("requests", "confidence"), [(1000, Confidence.LIKELY), (1001, Confidence.POSSIBLE)])
def test_packets_that_were_dropped_for_few_of_the_requests_limit_nothing(requests, confidence):
    completed = with_parts(HEALTHY.recording, completed={"ok": requests, "failed": 0})
    trial = observed(sample(0, row(1)), sample(10, row(1)), counters={"softnet.dropped": 1})
    (found,) = findings(replace(trial, recording=completed))
    assert (found.rule, found.confidence) == ("D25", confidence)


@pytest.mark.parametrize(
    ("counters", "confidence"),
    [
        ({"pressure.memory_some_ns": SECOND}, Confidence.POSSIBLE),
        ({"pressure.memory_some_ns": 0, "cgroup.server.memory_stalled_ns": SECOND}, Confidence.LIKELY),
        ({"pressure.memory_some_ns": 0, "cgroup.server.memory_stalled_ns": 5 * SECOND}, Confidence.CERTAIN),
    ],
)
def test_a_wait_for_memory_is_certain_only_of_the_servers_own_group(counters, confidence):
    (found,) = findings(observed(sample(0, row(1)), sample(10, row(1)), counters=counters))
    assert (found.rule, found.confidence) == ("D20", confidence)


def test_a_wait_for_memory_of_a_server_that_carries_its_rate_is_only_possible_to_limit_it():
    cell = replace(CELL, workload=build.Workload(build.OpenLoop(100), CELL.workload.stop))
    kept = build.trial(cell, 0, 0, [1_000_000] * 100).recording
    trial = observed(sample(0, row(1)), sample(10, row(1)), recording=kept)
    counters = {"cgroup.server.memory_stalled_ns": SECOND}
    (found,) = findings(replace(trial, counters=counters))
    assert (found.rule, found.confidence) == ("D20", Confidence.POSSIBLE)


def test_a_machine_whose_other_programs_waited_for_memory_is_not_the_servers_matter():
    counters = {"pressure.memory_some_ns": 9 * SECOND, "cgroup.server.memory_stalled_ns": 0}
    assert ids(observed(sample(0, row(1)), sample(10, row(1)), counters=counters)) == []


# --- all of them ------------------------------------------------------------------------------------------


def sick():
    """A trial with every symptom."""
    counters = {
        "cgroup.server.oom_kills": 1,
        "cgroup.server.periods": 100,
        "cgroup.server.throttled_periods": 40,
        "cgroup.server.memory_stalled_ns": 5 * SECOND,
        "ListenOverflows": 1,
        "ListenDrops": 2,
        "machine.throttles": 1,
        "softnet.dropped": 1,
        "conntrack.dropped": 1,
        "machine.huge_pages": 99,
    }
    limited = build.trial(CELL, 0, 0, [1] * 9, limited=build.BUSY).recording
    return observed(
        sample(0, row(1), row(2, "master"), gauges=FULL),
        sample(5, row(1, cpu_s=5), row(2, "master"), row(4)),
        sample(10, row(1, cpu_s=10), row(3, "master"), row(4)),
        counters=machine(other_s=4, steal_s=1, **counters),
        threads=(ThreadUsage(1, 1, "loop", 10 * SECOND),),
        placement=Placement((0, 1), (9,)),
        facts=TrialFacts(strays=1),
        recording=answered(without_reply=9, most=200, limited=limited),
    )


# They exclude each other's symptoms: `test_conclusion` and `test_causes` have a trial for each.
ALONE = {"D04", "D11", "D12", "D17", "D41"} | {
    *("D05", "D06", "D08", "D09", "D16", "D18", "D21", "D30"),
    *("D31", "D33", "D34", "D35", "D36", "D38", "D39", "D40", "D42", "D43", "D44", "D45", "D46"),
    *("D47", "D48"),
}


@pytest.mark.parametrize("name", sorted(RULES.keys() - ALONE))
def test_each_finds_its_symptom_in_a_trial_that_has_most_of_them(name):
    record = SubjectRecord("a+b", facts=build.declared(backlog=2048))
    assert [found.rule for found in diagnose(Evidence(CELL, sick(), record))].count(name) == 1
