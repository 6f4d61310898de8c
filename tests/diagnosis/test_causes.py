"""Rules on what planted faults show: each finds its symptom, and is silent on what resembles it."""

from dataclasses import replace

import pytest

from diagnosis.test_conclusion import ENTRY, concluded, loaded, record
from diagnosis.test_rules import CELL, HEALTHY
from golden import build
from histograms import distribution
from prony.core.units import MIB
from prony.diagnosis import diagnose, observe
from prony.diagnosis.asked_often import ASKED_OFTEN, CONNECTED_OFTEN
from prony.diagnosis.conclusion import DiagnosisKind, conclude
from prony.diagnosis.connections import CLOSED_BEYOND, CONNECTION_CAP, STARVED, STARVED_BY_SLOTS
from prony.diagnosis.consumption import Resource
from prony.diagnosis.cpu_time import COLLECTS, ONE_THREAD_FULL, SPINS, STACKS_COLLECT
from prony.diagnosis.delayed_replies import REPLIES_HELD_BACK, SENT_AT_A_RATE
from prony.diagnosis.evidence import Affected, Confidence, Evidence, Finding
from prony.diagnosis.few_at_a_time import (
    FEW_AT_A_TIME,
    LOCK_POLLED,
    LOOP_BLOCKED,
    ONE_AT_A_TIME,
    PACED,
    PEER_COMPUTES,
    PEER_CONNECTS,
    PEER_FULL,
    PEER_SLOW,
    POOL_SMALL,
    POOL_THREADS,
    PROCESSES_BUSY,
    REQUESTS_UNREAD,
    STANDS_STILL,
    WAITS_WITHIN,
)
from prony.diagnosis.generator import FIGURES_CONTRADICT, GENERATOR_BUSY, GENERATOR_KEPT_WAITING
from prony.diagnosis.knobs import Knob
from prony.diagnosis.listen_queue import CONNECTS_REPEATED, QUEUE_OVERFLOWED, SOME_QUEUE_OVERFLOWED
from prony.diagnosis.machine import OTHERS_RAN, OTHERS_RAN_BESIDE_GENERATOR
from prony.diagnosis.memory import MEMORY_GREW
from prony.diagnosis.started_under_load import FORKED_FOR_EACH, RESTARTED, STARTS_COST, WORKER_FOR_EACH
from prony.diagnosis.time_spent import ThreadState, thread_time
from prony.diagnosis.uneven_work import UNEVEN_CONNECTIONS, UNEVEN_WORKERS
from prony.diagnosis.unlike_production import DEBUGGING, STILL_COLD
from prony.diagnosis.used_up import (
    DESCRIPTORS_USED_UP,
    PORTS_KEPT_BY_EARLIER,
    SELECT_FULL,
    SERVER_WITHOUT_PORTS,
    TRACKING_FULL,
)
from prony.diagnosis.waiting import DISK_WAITED, DOWNSTREAM_BUSY, LOCK_HELD, SLOTS_BUSY
from prony.diagnosis.wrong_replies import (
    MOSTLY_ERRORS,
    RATE_LIMITED,
    REFUSED,
    REFUSED_BY_ASKED,
    TURNED_AWAY,
    WRONG_REPLIES,
)
from prony.figures.validity import Circumstances, judge
from prony.model.facts import CodeKind, FrontendFacts, HotCode, HotSpot
from prony.model.observation import LogTail, Phase, ProcessRow, Sample, ThreadUsage
from prony.model.recording import LoopKind
from prony.model.sandbox import Network, Placement, SandboxFacts
from prony.model.trial import Failed, Invalid
from prony.model.workload import ConnectionStage
from prony.report.diagnoses import diagnosis_words
from prony.report.findings import finding_words
from recordings import with_parts

SECOND, MS = build.SECOND, 1_000_000
POOL, SLOTS = Resource.POOL, Resource.SLOTS
SIX = replace(CELL, workload=replace(CELL.workload, stop=build.DurationStop(6 * SECOND)))


def kinds(trial, cell=CELL, subject=None):
    return [found.kind for found in diagnose(Evidence(cell, trial, subject or record()))]


def one(trial, kind, cell=CELL, subject=None):
    (found,) = (one for one in diagnose(Evidence(cell, trial, subject or record())) if one.kind is kind)
    return found


def with_counters(trial, **counters):
    named = {name.replace("__", "."): value for name, value in counters.items()}
    return replace(trial, counters={**trial.counters, **named})


def lasting(trial, length_s):
    closed = {"close_ns": trial.recording.window.open_ns + length_s * SECOND}
    return replace(trial, recording=with_parts(trial.recording, window=closed))


def sample(second, rows=(), **gauges):
    named = {name.replace("__", "."): value for name, value in gauges.items()}
    return Sample(second * SECOND, Phase.WINDOW, tuple(rows), 0, 0, 0, named)


def worker(pid, cpu_s=0.0, rss=0, role="worker"):
    return ProcessRow(pid, 1, role, "", round(cpu_s * SECOND), 0, rss, rss, 1)


# --- wrong replies ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("errors", [{"bad_status": {"500": 20}}, {"failed_validation": 20}])
def test_replies_with_another_status_or_body_are_wrong(errors):
    found = one(build.trial(CELL, 0, 0, [MS] * 180, errors=errors), WRONG_REPLIES)
    assert (found.confidence, found.numbers) == (
        Confidence.CERTAIN,
        {"wrong": 20, "done": 200, "share": 0.1},
    )


@pytest.mark.parametrize("errors", [{"bad_status": {"503": 4}}, {"reset": 20}])
def test_single_errors_and_lost_requests_are_no_wrong_replies(errors):
    assert kinds(build.trial(CELL, 0, 0, [MS] * 180, errors=errors)) == []


@pytest.mark.parametrize(
    ("status", "kind", "names"),
    [
        ("500", MOSTLY_ERRORS, {"status": "500", "error": "app.PoolError: none left"}),
        ("429", RATE_LIMITED, {}),
    ],
)
def test_where_most_replies_are_errors_they_are_the_answer(status, kind, names):
    log = LogTail("Traceback:\n  File 'a.py', line 3\napp.PoolError: none left\nGET / 500\n")
    trial = replace(build.trial(CELL, 0, 0, [MS] * 80, errors={"bad_status": {status: 120}}), log=log)
    found = one(trial, kind)
    assert (found.names, found.numbers["share"]) == (names, 0.6)
    assert concluded(trial).cause_kind is kind


# A client's own pool that is used up has other words than a server that takes no more.
@pytest.mark.parametrize(
    ("said", "others", "kind"),
    [
        ('psycopg2.OperationalError: FATAL:  too many connections for role "shop"', 0, REFUSED_BY_ASKED),
        ("asyncpg.exceptions.TooManyConnectionsError: sorry, too many clients already", 1, REFUSED_BY_ASKED),
        ("pymysql.err.OperationalError: (1040, 'Too many connections')", 0, REFUSED_BY_ASKED),
        ("redis.exceptions.ConnectionError: Too many connections", 0, MOSTLY_ERRORS),
        ("psycopg2.OperationalError: FATAL:  sorry, too many clients already", 2, MOSTLY_ERRORS),
        ("pq: sorry, too many clients already", 0, MOSTLY_ERRORS),
        ("\n".join(["pq: sorry, too many clients already"] * 20), 0, REFUSED_BY_ASKED),
    ],
)
def test_what_it_asks_that_takes_no_more_connections_is_the_answer_before_its_errors(said, others, kind):
    log = LogTail("\n".join(["Traceback:", said, *["app.OtherError: x"] * others, ""]))
    trial = replace(build.trial(CELL, 0, 0, [MS] * 80, errors={"bad_status": {"500": 120}}), log=log)
    assert kinds(trial) == [kind]
    assert concluded(trial).cause_kind is kind


def test_a_page_that_is_not_there_is_none_that_what_it_asks_refused():
    log = LogTail("psycopg2.OperationalError: FATAL:  sorry, too many clients already\n")
    trial = replace(build.trial(CELL, 0, 0, [MS] * 80, errors={"bad_status": {"404": 120}}), log=log)
    assert REFUSED_BY_ASKED not in kinds(trial)


# A worker that is killed may answer with 500 first: then why it is replaced is the answer.
@pytest.mark.parametrize(("workers", "kind"), [(60, WRONG_REPLIES), (50, MOSTLY_ERRORS)])
def test_errors_of_workers_that_end_are_not_the_answer(workers, kind):
    trial = build.trial(CELL, 0, 0, [MS] * 80, errors={"bad_status": {"500": 120}})
    old, new = (tuple(worker(first + place) for place in range(workers)) for first in (1000, 2000))
    ended = replace(trial, samples=(sample(0, old), sample(1, old), sample(2, new)))
    assert kind in kinds(ended)


@pytest.mark.parametrize("status", ["502", "503", "504"])
def test_refusals_of_a_server_that_cannot_do_more_are_not_the_answer(status):
    trial = build.trial(CELL, 0, 0, [MS] * 80, errors={"bad_status": {status: 120}})
    assert WRONG_REPLIES in kinds(trial)
    assert concluded(trial).cause_kind is None
    # But of one that answers no page at all they are all that is known.
    none = build.trial(CELL, 0, 0, [], errors={"bad_status": {status: 120}})
    assert (one(none, MOSTLY_ERRORS).confidence, concluded(none).cause_kind) == (
        Confidence.LIKELY,
        MOSTLY_ERRORS,
    )


# Forty replies of 100 ms in a second: four at a time; the rest of those in flight is turned away.
@pytest.mark.parametrize(
    ("in_flight", "frontend", "kind"),
    [(10.0, None, TURNED_AWAY), (20.0, None, WRONG_REPLIES), (10.0, FrontendFacts("nginx"), WRONG_REPLIES)],
    ids=["at once", "as slowly as a page", "behind a frontend"],
)
def test_a_server_that_refuses_at_once_what_is_beyond_a_number_turns_it_away(in_flight, frontend, kind):
    trial = build.trial(CELL, 0, 0, [100 * MS] * 40, errors={"bad_status": {"503": 240}})
    little = {"in_flight_integral_ns": round(in_flight * SECOND)}
    trial = replace(trial, recording=with_parts(trial.recording, little=little))
    subject = record(slots=None, frontend=frontend)
    assert kind in kinds(trial, subject=subject)
    if kind is TURNED_AWAY:
        found = one(trial, kind, subject=subject)
        assert found.numbers == pytest.approx({"share": 240 / 280, "at_a_time": 4}, rel=0.01)
        assert concluded(trial, subject=subject).cause_kind is TURNED_AWAY


def test_requests_that_are_refused_as_they_were_sent_are_told_with_the_commonest_status():
    trial = build.trial(CELL, 0, 0, [MS] * 180, errors={"bad_status": {"400": 15, "405": 4, "500": 1}})
    found = one(trial, REFUSED)
    assert (found.rule, found.numbers) == ("D38", {"refused": 19, "done": 200, "status": 400})
    assert "most with status 400" in str(finding_words(found, ""))


@pytest.mark.parametrize("errors", [{"bad_status": {"400": 4}}, {"bad_status": {"404": 20, "503": 20}}])
def test_other_pages_and_single_refusals_are_none(errors):
    assert REFUSED not in kinds(build.trial(CELL, 0, 0, [MS] * 180, errors=errors))


# --- ports and descriptors --------------------------------------------------------------------------------


FAILING = build.trial(CELL, 0, 0, [MS] * 180, errors={"reset": 20})
ONE_FAILED = build.trial(CELL, 0, 0, [MS] * 1999, errors={"reset": 1})


def test_a_server_is_without_ports_when_its_log_says_so_and_most_of_them_wait():
    trial = with_counters(HEALTHY, ports=200, TimeWaitAtClose=198)
    log = LogTail("OSError: [Errno 99] Cannot assign requested address")
    assert one(replace(trial, log=log), SERVER_WITHOUT_PORTS).confidence is Confidence.CERTAIN
    assert one(replace(FAILING, log=log), SERVER_WITHOUT_PORTS).confidence is Confidence.LIKELY
    assert one(replace(HEALTHY, log=log), SERVER_WITHOUT_PORTS).confidence is Confidence.POSSIBLE


@pytest.mark.parametrize(
    "log",
    [
        "error while attempting to bind on address ('::1', 8000): cannot assign requested address",
        "listen tcp [::1]:8000: bind: cannot assign requested address",
    ],
)
def test_an_address_that_a_server_cannot_bind_is_no_lack_of_ports(log):
    assert kinds(replace(FAILING, log=LogTail(log))) == kinds(FAILING)


@pytest.mark.parametrize(
    ("ports", "waiting", "sure"),
    [(0, 0, Confidence.LIKELY), (200, 120, Confidence.LIKELY), (200, 20, Confidence.POSSIBLE)],
)
def test_a_server_with_half_of_its_ports_free_lacks_none_whatever_its_log_says(ports, waiting, sure):
    """Node's own line on a listener, or Python's below its traceback, does not say who wanted an address."""
    trial = replace(with_counters(FAILING, ports=ports, ports__waiting=waiting), log=NO_PORT)
    assert one(trial, SERVER_WITHOUT_PORTS).confidence is sure


def test_ports_of_connections_that_are_open_are_used_too():
    trial = replace(with_counters(FAILING, ports=200, ports__waiting=20), log=NO_PORT)
    full = replace(trial, samples=(sample(0, downstream__connections=180),))
    assert one(full, SERVER_WITHOUT_PORTS).confidence is Confidence.LIKELY


def test_ports_that_wait_are_a_likely_limit_only_where_requests_failed():
    likely, possible = Confidence.LIKELY, Confidence.POSSIBLE
    for trial, sure in ((FAILING, likely), (ONE_FAILED, possible), (HEALTHY, possible)):
        waiting = with_counters(trial, ports=200, TimeWaitAtClose=198)
        assert one(waiting, SERVER_WITHOUT_PORTS).confidence is sure


@pytest.mark.parametrize(
    ("opened", "sent", "carried"), [(180, 180, 0), (120, 270, 0), (0, 180, 198), (90, 180, 90)]
)
def test_sockets_of_the_generators_connections_and_of_earlier_trials_exhaust_no_ports(opened, sent, carried):
    failing = build.trial(CELL, 0, 0, [MS] * 180, errors={"reset": 20})
    connections = replace(failing.recording.connections, opened=opened, requests_sent=sent)
    trial = replace(failing, recording=replace(failing.recording, connections=connections))
    waiting = with_counters(trial, ports=200, TimeWaitAtClose=198, CarriedTimeWait=carried)
    assert SERVER_WITHOUT_PORTS not in kinds(waiting)


def test_sockets_that_wait_exhaust_no_ports_while_there_are_others():
    assert kinds(with_counters(HEALTHY, ports=28232, TimeWaitAtClose=9000)) == []


BEHIND_NGINX = {
    "server": ENTRY["server"],
    "frontend": {"name": "nginx"},
    "frontend_settings": {"upstream_keep_alive": 1},
}


@pytest.mark.parametrize(
    ("waiting", "log", "sure"),
    [
        (198, "nginx: connect() failed (99: Cannot assign requested address)", Confidence.CERTAIN),
        (198, "", Confidence.LIKELY),
        (20, "", None),
    ],
)
def test_ports_between_a_frontend_and_its_server_are_the_frontends_whatever_waits_elsewhere(
    waiting, log, sure
):
    failing = build.trial(CELL, 0, 0, [MS] * 180, errors={"bad_status": {"502": 20}})
    counted = {"ports__waiting": waiting, "ports__waiting_frontend": waiting}
    trial = replace(with_counters(failing, ports=200, TimeWaitAtClose=600, **counted), log=LogTail(log))
    behind = record(entry=BEHIND_NGINX, frontend=FrontendFacts("nginx"))
    found = [one for one in diagnose(Evidence(CELL, trial, behind)) if one.kind is SERVER_WITHOUT_PORTS]
    assert [one.confidence for one in found] == ([] if sure is None else [sure])
    assert [(one.names, one.knob) for one in found] == (
        [] if sure is None else [({"process": "frontend"}, Knob("nginx", "upstream_keep_alive", 1))]
    )


@pytest.mark.parametrize(
    ("waiting", "of_frontend", "log"),
    [
        (198, 40, ""),
        (198, 120, ""),
        (60, 60, "nginx: connect() failed (99: Cannot assign requested address)"),
    ],
    ids=["a few", "more than half", "nobody used them up"],
)
def test_ports_that_the_server_lacks_are_not_its_frontends(waiting, of_frontend, log):
    counted = {"ports__waiting": waiting, "ports__waiting_frontend": of_frontend}
    trial = replace(with_counters(HEALTHY, ports=200, **counted), log=LogTail(log))
    behind = record(entry=BEHIND_NGINX, frontend=FrontendFacts("nginx"))
    found = one(trial, SERVER_WITHOUT_PORTS, subject=behind)
    assert (found.names, found.knob) == ({}, None)


@pytest.mark.parametrize(
    ("used", "log", "sure"),
    [
        (64, "OSError: [Errno 24] Too many open files", Confidence.CERTAIN),
        (64, "", Confidence.LIKELY),
        (40, "", None),
        (40, 'File "/srv/app/SystemFile.py", line 4, in open', None),
        (55, "accept: {error,emfile}", Confidence.CERTAIN),
        (40, "accept: {error,emfile}", Confidence.POSSIBLE),
        (40, "OSError: [Errno 24] inotify instance limit reached: too many open files", None),
        (40, "Error: EMFILE: too many open files, watch '/srv/app'", None),
    ],
)
def test_descriptors_are_used_up_at_the_limit_and_not_before(used, log, sure):
    trial = with_counters(HEALTHY, descriptors__used=used, descriptors__limit=64)
    found = diagnose(Evidence(CELL, replace(trial, log=LogTail(log)), record()))
    assert [one.confidence for one in found] == ([] if sure is None else [sure])


@pytest.mark.parametrize(
    ("trial", "sure"),
    [(FAILING, Confidence.LIKELY), (ONE_FAILED, Confidence.POSSIBLE), (HEALTHY, Confidence.POSSIBLE)],
)
def test_a_line_of_the_log_may_be_of_before_the_window_where_no_client_went_without(trial, sure):
    log = LogTail("accept4(): Too many open files")
    assert one(replace(trial, log=log), DESCRIPTORS_USED_UP).confidence is sure
    log = LogTail("ValueError: filedescriptor out of range in select()")
    assert one(replace(trial, log=log), SELECT_FULL).confidence is sure


def test_a_server_that_select_ended_is_diagnosed_by_its_log():
    trial = replace(
        HEALTHY,
        outcome=Failed("load", "the server exited"),
        log=LogTail("ValueError: filedescriptor out of range in select()"),
        samples=(sample(0, established__server=1020),),
    )
    assert one(trial, SELECT_FULL).numbers == {"connections": 1020}


# --- what earlier trials left -----------------------------------------------------------------------------

NO_PORT = LogTail("OSError: [Errno 99] Cannot assign requested address")


def carried(count, waiting, log=NO_PORT):
    trial = with_counters(HEALTHY, ports=200, CarriedTimeWait=count, TimeWaitAtClose=waiting)
    return replace(trial, log=log)


def test_ports_that_earlier_trials_keep_are_named_first_and_are_not_the_servers_own():
    trial = carried(180, 198)
    found = one(trial, PORTS_KEPT_BY_EARLIER)
    assert (found.rule, found.confidence) == ("D06", Confidence.CERTAIN)
    assert "had left 180 sockets in TIME_WAIT on the host's network, which has 200 ports" in str(
        finding_words(found, "")
    )
    assert SERVER_WITHOUT_PORTS not in kinds(trial)
    assert concluded(trial).cause_kind is PORTS_KEPT_BY_EARLIER


def test_sockets_of_the_generators_own_connections_are_not_the_servers_need():
    trial = carried(120, 340)
    connections = replace(trial.recording.connections, opened=140, requests_sent=200)
    closing = replace(trial, recording=replace(trial.recording, connections=connections))
    assert one(closing, PORTS_KEPT_BY_EARLIER).confidence is Confidence.CERTAIN


def test_ports_that_mostly_earlier_trials_keep_are_likely_theirs_where_many_are_free():
    # Of 43 a new connection of the generator took the place: it may use a port that waits at the server's.
    trial = carried(120, 157)
    assert one(trial, PORTS_KEPT_BY_EARLIER).confidence is Confidence.LIKELY
    assert concluded(trial).cause_kind is PORTS_KEPT_BY_EARLIER
    assert SERVER_WITHOUT_PORTS not in kinds(trial)


def test_a_generator_without_ports_shows_what_earlier_trials_kept():
    failing = replace(carried(180, 198, LogTail("")), recording=without_ports(HEALTHY.recording))
    assert concluded(failing).cause_kind is PORTS_KEPT_BY_EARLIER


def without_ports(recording):
    evidence = [{"kind": "ports", "level": "yes", "requests": 40}]
    return with_parts(recording, generator={"limited": "yes", "evidence": evidence})


def test_ports_that_the_server_would_have_used_up_alone_are_only_possibly_theirs():
    trial = carried(20, 200)
    assert one(trial, PORTS_KEPT_BY_EARLIER).confidence is Confidence.POSSIBLE
    assert one(trial, SERVER_WITHOUT_PORTS).confidence is Confidence.CERTAIN


@pytest.mark.parametrize(
    "trial", [carried(180, 198, LogTail("")), carried(15, 198)], ids=["nobody lacked one", "few were left"]
)
def test_what_earlier_trials_left_is_no_finding_by_itself(trial):
    assert PORTS_KEPT_BY_EARLIER not in kinds(trial)


# --- Nagle ------------------------------------------------------------------------------------------------


def replies(values, acknowledged):
    return with_counters(build.trial(CELL, 0, 0, [value * MS for value in values]), DelayedACKs=acknowledged)


def test_replies_that_all_take_the_time_of_a_delayed_acknowledgement_are_held_back():
    found = one(replies([41, 42, 44, 46] * 50, 200), REPLIES_HELD_BACK)
    assert (found.confidence, found.numbers["share"]) == (Confidence.CERTAIN, 1.0)


@pytest.mark.parametrize(
    ("values", "acknowledged"),
    [
        ([41, 42, 44, 46] * 50, 10),
        ([*range(10, 110)] * 2, 200),
        ([2, 3, 4, 5] * 50, 200),
    ],
    ids=["nothing was acknowledged late", "slow replies of every length", "quick replies"],
)
def test_other_slow_replies_are_not_held_back(values, acknowledged):
    assert kinds(replies(values, acknowledged)) == []


@pytest.mark.parametrize(
    ("cores", "in_flight", "sure"),
    [(0.1, 2, Confidence.CERTAIN), (0.1, 9, Confidence.LIKELY), (0.8, 2, None)],
    ids=["an idle server", "requests wait for its threads", "a busy CPU"],
)
def test_requests_that_lie_unread_are_acknowledged_late_too(cores, in_flight, sure):
    held = replies([41, 42, 44, 46] * 50, 200)
    recording = with_parts(held.recording, little=with_little(in_flight))
    busy = with_counters(replace(held, recording=recording), cgroup__server__cpu_ns=round(cores * SECOND))
    found = diagnose(Evidence(CELL, busy, record()))
    assert [one.confidence for one in found if one.rule == "D30"] == ([] if sure is None else [sure])


def test_the_replies_of_one_full_core_are_late_and_not_held_back():
    threads = (ThreadUsage(1, 1, "loop", round(3.96 * SECOND)),)
    late = replies([47, 48, 49, 50] * 50, 120).recording
    little = with_little(24)
    loop = replace(used(0.99), threads=threads, recording=with_parts(late, little=little))
    assert [found.rule for found in diagnose(Evidence(CELL, with_counters(loop, DelayedACKs=120)))] == ["D13"]


# --- memory -----------------------------------------------------------------------------------------------


def grown(sizes, role="worker"):
    rows = [sample(k, [worker(7, rss=round(size * MIB), role=role)]) for k, size in enumerate(sizes)]
    return replace(HEALTHY, samples=tuple(rows))


def test_memory_that_grows_in_every_sample_grew():
    found = one(grown([50, 54, 58, 62, 66, 70]), MEMORY_GREW)
    assert found.confidence is Confidence.LIKELY
    assert found.numbers["per_request_bytes"] == 20 * MIB / 200


@pytest.mark.parametrize(
    "sizes",
    [[50, 60, 69, 70, 70, 70], [50, 51, 52, 53, 54, 55], [50, 70, 50, 70, 50, 70]],
    ids=["it fills and stops", "a few MiB", "up and down"],
)
def test_memory_that_fills_or_varies_did_not_grow(sizes):
    assert kinds(grown(sizes)) == []


def test_memory_that_grows_with_requests_that_get_fewer_grew():
    slower = grown([50, 62, 74, 86, 90, 94])
    series = [
        {"second": k, "scheduled": n, "ok": n, "failed": 0, "body_bytes": 0} for k, n in enumerate((160, 40))
    ]
    recording = with_parts(slower.recording, series=series)
    assert kinds(slower) == []
    assert kinds(replace(slower, recording=recording)) == [MEMORY_GREW]


def test_a_pool_that_got_more_processes_is_no_leak():
    pools = [[worker(pid, rss=20 * MIB) for pid in range(count)] for count in range(2, 8)]
    trial = replace(HEALTHY, samples=tuple(sample(k, pool) for k, pool in enumerate(pools)))
    assert MEMORY_GREW not in kinds(trial)


# --- forks ------------------------------------------------------------------------------------------------

LOOKS = {"threads.looks": 100, "threads.awake": 20}


def test_a_program_for_each_request_is_seen_by_forks_and_by_threads_that_wait_for_a_child():
    looks = {**LOOKS, "threads.child": 50, "threads.events": 30}
    trial = replace(HEALTHY, counters={**looks, "machine.forks": 210})
    assert one(trial, FORKED_FOR_EACH).numbers == {"forks": 210, "done": 200}


@pytest.mark.parametrize(("forked", "waits"), [(210, "threads.wait"), (30, "threads.child")])
def test_threads_for_connections_and_a_few_programs_are_no_fork_storm(forked, waits):
    assert kinds(replace(HEALTHY, counters={**LOOKS, waits: 80, "machine.forks": forked})) == []


@pytest.mark.parametrize(("arrived", "named"), [(20, True), (30, False)])
def test_an_event_loop_waits_for_no_child_and_forks_more_than_connections_arrive(arrived, named):
    counters = {**LOOKS, "threads.events": 80, "machine.forks": 210, "PassiveOpens": arrived}
    assert (FORKED_FOR_EACH in kinds(replace(HEALTHY, counters=counters))) is named


@pytest.mark.parametrize(
    ("roles", "sure"),
    [
        (("worker", "other"), Confidence.LIKELY),
        (("worker",), Confidence.POSSIBLE),
        (("database", "database"), Confidence.POSSIBLE),
    ],
    ids=["children", "a single one", "of a database"],
)
def test_forks_that_nobody_waits_for_are_only_possibly_children_where_no_look_found_them(roles, sure):
    """Threads that a server starts for each request are forks too, and no processes."""
    counters = {**LOOKS, "threads.events": 80, "machine.forks": 210, "PassiveOpens": 1}
    brief = [sample(at + 1, [worker(1), worker(7 + at, role=role)]) for at, role in enumerate(roles)]
    samples = (sample(0, [worker(1)]), *brief, sample(9, [worker(1), worker(99)]))
    trial = replace(HEALTHY, counters=counters, samples=samples)
    assert one(trial, FORKED_FOR_EACH).confidence is sure


def test_a_program_that_slows_an_event_loop_down_is_seen_in_looks_however_few_there_are():
    counters = {**LOOKS, "threads.events": 80, "machine.forks": 400, "PassiveOpens": 1}
    looks = [sample(at, [worker(1), worker(7 + at, role="other")]) for at in range(10)]
    trial = lasting(replace(HEALTHY, counters=counters, samples=tuple(looks)), 10)
    assert one(trial, FORKED_FOR_EACH).confidence is Confidence.LIKELY


@pytest.mark.parametrize(("forked", "named"), [(500, True), (400, False)])
def test_what_other_programs_fork_beside_a_slow_app_is_no_fork_storm(forked, named):
    """The window is ten seconds long: some forty forks a second are a shell script's."""
    counters = {**LOOKS, "threads.events": 80, "machine.forks": forked, "PassiveOpens": 1}
    trial = lasting(replace(HEALTHY, counters=counters), 10)
    assert (FORKED_FOR_EACH in kinds(trial)) is named


# --- workers ----------------------------------------------------------------------------------------------


def with_little(in_flight):
    """Requests in flight, on average over the second of the trial."""
    return {"in_flight_integral_ns": round(in_flight * SECOND)}


def used(*cores, in_flight=8.0):
    edges = [[worker(pid, cpu_s=share * second) for pid, share in enumerate(cores)] for second in (0, 4)]
    both = Placement((0, 1), (0, 1), shared=True)
    recording = with_parts(HEALTHY.recording, little=with_little(in_flight))
    samples = (sample(0, edges[0]), sample(4, edges[1]))
    return replace(HEALTHY, samples=samples, placement=both, recording=recording)


def test_a_full_worker_beside_an_idle_one_is_uneven():
    assert one(used(0.95, 0.1), UNEVEN_WORKERS).numbers["workers"] == 2


def test_with_one_request_at_a_time_one_worker_is_busy_and_nothing_is_uneven():
    assert UNEVEN_WORKERS not in kinds(used(0.95, 0.1, in_flight=1.0))


def test_workers_of_which_most_are_idle_are_not_all_busy():
    trial = used(1.0, 0.1, 0.1, 0.1, in_flight=50)
    threads = (ThreadUsage(0, 1, "loop", 4 * SECOND),)
    wide = replace(trial, threads=threads, placement=Placement((0, 1, 2, 3), (9,)))
    assert kinds(wide, subject=record(slots=16, processes=4)) == [UNEVEN_WORKERS]


@pytest.mark.parametrize(("in_flight", "named"), [(2.0, False), (8.0, True)])
def test_workers_whose_requests_have_a_core_each_are_busy_and_not_uneven(in_flight, named):
    found = kinds(used(0.95, 0.95, 0.0, 0.0, in_flight=in_flight))
    assert (UNEVEN_WORKERS in found) is named
    assert ONE_THREAD_FULL not in found


def test_workers_that_carry_the_rate_that_was_asked_for_wait_for_nothing():
    cell = replace(CELL, workload=build.Workload(build.OpenLoop(200), CELL.workload.stop))
    kept = with_parts(build.trial(cell, 0, 0, [MS] * 200).recording, little=with_little(9.0))
    assert UNEVEN_WORKERS not in kinds(replace(used(0.95, 0.1), recording=kept), cell)


@pytest.mark.parametrize("cores", [(0.9, 0.8), (0.5, 0.1), (0.95,)], ids=["alike", "not full", "alone"])
def test_workers_that_are_alike_or_have_room_are_not_uneven(cores):
    assert UNEVEN_WORKERS not in kinds(used(*cores))


def paced(*counts):
    trial = build.trial(SIX, 0, 0, [MS] * 600)
    series = [
        {"second": k, "scheduled": n, "ok": n, "failed": 0, "body_bytes": 0} for k, n in enumerate(counts)
    ]
    return replace(trial, recording=with_parts(trial.recording, series=series), samples=())


def test_a_pace_that_rises_by_a_step_was_still_cold():
    found = one(paced(50, 52, 51, 98, 101, 99), STILL_COLD, SIX)
    assert (found.numbers["seconds"], found.numbers["early_per_s"]) == (3, 51)


@pytest.mark.parametrize(
    "counts", [(98, 101, 99, 100, 97, 102), (50, 99, 52, 101, 98, 99), (99, 101, 98, 51, 50, 52)]
)
def test_a_pace_that_is_even_or_stumbles_or_falls_was_not_cold(counts):
    assert STILL_COLD not in kinds(paced(*counts), SIX)


@pytest.mark.parametrize(
    "counts", [(0, 1, 2, 1, 2, 1), (5, 8, 8, 9, 8, 8), (0, 8, 8, 8, 8, 8)], ids=["rare", "few", "a gap"]
)
def test_a_few_replies_less_in_the_beginning_are_chance_and_no_cold_server(counts):
    assert STILL_COLD not in kinds(paced(*counts), SIX)


@pytest.mark.parametrize(("took_s", "named"), [(1.05, False), (0.05, True)])
def test_a_page_that_takes_a_second_has_no_reply_in_the_first_one(took_s, named):
    trial = paced(0, 50, 50, 50, 50, 50)
    times = {"ok_service": distribution([round(took_s * SECOND)] * 250)}
    slow = replace(trial, recording=with_parts(trial.recording, distributions=times))
    assert (STILL_COLD in kinds(slow, SIX)) is named


def test_a_load_that_rises_in_stages_finds_no_cold_server():
    stages = (ConnectionStage(3 * SECOND, 1, 1), ConnectionStage(3 * SECOND, 2, 2))
    loop = replace(SIX.workload.loop, connections=2, stages=stages)
    staged = replace(SIX, workload=replace(SIX.workload, loop=loop))
    assert STILL_COLD not in kinds(paced(50, 52, 51, 98, 101, 99), staged)


def test_a_server_that_gets_no_cpu_is_slow_and_not_cold():
    trial = paced(50, 52, 51, 98, 101, 99)
    assert STILL_COLD not in kinds(with_counters(trial, threads__queue_ns=6 * SECOND), SIX)


@pytest.mark.parametrize(("used_s", "named"), [(5.9, True), (5.5, False)])
def test_a_server_whose_own_threads_fill_its_cpu_may_be_cold(used_s, named):
    trial = replace(paced(50, 52, 51, 98, 101, 99), placement=Placement((0,), (1,)))
    counted = {"threads__queue_ns": 6 * SECOND, "cgroup__server__cpu_ns": round(used_s * SECOND)}
    assert (STILL_COLD in kinds(with_counters(trial, **counted), SIX)) is named


def test_nobody_elses_work_in_the_slow_seconds_is_taken_for_a_cold_server():
    trial = replace(lasting(paced(5, *[100, 99, 101] * 13), 40), placement=Placement((0,), (1,)))
    busy = {"threads__queue_ns": 40 * SECOND, "cgroup__server__cpu_ns": round(39.05 * SECOND)}
    assert STILL_COLD not in kinds(with_counters(trial, **busy), SIX)
    alone = {**busy, "cgroup__server__cpu_ns": round(39.95 * SECOND)}
    assert STILL_COLD in kinds(with_counters(trial, **alone), SIX)


def test_what_the_generator_takes_of_shared_cpus_does_not_make_a_server_cold():
    trial = replace(paced(50, 52, 51, 98, 101, 99), placement=Placement((0,), (0,), shared=True))
    busy = {"threads__queue_ns": 6 * SECOND, "cgroup__server__cpu_ns": 3 * SECOND}
    assert STILL_COLD not in kinds(with_counters(trial, **busy, prony__cpu_ns=3 * SECOND), SIX)


# --- other programs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("beside_s", "shares"),
    [
        (None, {OTHERS_RAN: 0.4}),
        (0.0, {OTHERS_RAN: 0.8}),
        (0.8, {OTHERS_RAN_BESIDE_GENERATOR: 0.4}),
        (0.4, {OTHERS_RAN: 0.4, OTHERS_RAN_BESIDE_GENERATOR: 0.2}),
    ],
    ids=["nobody knows where", "the server's", "the generator's", "both"],
)
def test_other_programs_are_named_by_whose_cpus_they_took_and_limit_no_server_beside_the_generator(
    beside_s, shares
):
    of_cpus = {"busy": 0.9, "interrupts": 0.0, "idle": 1.1, "steal": 0.0}
    counted = {f"cpus__{name}_ns": round(part * SECOND) for name, part in of_cpus.items()}
    trial = with_counters(HEALTHY, **counted, subject__cpu_ns=SECOND // 20, prony__cpu_ns=SECOND // 20)
    if beside_s is not None:
        trial = with_counters(trial, generator_cpus__busy_ns=round((beside_s + 0.05) * SECOND))
    found = {one.kind: one.numbers["share"] for one in diagnose(Evidence(CELL, trial, record()))}
    assert found == pytest.approx(shares)
    limited = concluded(trial).cause_kind
    assert limited is (OTHERS_RAN if OTHERS_RAN in shares else None)


@pytest.mark.parametrize(
    ("placement", "beside", "found"),
    [
        (Placement((0,), tuple(range(1, 8))), 0.05, {OTHERS_RAN_BESIDE_GENERATOR: 0.05}),
        (Placement((0,), tuple(range(1, 8))), 0.0, {OTHERS_RAN: 0.48}),
        (Placement((), (0, 1)), 0.0, {OTHERS_RAN: 0.06}),
    ],
    ids=["most beside the generator", "all on the server's", "the server has none"],
)
def test_little_work_of_others_is_put_where_most_of_it_ran(placement, beside, found):
    """Of the time of eight CPUs others had 6 %."""
    of_cpus = {"busy": 0.06, "interrupts": 0.0, "idle": 0.94, "steal": 0.0}
    counted = {f"cpus__{name}_ns": round(part * SECOND) for name, part in of_cpus.items()}
    trial = replace(HEALTHY, placement=placement)
    trial = with_counters(trial, **counted, subject__cpu_ns=0, prony__cpu_ns=0)
    trial = with_counters(trial, generator_cpus__busy_ns=round(beside * SECOND))
    others = {OTHERS_RAN, OTHERS_RAN_BESIDE_GENERATOR}
    said = [one for one in diagnose(Evidence(CELL, trial, record())) if one.kind in others]
    assert {one.kind: one.numbers["share"] for one in said} == pytest.approx(found)
    (sure,) = (one.confidence for one in said)
    assert sure is (Confidence.POSSIBLE if beside else Confidence.LIKELY)


# --- development ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "log", "variables", "sign"),
    [
        (("uvicorn", "--reload", "a:b"), "", {}, "--reload"),
        (("plackup", "-E", "development", "a.psgi"), "", {}, "-E development"),
        (("gunicorn",), "", {"PYTHONDEVMODE": ""}, "PYTHONDEVMODE"),
        (("flask",), "WARNING: This is a development server.", {}, "this is a development server"),
    ],
)
def test_a_mode_for_development_shows_in_command_environment_or_log(command, log, variables, sign):
    app = replace(CELL.subject.app, environment=variables)
    cell = replace(CELL, subject=replace(CELL.subject, app=app))
    trial = replace(HEALTHY, command=command, log=LogTail(log))
    assert one(trial, DEBUGGING, cell).names == {"sign": sign}


@pytest.mark.parametrize(
    "variables",
    [
        {"FLASK_DEBUG": "0", "DJANGO_DEBUG": "False"},
        {"FLASK_DEBUG": "no", "DJANGO_DEBUG": "off"},
        {"FLASK_ENV": "development", "FLASK_DEBUG": "0"},
        {"PLACK_ENV": "deployment", "FLASK_ENV": "production", "NODE_ENV": "development"},
    ],
    ids=["nought", "no", "a mode that is switched off", "other modes"],
)
def test_variables_that_are_off_are_no_mode_for_development(variables):
    assert debugging_by(variables) == []


@pytest.mark.parametrize(
    ("variables", "sure"),
    [
        ({"PYTHONDEVMODE": "0"}, Confidence.CERTAIN),
        ({"FLASK_DEBUG": "1"}, Confidence.CERTAIN),
        ({"DJANGO_DEBUG": "True", "PLACK_ENV": "development"}, Confidence.CERTAIN),
        ({"PLACK_ENV": "development"}, Confidence.LIKELY),
        ({"FLASK_ENV": "development"}, Confidence.LIKELY),
        ({"PYTHONDEVMODE": ""}, Confidence.LIKELY),
        ({"FLASK_DEBUG": ""}, Confidence.POSSIBLE),
    ],
)
def test_variables_that_others_may_overrule_or_whose_value_nobody_kept_are_less_than_certain(variables, sure):
    assert debugging_by(variables) == [sure]


def debugging_by(variables):
    app = replace(CELL.subject.app, environment=variables)
    cell = replace(CELL, subject=replace(CELL.subject, app=app))
    found = diagnose(Evidence(cell, replace(HEALTHY, command=("gunicorn",)), record()))
    return [one.confidence for one in found if one.kind is DEBUGGING]


def test_production_is_no_mode_for_development():
    assert kinds(replace(HEALTHY, command=("plackup", "-E", "deployment", "a.psgi"))) == []


# --- what threads wait for --------------------------------------------------------------------------------


def looked(**states):
    total = sum(states.values())
    counters = {f"threads.{name}": count for name, count in states.items()}
    return {**counters, "threads.looks": total}


def waiting_for(one_lock, **states):
    trial = loaded()
    return replace(trial, counters={**trial.counters, **looked(**states), "threads.one_lock": one_lock})


def test_threads_that_stand_before_one_lock_are_named_before_their_number():
    found = kinds(waiting_for(75, wait=75, sleep=15, events=10))
    assert found == [LOCK_HELD, SLOTS_BUSY]


@pytest.mark.parametrize(
    ("one_lock", "states"),
    [(20, {"wait": 75, "sleep": 25}), (10, {"wait": 10, "sleep": 90})],
    ids=["each at a lock of its own", "few at a lock"],
)
def test_threads_that_wait_elsewhere_want_no_common_lock(one_lock, states):
    assert kinds(waiting_for(one_lock, **states)) == [SLOTS_BUSY]


def test_threads_that_are_at_files_when_they_work_wait_for_the_disk():
    trial = replace(HEALTHY, counters=looked(events=60, file=30, awake=10))
    assert one(trial, DISK_WAITED).numbers["share"] == pytest.approx(0.3)


@pytest.mark.parametrize(
    "states",
    [
        {"events": 60, "file": 10, "awake": 30},
        {"events": 98, "file": 2},
        {"downstream": 900, "file": 50, "awake": 30},
    ],
)
def test_a_few_calls_on_files_are_no_disk_that_is_waited_for(states):
    assert kinds(replace(HEALTHY, counters=looked(**states))) == []


def asking(connections, waited, in_flight=50.0):
    """A trial of one second with ten threads; in so many of a hundred looks one waited for another server."""
    trial = loaded(in_flight=in_flight)
    seen = {"downstream__connections": connections, "downstream__port": 5432}
    counted = {**looked(downstream=waited, wait=100 - waited), "threads.alive_ns": 10 * SECOND}
    samples = tuple(sample(second, **seen) for second in range(3))
    return replace(trial, samples=samples, counters={**trial.counters, **counted})


def test_a_pool_of_connections_that_are_all_waited_on_is_named_with_its_peer():
    found = one(asking(1, 10), DOWNSTREAM_BUSY)
    assert found.numbers == {"connections": 1, "share": 1.0, "port": 5432}


def test_a_pool_has_a_ceiling_as_any_resource_and_the_nearest_comes_first():
    found = concluded(asking(4, 10, in_flight=2.0))
    pool, slots = (next(one for one in found.bounds if one.resource is kind) for kind in (POOL, SLOTS))
    assert (pool.per_s, slots.per_s) == pytest.approx((40 / 0.25, 40 / 0.5))
    assert [one.resource for one in found.bounds if one.resource in {POOL, SLOTS}] == [SLOTS, POOL]
    assert POOL in found.ruled_out
    busy = concluded(asking(1, 8, in_flight=1.0))
    assert busy.bounds[0].resource is POOL
    assert "next limit: its connections to others, at about 1.2 times" in str(diagnosis_words([(busy, "")]))


@pytest.mark.parametrize("waited", [0, 1, 4])
def test_of_connections_that_hardly_a_thread_waits_for_nothing_is_known(waited):
    found = concluded(asking(20, waited, in_flight=2.0))
    assert POOL not in found.shares
    assert POOL not in found.ruled_out


@pytest.mark.parametrize(
    ("waited", "slots", "ruled_out"),
    [(23, 4, True), (25, 4, False), (39, 4, False), (10, None, False)],
    ids=["with room", "busy enough to be named", "nearly all busy", "event loops may hold them"],
)
def test_a_pool_is_ruled_out_only_where_it_has_room_and_threads_hold_it(waited, slots, ruled_out):
    found = concluded(asking(4, waited, in_flight=2.0), subject=record(slots=slots))
    assert found.shares[POOL] == pytest.approx(waited / 40)
    assert (POOL in found.ruled_out) is ruled_out


@pytest.mark.parametrize("trial", [asking(4, 10), asking(8, 80, in_flight=8.0)], ids=["idle ones", "enough"])
def test_connections_to_others_are_no_limit_while_some_are_idle_or_enough(trial):
    assert DOWNSTREAM_BUSY not in kinds(trial)


def test_waiting_for_others_is_a_part_of_the_time_of_threads():
    counted = {**looked(downstream=60, socket=20, events=20), "threads.alive_ns": 40, "threads.run_ns": 4}
    shares = thread_time(counted)
    assert shares[ThreadState.DOWNSTREAM] == pytest.approx(0.54)
    assert sum(shares.values()) == pytest.approx(1.0)


# --- few at a time ----------------------------------------------------------------------------------------


def with_alone(alone_ms, states=None, threads=10, connections=0, **options):
    """A trial of 40 replies in one second, of which one alone takes so long."""
    trial = loaded(**options)
    counted = {"alone.requests": 10, "alone.service_ns": round(alone_ms * MS)}
    counted |= {**looked(**(states or {"events": 40})), "threads.alive_ns": threads * SECOND}
    seen = {"downstream__connections": connections, "downstream__port": 5432} if connections else {}
    samples = tuple(sample(second, **seen) for second in range(3))
    return replace(trial, samples=samples, counters={**trial.counters, **counted})


def test_a_loop_that_works_on_one_request_at_a_time_and_waits_for_no_events_is_blocked():
    found = one(with_alone(25, {"sleep": 40}, threads=1), LOOP_BLOCKED, subject=record(slots=None))
    assert found.numbers["at_a_time"] == pytest.approx(1.0)
    assert found.names == {"waits": "a sleep"}
    assert found.rule == "D43"


@pytest.mark.parametrize(
    ("trial", "subject", "kind"),
    [
        (with_alone(25, {"events": 40}, threads=1), record(slots=None), ONE_AT_A_TIME),
        (with_alone(25, {"events": 40}, connections=1), record(slots=None), ONE_AT_A_TIME),
        (with_alone(25, {"events": 40}, connections=20), record(slots=None), ONE_AT_A_TIME),
        (with_alone(25, {"file_lock": 30, "sleep": 10}), record(slots=16), ONE_AT_A_TIME),
        (with_alone(50, {"sleep": 40}), record(slots=16), LOCK_POLLED),
        (with_alone(75, {"sleep": 40}, threads=1), record(slots=None), FEW_AT_A_TIME),
        (with_alone(50, {"sleep": 40}, threads=2), record(slots=None, processes=2), LOOP_BLOCKED),
        (with_alone(50, connections=2), record(slots=None), POOL_SMALL),
        (with_alone(100, connections=9), record(slots=16), FEW_AT_A_TIME),
        (with_alone(100, connections=4), record(slots=16), POOL_SMALL),
    ],
    ids=[
        "waits for events",
        "over one connection",
        "with more connections",
        "a lock on a file",
        "sleeps",
        "three",
        "two processes",
        "a pool",
        "a pool with room",
        "fewer than threads",
    ],
)
def test_how_many_are_worked_on_says_what_the_others_wait_for(trial, subject, kind):
    assert kinds(trial, subject=subject) == [kind]


@pytest.mark.parametrize(
    ("states", "kind"),
    [
        ({"downstream": 36, "wait": 3, "events": 1}, POOL_THREADS),
        ({"downstream": 36, "wait": 36, "events": 1}, POOL_SMALL),
        ({"events": 40}, POOL_SMALL),
    ],
    ids=["each in a call", "as many wait for one another", "none in a call"],
)
def test_a_pool_of_threads_is_one_whose_threads_are_each_in_a_call(states, kind):
    trial = with_alone(980, states, threads=41, in_flight=100.0, connections=40)
    found = one(trial, kind, subject=record(slots=None))
    if kind is POOL_THREADS:
        assert found.names == {"waits": "another server"}
        assert found.numbers["at_a_time"] == pytest.approx(39.2)


def unread_by(trial, count):
    return replace(trial, samples=tuple(sample(second, unread__server=count) for second in range(3)))


# A lock within a loop that goes on reading leaves none unread; one that a call blocks is always behind.
@pytest.mark.parametrize(("unread", "kind"), [(20, LOOP_BLOCKED), (2, ONE_AT_A_TIME)])
def test_a_loop_that_leaves_requests_unread_is_blocked_whatever_its_threads_show(unread, kind):
    trial = unread_by(with_alone(25, {"events": 40}, threads=1), unread)
    assert kinds(trial, subject=record(slots=None)) == [kind]


@pytest.mark.parametrize(("spaced_ms", "kind"), [(1, PACED), (20, PACED), (21, ONE_AT_A_TIME)])
def test_requests_that_are_quick_when_they_are_far_apart_are_let_through_at_a_rate(spaced_ms, kind):
    trial = with_alone(25, {"events": 40}, threads=1)
    trial = with_counters(trial, **{"alone__spaced_ns": spaced_ms * MS})
    found = one(trial, kind, subject=record(slots=None))
    assert found.numbers.get("spaced_ns", spaced_ms * MS) == spaced_ms * MS


# A pool of three, of which two are at work, has no request that waits for its turn.
@pytest.mark.parametrize(("spaced_ms", "kind"), [(24, PACED), (26, FEW_AT_A_TIME)])
def test_of_several_at_a_time_only_much_quicker_ones_are_let_through_at_a_rate(spaced_ms, kind):
    trial = with_counters(with_alone(50, threads=1), alone__spaced_ns=spaced_ms * MS)
    assert kinds(trial, subject=record(slots=None)) == [kind]


@pytest.mark.parametrize(
    ("states", "unread", "cores", "is_found"),
    [
        ({"other": 40, "child": 40, "wait": 120}, 30, 0.04, True),
        ({"other": 40, "child": 40, "wait": 120}, 20, 0.04, False),
        ({"other": 80, "child": 40, "wait": 80}, 30, 0.04, False),
        ({"events": 40, "child": 40, "wait": 120}, 30, 0.04, False),
        ({"other": 40, "child": 40, "wait": 120}, 30, 0.8, False),
    ],
    ids=["a write into a pipe", "most are read", "two in calls", "none in a call", "its CPU is busy"],
)
def test_requests_that_lie_unread_beside_a_thread_in_a_call_show_a_loop_that_is_blocked(
    states, unread, cores, is_found
):
    trial = unread_by(with_alone(0.1, states, threads=5, cores=cores), unread)
    assert (REQUESTS_UNREAD in kinds(trial, subject=record(slots=None))) is is_found
    if is_found:
        assert one(trial, REQUESTS_UNREAD, subject=record(slots=None)).names == {"waits": "another call"}


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (["pool-1-thread-1", "pool-1-thread-2"], POOL_THREADS),
        ([f"pool-1-thread-{number}" for number in range(9)], POOL_SMALL),
        (["java", "java"], POOL_SMALL),
    ],
    ids=["as many", "more of them", "no numbers"],
)
def test_threads_of_a_pool_are_known_by_their_name_and_number(names, kind):
    threads = tuple(ThreadUsage(7, tid, name, 10 * MS) for tid, name in enumerate(names))
    trial = replace(with_alone(50, {"wait": 40}, connections=2), threads=threads)
    assert kinds(trial, subject=record(slots=None)) == [kind]


def of_processes(trial, unread, threads, used_ms):
    """The looks of a trial: a master, and processes that used so much CPU, with so many threads each."""
    rows = [[worker(7, 0.01 * k, role="master")] for k in range(3)]
    for k, each in enumerate(rows):
        for pid, used in enumerate(used_ms, 10):
            each.append(replace(worker(pid, used * k / 2000), threads=threads))
    looks = (sample(k, each, unread__server=unread) for k, each in enumerate(rows))
    return replace(trial, samples=tuple(looks))


@pytest.mark.parametrize(
    ("unread", "threads", "used_ms", "kind"),
    [
        (46, 1, (90, 110), PROCESSES_BUSY),
        (10, 1, (90, 110), FEW_AT_A_TIME),
        (46, 4, (90, 110), FEW_AT_A_TIME),
        (46, 1, (90, 90, 110), FEW_AT_A_TIME),
        (46, 1, (90, 0), FEW_AT_A_TIME),
    ],
    ids=["two of two", "most are read", "threads in each", "three", "one idles"],
)
def test_as_many_processes_as_requests_that_are_worked_on_are_the_limit(unread, threads, used_ms, kind):
    trial = of_processes(with_alone(50, {"events": 40}, threads=2), unread, threads, used_ms)
    assert kinds(trial, subject=record(slots=None)) == [kind]


def held_up(times, alone_ms, in_flight, unread=0, cores=0.04, mean_ms=None, **gauges):
    """A trial of a second whose replies took so long, of which one alone takes much less, and on average."""
    trial = build.trial(CELL, 0, 0, times)
    little = {"in_flight_integral_ns": round(in_flight * SECOND)}
    counted = {"alone.requests": 10, "alone.service_ns": round(alone_ms * MS)}
    counted["alone.mean_ns"] = round((mean_ms or alone_ms) * MS)
    counted["cgroup.server.cpu_ns"] = round(cores * SECOND)
    looks = tuple(sample(k, unread__server=unread, **gauges) for k in range(3))
    recording = with_parts(trial.recording, little=little)
    placed = Placement((0,), (9,))
    return replace(trial, recording=recording, counters=counted, samples=looks, placement=placed)


QUICK_AND_SLOW = [MS // 2] * 380 + [250 * MS] * 20


# A page of which one in twenty is slow takes as long alone, on average.
@pytest.mark.parametrize(
    ("changes", "slots", "is_found"),
    [
        ({}, None, True),
        ({}, 6, True),
        ({}, 4, False),
        ({"unread": 2}, None, False),
        ({"cores": 0.6}, None, False),
        ({"mean_ms": 12.5}, None, False),
        ({"mean_ms": 6.0}, None, False),
        ({"times": [12 * MS] * 400}, None, False),
        ({"times": [MS // 20] * 380 + [20 * MS] * 20}, None, False),
    ],
    ids=[
        "stops",
        "slots",
        "few slots",
        "unread",
        "its CPU is busy",
        "a slow page",
        "half",
        "all are slow",
        "short",
    ],
)
def test_a_server_whose_replies_are_quick_but_for_stops_of_all_stands_still(changes, slots, is_found):
    parts = {"times": QUICK_AND_SLOW, "alone_ms": 0.03, "mean_ms": 0.3, "in_flight": 5.2, **changes}
    trial = held_up(**parts)
    assert (STANDS_STILL in kinds(trial, subject=record(slots=slots))) is is_found
    if is_found:
        found = one(trial, STANDS_STILL, subject=record(slots=slots))
        assert found.numbers["mean_ns"] == pytest.approx(12.9 * MS, rel=0.01)
        assert concluded(trial, subject=record(slots=None)).cause_kind is STANDS_STILL


def test_an_archive_that_counts_no_reply_divides_by_none():
    trial = held_up(QUICK_AND_SLOW, 0.03, 5.2)
    times = replace(trial.recording.distributions.ok_service, count=0)
    found = replace(trial.recording.distributions, ok_service=times)
    trial = replace(trial, recording=replace(trial.recording, distributions=found))
    assert STANDS_STILL not in kinds(trial, subject=record(slots=None))


@pytest.mark.parametrize(
    ("waits", "database_s", "kind"),
    [(14, 0.0, PEER_FULL), (14, 0.95, None), (4, 0.0, STANDS_STILL)],
    ids=["for its replies", "that computes", "for few of them"],
)
def test_quick_pages_that_wait_for_what_they_ask_are_held_up_there(waits, database_s, kind):
    asked = {"connections": 21, "port": 5432, "at_port": 21, "waits": waits, "waits_port": 5432}
    gauges = {f"downstream__{name}": value for name, value in asked.items()}
    trial = held_up([5 * MS] * 250 + [490 * MS] * 30, 0.9, 16, **gauges)
    used = {"asked__database__cpu_ns": round(database_s * SECOND), "cpus__busy_ns": 1, "cpus__idle_ns": 0}
    trial = with_counters(trial, **used)
    found = {*kinds(trial, subject=record(slots=None))} & {*WAITS_WITHIN, STANDS_STILL}
    assert found == ({kind} if kind else set())


@pytest.mark.parametrize(("ready", "is_found"), [(0.2, True), (0.4, False)])
def test_a_loop_that_waits_for_its_cpu_is_not_blocked(ready, is_found):
    trial = with_counters(with_alone(25, {"sleep": 40}, threads=1), threads__queue_ns=round(ready * SECOND))
    assert (LOOP_BLOCKED in kinds(trial, subject=record(slots=None))) is is_found


@pytest.mark.parametrize(
    ("trial", "subject"),
    [
        (with_alone(25, in_flight=1.4), record(slots=None)),
        (with_alone(1.9), record(slots=None)),
        (with_alone(25, cores=0.8), record(slots=None)),
        (with_alone(25, threads=1), record(slots=1)),
    ],
    ids=["none waits", "too short to know", "its CPU is busy", "its one thread"],
)
def test_few_at_a_time_are_none_that_wait_for_each_other(trial, subject):
    assert {*WAITS_WITHIN}.isdisjoint(kinds(trial, subject=subject))


def asked_on(trial, **gauges):
    seen = {f"downstream__{name}": value for name, value in gauges.items()}
    return replace(trial, samples=tuple(sample(second, **seen) for second in range(3)))


# Some wait for a reply all the time: a queue's consumer, a listener.
@pytest.mark.parametrize(("waits", "kind"), [(26, PEER_FULL), (24, FEW_AT_A_TIME), (2, FEW_AT_A_TIME)])
def test_what_it_asks_is_the_limit_where_half_of_the_requests_wait_for_its_replies(waits, kind):
    seen = {"connections": 48, "port": 5432, "at_port": 24, "waits": waits, "waits_port": 5433}
    found = one(asked_on(with_alone(50), **seen), kind, subject=record(slots=None))
    if kind is PEER_FULL:
        # Who waits for a reply does not wait for a CPU.
        late = with_counters(asked_on(with_alone(50), **seen), threads__queue_ns=SECOND)
        assert PEER_FULL in kinds(late, subject=record(slots=None))
        assert (found.numbers["due"], found.numbers["port"]) == (26, 5433)


# Forty requests a second that take half a second each: twenty are open, and none waits for another one.
@pytest.mark.parametrize(
    ("waits", "cores", "in_flight", "alone_ms", "is_found"),
    [
        (8, 0.04, 20.0, 500, True),
        (7, 0.04, 20.0, 500, False),
        (8, 0.8, 20.0, 500, False),
        (16, 0.04, 40.0, 500, False),
        (1, 0.04, 0.8, 19, False),
    ],
    ids=["four of ten", "few", "its CPU is busy", "others wait within", "quick"],
)
def test_requests_that_take_as_long_alone_and_wait_for_what_they_ask_are_told_so(
    waits, cores, in_flight, alone_ms, is_found
):
    seen = {"connections": 38, "port": 9515, "at_port": 20, "waits": waits, "waits_port": 9515}
    trial = asked_on(with_alone(alone_ms, in_flight=in_flight, cores=cores), **seen)
    assert (PEER_SLOW in kinds(trial, subject=record(slots=None))) is is_found
    if is_found:
        found = concluded(trial, subject=record(slots=None))
        assert (found.kind, found.beside[0].finding.kind) == (DiagnosisKind.NOT_AT_LIMIT, PEER_SLOW)


def test_threads_show_where_they_wait_for_a_reply_to_a_question_right_after_another():
    trial = asked_on(with_alone(25, {"downstream": 30, "events": 10}, threads=32), connections=24, port=5432)
    assert one(trial, PEER_FULL, subject=record(slots=32)).numbers == pytest.approx(
        {"due": 24, "port": 5432, "at_a_time": 1, "in_flight": 50, "alone_ns": 25 * MS, "cpu_share": 0.04}
    )


@pytest.mark.parametrize(("idle_s", "kind"), [(0.0, PEER_COMPUTES), (0.9, POOL_SMALL)])
def test_what_it_asks_is_the_limit_where_it_computes_for_as_many_as_are_worked_on(idle_s, kind):
    used = {
        "asked__database__cpu_ns": round(1.8 * SECOND),
        "asked__database__idle_ns": round(idle_s * SECOND),
    }
    trial = with_counters(with_alone(50, connections=2), **used)
    found = one(trial, kind, subject=record(slots=None))
    if kind is PEER_COMPUTES:
        assert found.names == {"role": "its database"}
        assert found.numbers["cpu_ns"] == pytest.approx(45 * MS)


@pytest.mark.parametrize(
    ("opened", "idle_s", "cores", "kind"),
    [
        (40, 0.5, 0.9, PEER_CONNECTS),
        (0, 0.5, 0.9, FEW_AT_A_TIME),
        (0, 0.1, 0.9, PEER_COMPUTES),
        (40, 0.5, 0.8, FEW_AT_A_TIME),
    ],
    ids=["connects", "the machine has room", "the machine is full", "it has room"],
)
def test_what_it_asks_uses_one_cpu_while_connections_are_opened_or_none_is_left(opened, idle_s, cores, kind):
    trial = with_alone(75, threads=1)
    trial = with_counters(
        trial,
        ActiveOpens=opened + trial.recording.connections.opened,
        asked__service__cpu_ns=round(cores * SECOND),
        cpus__idle_ns=round(idle_s * SECOND),
        cpus__busy_ns=round((2 - idle_s) * SECOND),
    )
    found = one(asked_on(trial, connections=9, port=5432), kind, subject=record(slots=None))
    if kind is PEER_CONNECTS:
        assert (found.numbers["connects"], found.numbers["cores"]) == (0.975, 0.9)


def test_a_pool_is_counted_at_the_peer_that_has_most():
    trial = asked_on(with_alone(100), connections=9, port=5432, at_port=4, waits=4, waits_port=5432)
    assert one(trial, POOL_SMALL, subject=record(slots=16)).numbers["connections"] == 4


def test_threads_that_each_have_a_connection_are_too_few_and_not_these():
    trial = with_counters(
        asked_on(loaded(), connections=4, port=5432, at_port=4),
        **{f"threads__{name}": count for name, count in {"looks": 40, "downstream": 40}.items()},
        threads__alive_ns=4 * SECOND,
    )
    assert kinds(trial, subject=record(slots=4)) == [SLOTS_BUSY]
    assert DOWNSTREAM_BUSY in kinds(trial, subject=record(slots=16))


def test_a_lock_on_a_file_is_no_disk_and_is_said():
    found = one(with_alone(25, {"file_lock": 30, "sleep": 10}), ONE_AT_A_TIME, subject=record(slots=16))
    assert found.names == {"waits": "a lock on a file"}


# --- asked often ------------------------------------------------------------------------------------------


def asking_often(last, states=None, active_opens=0):
    """Forty replies in one second, and so many messages to others in two."""
    trial = asked_on(with_counters(loaded(), ActiveOpens=active_opens), connections=4, port=5432)
    looks = tuple(
        replace(each, gauges={**each.gauges, "downstream.sent": last * second // 2})
        for second, each in enumerate(trial.samples)
    )
    counted = {**looked(**(states or {"downstream": 40})), "threads.alive_ns": 4 * SECOND}
    return replace(trial, samples=looks, counters={**trial.counters, **counted})


@pytest.mark.parametrize(
    ("states", "sure"), [({"downstream": 40}, Confidence.LIKELY), ({"sleep": 40}, Confidence.POSSIBLE)]
)
def test_a_page_that_asks_many_times_is_the_cause_where_threads_wait_for_others(states, sure):
    found = one(asking_often(80 * 30, states), ASKED_OFTEN)
    assert (found.confidence, found.numbers["sent"]) == (sure, pytest.approx(30))
    assert ASKED_OFTEN not in kinds(asking_often(80 * 19, states))


@pytest.mark.parametrize(("alone_ms", "sure"), [(29, Confidence.LIKELY), (31, Confidence.POSSIBLE)])
def test_a_page_that_alone_is_as_long_as_its_questions_is_limited_by_them(alone_ms, sure):
    trial = with_counters(asking_often(80 * 30, {"sleep": 40}), alone__service_ns=alone_ms * MS)
    assert one(trial, ASKED_OFTEN).confidence is sure


@pytest.mark.parametrize(
    ("sent", "alone_ms", "cores", "in_flight", "sure"),
    [
        (9, 50, 0.04, 2.0, Confidence.LIKELY),
        (7, 50, 0.04, 2.0, None),
        (9, 9, 0.04, 0.4, None),
        (9, 50, 0.6, 2.0, None),
        (9, 50, 0.04, 4.0, Confidence.POSSIBLE),
    ],
    ids=["a long page", "few", "a short page", "it computes", "it waits for others"],
)
def test_some_questions_are_enough_for_a_long_page_that_does_nothing_else(
    sent, alone_ms, cores, in_flight, sure
):
    asks = asking_often(80 * sent, {"events": 40})
    trial = replace(loaded(in_flight=in_flight, cores=cores), samples=asks.samples)
    trial = with_counters(trial, **{name: asks.counters[name] for name in asks.counters if "threads" in name})
    trial = with_counters(trial, alone__service_ns=alone_ms * MS)
    found = [each for each in diagnose(Evidence(CELL, trial, record(slots=None))) if each.kind is ASKED_OFTEN]
    assert [each.confidence for each in found] == ([sure] if sure else [])


def opening(connections, asked="asked__service__cpu_ns"):
    trial = with_counters(asking_often(0, active_opens=connections), **{asked: 1})
    return replace(trial, recording=with_parts(trial.recording, connections={"opened": 50, "reconnects": 0}))


@pytest.mark.parametrize(
    ("trial", "is_found"),
    [(opening(70), True), (opening(60), False), (opening(70, asked="none"), False)],
    ids=["one for two", "the generator's", "a router to its own workers"],
)
def test_connections_to_others_for_each_request_are_said_and_are_no_cause(trial, is_found):
    assert (CONNECTED_OFTEN in kinds(trial)) is is_found
    assert concluded(trial).cause_kind is not CONNECTED_OFTEN


def test_a_pool_that_is_little_smaller_than_the_threads_is_the_cause_and_not_their_number():
    trial = asked_on(with_alone(125, {"downstream": 40}), connections=5, port=5432, at_port=5, waits=5)
    assert kinds(trial, subject=record(slots=8))[0] is DOWNSTREAM_BUSY


def test_threads_that_wait_for_each_other_are_not_too_few():
    assert SLOTS_BUSY in kinds(with_alone(100), subject=record(slots=4))
    assert SLOTS_BUSY not in kinds(with_alone(100), subject=record(slots=16))


def test_a_subject_whose_requests_wait_for_each_other_is_not_said_to_have_room():
    quick = with_alone(500, in_flight=20.0)
    slow = with_alone(1, in_flight=20.0)
    some = record(slots=1000)
    assert concluded(quick, subject=some).kind is DiagnosisKind.NOT_AT_LIMIT
    assert concluded(slow, subject=some).kind is DiagnosisKind.UNKNOWN


@pytest.mark.parametrize(("cores", "kind"), [(0.84, DiagnosisKind.UNKNOWN), (0.86, DiagnosisKind.CPU)])
def test_what_can_carry_a_sixth_more_at_most_is_said_to_be_bound_by_its_cpu(cores, kind):
    found = concluded(loaded(cores=cores), subject=record(slots=None))
    assert found.kind is kind
    assert found.confidence in (Confidence.LIKELY, Confidence.POSSIBLE)
    assert (Resource.CPU in found.ruled_out) is (kind is DiagnosisKind.UNKNOWN)


def test_a_generator_that_is_late_does_not_explain_requests_that_wait_for_each_other():
    trial = with_alone(25, {"sleep": 40}, threads=1)
    late = Finding(GENERATOR_KEPT_WAITING, Confidence.LIKELY, affected=Affected.ALL)
    own = observe(Evidence(CELL, trial, record(slots=None)))
    assert conclude([replace(own, findings=(late, *own.findings))]).cause_kind is LOOP_BLOCKED
    assert conclude([replace(own, findings=(late,))]).cause_kind is GENERATOR_KEPT_WAITING


def test_more_connections_are_advised_only_where_each_request_is_as_quick_as_alone():
    def line(alone_ms):
        found = concluded(with_alone(alone_ms, in_flight=20.0), subject=record(slots=None))
        return str(diagnosis_words([(found, "")]))

    assert line(490).startswith("not at its limit, carries at least 40.0 /s")
    assert "more connections may carry more (-c)" in line(490)
    assert "more connections" not in line(1.5)


def test_more_connections_are_not_advised_where_those_in_all_slots_wait_for_one_another():
    found = concluded(with_alone(100, in_flight=15.9, cores=0.75), subject=record(slots=16))
    assert found.kind is DiagnosisKind.UNKNOWN
    said = str(diagnosis_words([(found, "")]))
    assert said.startswith(
        "what limits it is unknown: all its workers and threads (16) had a request, and it worked on 4.0 of "
        "these at a time, by how long one takes alone: the others waited within it, as for a CPU or a lock; "
        "ruled out: its CPU (75%)"
    )


# --- starvation and full queues ---------------------------------------------------------------------------

CLOSING = replace(CELL.workload.request, keep_alive=False)


@pytest.mark.parametrize(("kept", "named"), [(True, True), (False, False)])
def test_connections_for_each_request_that_a_full_queue_turns_away_are_not_starved(kept, named):
    cell = replace(
        CELL, workload=replace(CELL.workload, request=replace(CELL.workload.request, keep_alive=kept))
    )
    trial = with_counters(HEALTHY, ListenOverflows=900)
    answered = {"answered": {"connections": 50, "without_reply": 40, "min": 0, "max": 90}}
    looks = tuple(sample(k, established__server=10) for k in range(3))
    trial = replace(trial, recording=with_parts(trial.recording, connections=answered), samples=looks)
    assert (STARVED in kinds(trial, cell)) is named


@pytest.mark.parametrize(("overflows", "established"), [(1, 50), (900, 50), (1, 10), (900, None)], ids=str)
def test_connections_that_wait_in_the_queue_are_not_turned_away(overflows, established):
    answered = {"answered": {"connections": 50, "without_reply": 46, "min": 0, "max": 9}}
    looks = () if established is None else tuple(sample(k, established__server=established) for k in (0, 1))
    recording = with_parts(HEALTHY.recording, connections=answered)
    trial = replace(with_counters(HEALTHY, ListenOverflows=overflows), recording=recording, samples=looks)
    cell = replace(CELL, workload=replace(CELL.workload, request=CLOSING))
    assert STARVED_BY_SLOTS in kinds(trial, cell, record(slots=4))
    assert "without_reply" not in one(trial, QUEUE_OVERFLOWED, cell).numbers


def test_of_connections_that_starve_those_in_the_queue_are_not_turned_away():
    closing = replace(CELL, workload=replace(CELL.workload, request=CLOSING))
    answered = {"answered": {"connections": 200, "without_reply": 190, "min": 0, "max": 9}}
    recording = with_parts(HEALTHY.recording, connections=answered)
    looks = tuple(sample(k, established__server=130 + k) for k in range(3))
    trial = replace(with_counters(HEALTHY, ListenOverflows=900), recording=recording, samples=looks)
    assert one(trial, QUEUE_OVERFLOWED, closing).numbers["without_reply"] == 68
    assert STARVED in kinds(trial, closing)


@pytest.mark.parametrize(
    ("ok", "failed", "reconnects", "failures", "named"),
    [(24_529, 67_057, 30_681, 63_496, False), (121_970, 49_019, 19_097, 32_375, True)],
    ids=["it closes each", "it keeps them"],
)
def test_a_server_that_closes_each_connection_starves_nobody_by_keeping_some(
    ok, failed, reconnects, failures, named
):
    answered = {"connections": 10_000, "without_reply": 5284, "min": 0, "max": 12}
    recording = with_parts(
        HEALTHY.recording,
        completed={"ok": ok, "failed": failed},
        connections={"answered": answered, "reconnects": reconnects, "connect_failures": failures},
    )
    looks = tuple(sample(k, established__server=900) for k in range(3))
    trial = replace(with_counters(HEALTHY, ListenOverflows=170_000), recording=recording, samples=looks)
    assert (STARVED in kinds(trial)) is named
    assert (concluded(trial).cause_kind is QUEUE_OVERFLOWED) is not named


def kept(queued, taken, overflows=60, served=30, slots=4, limit=5, **facts):
    """A closed loop of 100 kept connections; at each look so many wait in the queue, so many are taken."""
    answered = {"answered": {"connections": 100, "without_reply": 100 - served, "min": 0, "max": 900}}
    looks = [
        sample(k, listen__server__queued=one, listen__server__limit=limit, established__server=taken + one)
        for k, one in enumerate(queued)
    ]
    recording = with_parts(HEALTHY.recording, connections=answered, completed={"ok": 90_000, "failed": 0})
    trial = replace(HEALTHY, recording=recording, samples=tuple(looks))
    return with_counters(trial, ListenOverflows=overflows), replace(record(slots=slots), **facts)


def test_kept_connections_that_a_full_queue_turns_away_wait_for_the_queue_and_not_for_workers():
    trial, subject = kept([6, 0, 0, 0], taken=30, slots=None)
    assert concluded(trial, subject=subject).cause_kind is QUEUE_OVERFLOWED
    found = one(trial, QUEUE_OVERFLOWED, subject=subject)
    assert found.numbers["without_reply"] == 60
    words = "60 connections arrived when the listen queue of 5 was full"
    assert words in str(finding_words(found, ""))
    assert "60 of them had no reply in the window" in str(finding_words(found, ""))


@pytest.mark.parametrize(("longest", "starved"), [(3, True), (6, False)])
def test_on_the_hosts_network_only_a_queue_that_was_full_turned_its_clients_away(longest, starved):
    host = SandboxFacts(Network.HOST)
    trial, subject = kept([longest, 0, 0, 0], taken=30, overflows=90, slots=None, sandbox=host)
    assert (STARVED in kinds(trial, subject=subject)) is starved


@pytest.mark.parametrize(
    ("opened", "kind"),
    [(109, QUEUE_OVERFLOWED), (115, SOME_QUEUE_OVERFLOWED)],
    ids=["ours", "perhaps others'"],
)
def test_on_the_hosts_network_a_queue_that_hardly_anybody_else_can_have_filled_is_its_own(opened, kind):
    host = SandboxFacts(Network.HOST)
    trial, subject = kept([3, 0, 0, 0], taken=30, overflows=90, slots=None, sandbox=host)
    recording = with_parts(trial.recording, connections={"opened": 100, "reconnects": 0})
    assert one(with_counters(replace(trial, recording=recording), ActiveOpens=opened), kind, subject=subject)


@pytest.mark.parametrize(
    ("observed", "kind"),
    [
        (kept([6, 6, 6, 5], taken=4, served=4), STARVED_BY_SLOTS),
        (kept([96] * 4, taken=4, served=4, limit=1024), STARVED_BY_SLOTS),
        (kept([6, 0, 0, 0], taken=100, served=10, slots=10), STARVED_BY_SLOTS),
        (kept([0, 0, 0, 0], taken=30, overflows=0), STARVED),
        (kept([], taken=30), STARVED),
    ],
    ids=[
        *("nobody empties it", "a long one that nobody empties, and another's overflows"),
        *("they are taken and get nothing", "none was turned away", "nobody looked"),
    ],
)
def test_connections_that_wait_for_workers_starve_whatever_the_queue_counted(observed, kind):
    trial, subject = observed
    assert concluded(trial, subject=subject).cause_kind is kind


# --- a cap of open connections ----------------------------------------------------------------------------

WAITRESS = {"server": {"name": "waitress"}, "settings": {"threads": 4, "connection_limit": 20}}


def capped(*taken, waiting=82, served=18, sockets=1, total=100):
    """A trial in which the server had so many of its connections open at each look, and others waited."""
    answered = {"answered": {"connections": total, "without_reply": total - served, "min": 0, "max": 90}}
    gauges = {"listen__server__queued": waiting, "listen__server__sockets": sockets}
    looks = [sample(k, established__server=one + waiting, **gauges) for k, one in enumerate(taken)]
    recording = with_parts(HEALTHY.recording, connections=answered)
    return replace(HEALTHY, recording=recording, samples=tuple(looks))


def test_a_server_that_takes_no_more_connections_than_its_setting_says_is_at_its_cap():
    found = one(capped(18, 18, 18), CONNECTION_CAP, subject=record(entry=WAITRESS))
    assert (found.rule, found.confidence) == ("D09", Confidence.CERTAIN)
    assert found.numbers == {"cap": 18, "waiting": 82, "connections": 100}
    assert found.knob == Knob("waitress", "connection_limit", 20)
    assert "it had 18 connections open of 100" in str(finding_words(found, ""))


@pytest.mark.parametrize("later", [164, 84])
def test_a_queue_of_clients_that_gave_up_does_not_hide_the_cap(later):
    trial = capped(58, 58, waiting=42, served=58, total=100)
    longer = replace(trial.samples[0], gauges={**trial.samples[0].gauges, "listen.server.queued": later})
    assert CONNECTION_CAP in kinds(replace(trial, samples=(*trial.samples, longer)))


def test_a_switch_is_no_cap_of_connections():
    switched = {"server": {"name": "a"}, "settings": {"keep_connections": True}}
    found = kinds(capped(1, 1, waiting=9, served=1, total=10), subject=record(slots=None, entry=switched))
    assert found == [STARVED]


def test_a_server_whose_workers_nobody_knows_is_at_its_cap_only_where_a_setting_says_so():
    unknown = record(slots=None, entry=WAITRESS)
    assert one(capped(18, 18), CONNECTION_CAP, subject=unknown).confidence is Confidence.CERTAIN


def test_a_cap_that_no_setting_explains_is_likely_and_is_no_starvation():
    trial = capped(18, 18)
    assert one(trial, CONNECTION_CAP).confidence is Confidence.LIKELY
    assert STARVED not in kinds(trial)


@pytest.mark.parametrize(
    ("trial", "subject"),
    [
        (capped(18, 18), record(slots=18)),
        (capped(18, 18), record(slots=17)),
        (capped(18, 18), record(slots=None)),
        (capped(10, 18), record()),
        (capped(18, 18, waiting=0), record()),
        (capped(40, 40), record()),
        (capped(18, 18, sockets=2), record()),
        (capped(18), record()),
    ],
    ids=[
        *("its workers", "one more than these", "nobody knows its workers", "it still takes", "none waits"),
        *("it serves fewer", "several sockets", "one look"),
    ],
)
def test_other_connections_that_starve_are_at_no_cap(trial, subject):
    found = kinds(trial, subject=subject)
    assert CONNECTION_CAP not in found
    assert {STARVED, STARVED_BY_SLOTS} & set(found)


# --- connections of workers -------------------------------------------------------------------------------


def held(most, least, workers=2, total=None, **parts):
    """Workers of four threads each, of which one has so many kept connections, and one so few."""
    counters = {
        "workers__watched": workers,
        "workers__connections": total or most + least,
        "workers__connections_most": most,
        "workers__connections_least": least,
    }
    return with_counters(loaded(in_flight=6.0, **parts), **counters)


def of_two(**facts):
    return record(slots=8, processes=2, **facts)


def test_connections_that_stick_to_one_worker_that_waits_are_told():
    found = one(held(7, 1), UNEVEN_CONNECTIONS, subject=of_two())
    assert (found.rule, found.numbers) == ("D18", {"workers": 2, "most": 7, "least": 1, "slots": 4})
    assert "one had 7 connections, another 1, each works on 4 at once" in str(finding_words(found, ""))


@pytest.mark.parametrize(
    ("trial", "subject"),
    [
        (held(4, 0), of_two()),
        (held(7, 4), of_two()),
        (held(5, 3), of_two()),
        (held(7, 1, cores=0.9), of_two()),
        (held(7, 1), record(slots=None)),
        (held(7, 1, workers=1), of_two()),
    ],
    ids=["none has too many", "none has room", "by chance", "its CPU is full", "event loops", "one"],
)
def test_connections_that_are_spread_well_enough_are_not_told(trial, subject):
    assert UNEVEN_CONNECTIONS not in kinds(trial, subject=subject)


def test_connections_that_find_no_room_however_they_are_spread_wait_for_workers_and_threads():
    # Recorded: Gunicorn with 4 x 4 threads and 60 clients, on a busy machine.
    trial = replace(held(54, 0, workers=4, total=60), recording=loaded(in_flight=64.0).recording)
    found = kinds(trial, subject=record(slots=16, processes=4))
    assert (SLOTS_BUSY in found, UNEVEN_CONNECTIONS in found) == (True, False)
    busy = one(trial, SLOTS_BUSY, subject=record(slots=16, processes=4))
    assert busy.confidence is Confidence.LIKELY


def test_connections_that_are_not_kept_do_not_stick():
    closing = replace(CELL.workload, request=replace(CELL.workload.request, keep_alive=False))
    assert UNEVEN_CONNECTIONS not in kinds(held(7, 1), cell=replace(CELL, workload=closing), subject=of_two())


# --- what cannot be planted here: recorded evidence --------------------------------------------------------


def off(residual, integral_ns=SECOND):
    little = {"residual": residual, "in_flight_integral_ns": integral_ns}
    return replace(HEALTHY, recording=with_parts(HEALTHY.recording, little=little))


@pytest.mark.parametrize("residual", [-0.5, 0.11])
def test_figures_of_a_generator_that_contradict_each_other_are_named_before_all_else(residual):
    trial = off(residual)
    found = one(trial, FIGURES_CONTRADICT)
    assert (found.rule, found.confidence) == ("D39", Confidence.CERTAIN)
    assert found.numbers == {"off": abs(residual)}
    spoilt = judge(with_counters(trial, ListenOverflows=99), Circumstances())
    assert isinstance(spoilt.outcome, Invalid)
    said = str(diagnosis_words([(concluded(spoilt), "")]))
    assert said.startswith("limited by a generator whose figures contradict each other")


@pytest.mark.parametrize("trial", [off(0.09), off(-0.5, 50 * MS), off(None)])
def test_figures_that_agree_within_a_tenth_or_of_next_to_nothing_contradict_nothing(trial):
    assert kinds(trial) == []


def test_a_table_of_connections_that_is_full_is_certain_in_a_network_of_its_own():
    counters = {"conntrack__entries": 65536, "conntrack__dropped": 912, "conntrack__most": 65536}
    found = one(with_counters(HEALTHY, **counters), TRACKING_FULL)
    assert (found.rule, found.confidence) == ("D07", Confidence.CERTAIN)
    assert "was full (65,536 of 65,536): it dropped 912 packets" in str(finding_words(found, ""))


@pytest.mark.parametrize(
    ("dropped", "entries", "most", "sure"),
    [
        (3, 100, 65536, Confidence.LIKELY),
        (3, 100, 0, Confidence.LIKELY),
        (0, 63000, 65536, Confidence.POSSIBLE),
        (0, 100, 65536, None),
    ],
)
def test_drops_without_a_full_table_or_a_table_without_drops_are_less_sure(dropped, entries, most, sure):
    counters = {"conntrack__entries": entries, "conntrack__dropped": dropped, "conntrack__most": most}
    found = diagnose(Evidence(CELL, with_counters(HEALTHY, **counters), record()))
    assert [one.confidence for one in found] == ([] if sure is None else [sure])


@pytest.mark.parametrize(("huge", "migrated", "told"), [(16, 0, True), (0, 2048, True), (15, 2047, False)])
def test_memory_that_changes_its_form_is_possible_beyond_a_few_pages(huge, migrated, told):
    counters = {"machine__huge_pages": huge, "machine__migrated_pages": migrated}
    found = diagnose(Evidence(CELL, with_counters(HEALTHY, **counters), record()))
    assert [(one.rule, one.confidence) for one in found] == ([("D29", Confidence.POSSIBLE)] if told else [])


# --- lost requests to connect -----------------------------------------------------------------------------


def connected(*waits_ms, **counters):
    """A trial whose connects took so long, with a hundred quick ones beside them."""
    trial = build.trial(CELL, 0, 0, [MS] * 200)
    times = distribution([MS] * 100 + [round(wait * MS) for wait in waits_ms])
    slow = replace(trial, recording=with_parts(trial.recording, distributions={"connect": times}))
    return with_counters(slow, **({"TCPSynRetrans": len(waits_ms)} | counters))


def test_connects_that_took_the_steps_of_a_repeated_request_are_told_where_no_queue_counted_them():
    found = one(connected(1004, 1010, 3020), CONNECTS_REPEATED)
    assert (found.rule, found.numbers) == ("D04", {"share": 3 / 103, "connects": 103})
    assert "2.9 % of 103 connects took 1, 3 or 7 s" in str(finding_words(found, ""))


@pytest.mark.parametrize(
    "trial",
    [
        connected(500, 800, 2000),
        connected(1004, 3020, TCPSynRetrans=0),
        connected(1004, 3020, ListenOverflows=2, ListenDrops=2),
        connected(),
    ],
    ids=["other waits", "nothing was repeated", "a full queue says it", "quick"],
)
def test_other_waits_to_connect_are_no_lost_requests(trial):
    assert CONNECTS_REPEATED not in kinds(trial)


# A page that asks its own site holds a worker while it waits for another.
def test_workers_that_are_all_busy_are_only_likely_the_limit_where_a_request_alone_is_far_quicker():
    found = one(with_alone(0.5), SLOTS_BUSY, subject=record(slots=4))
    assert found.confidence is Confidence.LIKELY


# --- what runs beside a page ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "share"),
    [
        ({"VM Thread": 600, "pool-1-thread-1": 200}, 0.75),
        ({"GC Thread#0": 200, "GC Thread#1": 200, "pool-1-thread-1": 400}, 0.5),
        ({"VM Thread": 300, "pool-1-thread-1": 500}, None),
        ({"VM Thread": 150, "pool-1-thread-1": 10}, None),
        ({"vm-worker": 600}, None),
    ],
    ids=["serial", "in parallel", "a smaller part", "hardly any CPU", "another name"],
)
def test_a_collector_is_known_by_the_names_of_its_threads(names, share):
    threads = tuple(
        ThreadUsage(7, tid, name, used_ms * MS) for tid, (name, used_ms) in enumerate(names.items())
    )
    trial = replace(loaded(cores=0.99), threads=threads)
    found = [each for each in diagnose(Evidence(CELL, trial, record(slots=None))) if each.kind is COLLECTS]
    assert [each.numbers["share"] for each in found] == ([pytest.approx(share)] if share else [])
    if share:
        assert concluded(trial, subject=record(slots=None)).cause_kind is COLLECTS


@pytest.mark.parametrize(
    ("share", "samples", "cores", "is_found"),
    [(0.6, 300, 0.99, True), (0.4, 300, 0.99, False), (0.6, 50, 0.99, False), (0.6, 300, 0.5, False)],
    ids=["most", "less than half", "few stacks", "its CPU is not full"],
)
def test_a_collector_that_runs_in_the_threads_of_the_code_is_seen_in_its_stacks(
    share, samples, cores, is_found
):
    spot = HotSpot(CodeKind.RUNTIME, "garbage collection", "", share)
    code = HotCode(samples, {CodeKind.RUNTIME: share, CodeKind.APP: 1 - share}, (spot,))
    plain = loaded(cores=cores)
    first = replace(plain, facts=replace(plain.facts, code=code))
    # Stacks are sampled in the first block alone.
    found = concluded(first, *[plain] * 4, subject=record(slots=None))
    assert (found.cause_kind is STACKS_COLLECT) is is_found


# 40 replies of one second: 25 ms of CPU each, if the CPU were theirs.
@pytest.mark.parametrize(
    ("alone_ms", "cores", "unread", "is_found"),
    [(1200, 0.99, 48, True), (900, 0.99, 48, False), (1200, 0.9, 48, False), (1200, 0.99, 10, False)],
    ids=["as long alone", "quicker alone", "room", "they are read, and wait"],
)
def test_a_cpu_that_is_full_where_one_request_takes_as_long_as_many_is_full_of_something_else(
    alone_ms, cores, unread, is_found
):
    trial = unread_by(with_alone(alone_ms, cores=cores), unread)
    assert (SPINS in kinds(trial, subject=record(slots=None))) is is_found
    if is_found:
        assert one(trial, SPINS, subject=record(slots=None)).numbers["times"] == pytest.approx(48.5, rel=0.01)
        assert concluded(trial, subject=record(slots=None)).cause_kind is SPINS


def test_requests_that_have_most_of_several_cpus_fill_them():
    trial = unread_by(with_alone(1200, cores=15.9, cpus=tuple(range(16))), 48)
    assert SPINS not in kinds(trial, subject=record(slots=None))


def of_connections(count):
    return replace(CELL, workload=replace(CELL.workload, loop=build.ClosedLoop(count)))


MANY, TEN = of_connections(30), of_connections(10)
OLD, NEW = (worker(7),), (worker(8),)
LOGGED = 20 * "1024 worker_connections are not enough\n"


def closing(held, ok=40, ended=4000, name="eof", log="", rows=((), (), ()), part="server", **parts):
    """A closed loop, most of whose requests had their connection closed; what it held at each look."""
    trial = build.trial(MANY, 0, 0, [MS] * ok, errors={name: ended})
    each = enumerate(zip(held, rows, strict=True))
    looks = [sample(k, seen, **{f"established__{part}": count}) for k, (count, seen) in each]
    if "queued" in parts:
        full = {"listen.server.queued": parts["queued"], "listen.server.limit": 128}
        looks = [replace(one, gauges={**one.gauges, **full}) for one in looks]
    return replace(trial, samples=tuple(looks), log=LogTail(log))


@pytest.mark.parametrize(
    ("trial", "cell", "sure"),
    [
        (closing((3, 3, 3)), MANY, Confidence.LIKELY),
        (closing((3, 3, 3), queued=127), MANY, Confidence.LIKELY),
        (closing((3, 3, 3), part="frontend"), MANY, Confidence.LIKELY),
        (closing((3, 3, 3), log=LOGGED), TEN, Confidence.CERTAIN),
        (closing((3, 3, 3), log=LOGGED[:200]), MANY, Confidence.LIKELY),
        (closing((3, 3, 3)), TEN, None),
        (closing((3, 6, 3)), MANY, None),
        (closing((0, 0, 0)), MANY, None),
        (closing((29, 30, 30)), MANY, None),
        (closing((3, 3, 3), ended=30), MANY, None),
        (closing((3, 3, 3), ok=0), MANY, None),
        (closing((3, 3, 3), name="connect_refused"), MANY, None),
        (closing((3, 3, 3), queued=128), MANY, None),
        (closing((3, 3, 3), rows=(OLD, OLD, NEW)), MANY, None),
    ],
    ids=[
        *("a cap", "its queue has room", "a frontend", "in its log", "a few lines", "few connections"),
        *(
            "more at times",
            "none",
            "all of them",
            "few ended",
            "it answers none",
            "refused",
            "a full queue",
            "a worker ended",
        ),
    ],
)
def test_connections_that_are_closed_beyond_a_number_show_a_cap(trial, cell, sure):
    every = diagnose(Evidence(cell, trial, record()))
    assert [each.confidence for each in every if each.kind is CLOSED_BEYOND] == ([sure] if sure else [])
    if sure:
        assert concluded(trial, cell=cell).cause_kind is CLOSED_BEYOND


def test_a_generator_that_opens_closed_connections_again_is_not_the_limit():
    busy = {"limited": "suspect", "evidence": [{"level": "suspect", "kind": "busy", "share": 0.9}]}
    trial = closing((3, 3, 3))
    trial = replace(trial, recording=with_parts(trial.recording, generator=busy))
    assert GENERATOR_BUSY in kinds(trial, cell=MANY)
    assert concluded(trial, cell=MANY).cause_kind is CLOSED_BEYOND


# What it asks may be a Java program too.
def test_a_collector_of_a_service_is_not_the_servers():
    threads = (ThreadUsage(7, 1, "VM Thread", 600 * MS), ThreadUsage(8, 2, "python", 200 * MS))
    looks = tuple(sample(second, [worker(7, role="service"), worker(8)]) for second in range(3))
    trial = replace(loaded(cores=0.99), threads=threads, samples=looks)
    assert COLLECTS not in kinds(trial, subject=record(slots=None))


def sending(times, received, cores=0.01):
    """Ten requests open at a time in a window of one second."""
    trial = build.trial(CELL, 0, 0, times)
    little, moved = {"in_flight_integral_ns": 10 * SECOND}, {"received": received}
    recording = with_parts(trial.recording, little=little, bytes=moved)
    counters = {"cgroup.server.cpu_ns": round(cores * SECOND)}
    return replace(trial, recording=recording, counters=counters)


@pytest.mark.parametrize(
    ("times", "received", "cores", "is_found"),
    [
        ([500 * MS] * 20, 20 * MIB, 0.01, True),
        ([500 * MS] * 20, 4 * MIB, 0.01, False),
        ([500 * MS] * 19 + [520 * MS], 20 * MIB, 0.01, False),
        ([500 * MS] * 20, 20 * MIB, 0.2, False),
        ([500 * MS] * 9, 20 * MIB, 0.01, False),
    ],
    ids=["at a rate", "small ones", "one is slower", "it works", "few"],
)
def test_large_replies_that_all_take_the_same_time_are_sent_at_a_rate(times, received, cores, is_found):
    trial = sending(times, received, cores)
    assert (SENT_AT_A_RATE in kinds(trial, subject=record(slots=None))) is is_found
    if is_found:
        found = one(trial, SENT_AT_A_RATE, subject=record(slots=None))
        assert found.numbers["rate"] == pytest.approx(2 * MIB)
        assert "2.00 MiB a second on each connection" in str(finding_words(found, ""))


@pytest.mark.parametrize(
    ("forked", "lives", "slots", "is_found"),
    [(40, 1, 4, True), (20, 1, 4, False), (40, 2, 4, False), (40, 1, None, False)],
    ids=["each", "half of them", "they stay", "a program, no worker"],
)
def test_workers_that_end_after_each_request_are_the_cause_whatever_the_cpu_does(
    forked, lives, slots, is_found
):
    looks = tuple(
        sample(second, [worker(100 + 4 * (second // lives) + place) for place in range(4)])
        for second in range(6)
    )
    trial = with_counters(replace(loaded(cores=0.99), samples=looks), machine__forks=forked)
    beside = tuple(replace(each, processes=(*each.processes, worker(99))) for each in looks)
    # A worker that stays has children of its own.
    assert WORKER_FOR_EACH not in kinds(replace(trial, samples=beside), subject=record(slots=slots))
    assert (WORKER_FOR_EACH in kinds(trial, subject=record(slots=slots))) is is_found
    if is_found:
        assert concluded(trial, subject=record(slots=slots)).cause_kind is WORKER_FOR_EACH


@pytest.mark.parametrize(
    ("alone", "lives", "done", "is_found"),
    [
        (2 * MS, 2, 100, True),
        (4 * MS, 2, 100, False),
        (None, 2, 100, False),
        # Pages that differ cost more than the median of those alone, too; of a longer life a start is little.
        (2 * MS, 4, 100, False),
        (2 * MS, 2, 9, False),
    ],
    ids=["starts", "pages", "not known", "they live longer", "few"],
)
def test_where_a_request_alone_takes_a_third_of_what_it_costs_starts_of_workers_use_the_cpu(
    alone, lives, done, is_found
):
    """Ten milliseconds of CPU a request, of two workers that are replaced together."""
    looks = tuple(
        replace(
            sample(0, [worker(100 + place + 10 * (look // lives)) for place in range(2)]),
            monotonic_ns=look * SECOND // 2,
        )
        for look in range(12)
    )
    counters = {"subject__cpu_ns": done * 10 * MS} | ({"alone__service_ns": alone} if alone else {})
    recording = with_parts(loaded().recording, completed={"ok": done, "failed": 0})
    trial = with_counters(replace(loaded(cores=0.99), samples=looks, recording=recording), **counters)
    found = kinds(trial, subject=record(slots=2))
    assert (STARTS_COST in found, RESTARTED in found) == (is_found, not is_found)
    if is_found:
        assert concluded(trial, subject=record(slots=2)).cause_kind is STARTS_COST
        # What carried its rate is limited by nothing.
        kept = replace(recording, loop=LoopKind.OPEN, account=replace(recording.account, scheduled=done))
        assert STARTS_COST not in kinds(replace(trial, recording=kept), subject=record(slots=2))
