"""Each rule fires on its symptom, and none on a healthy trial."""

import re
from dataclasses import replace

import pytest

from declared import declared
from golden import build
from histograms import distribution
from prony.diagnosis import diagnose
from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.generator import GENERATOR_BUSY, GENERATOR_KEPT_WAITING
from prony.diagnosis.kinds import Advice, Symptom
from prony.diagnosis.machine import HEAT
from prony.diagnosis.memory import ENDED_UNDER_LOAD, KILLED_FOR_MEMORY
from prony.model.limit import Limit, LimitKind
from prony.model.plan import Cell
from prony.model.sandbox import Network, SandboxFacts
from prony.model.trial import Failed, Invalid, SubjectRecord
from prony.report.findings import advice_words, finding_words, shared_words
from recordings import with_parts

CELL = Cell(
    1, build.subject("wsgiref+hello"), build.Workload(build.ClosedLoop(1), build.DurationStop(build.SECOND))
)
HEALTHY = build.trial(CELL, 0, 0, [1_000_000] * 200)


def sentence(found):
    """Return what a report says of a finding."""
    return str(finding_words(found, ""))


def advice(found):
    return str(advice_words(found, ""))


def findings(trial, **kwargs):
    return diagnose(Evidence(CELL, trial, **kwargs))


def test_a_healthy_trial_has_no_finding():
    assert findings(HEALTHY) == []


def test_a_trial_without_load_has_no_finding():
    assert findings(build.trial(CELL, 0, 0, [], outcome=Failed("start", "no port"))) == []


def test_overflows_of_the_listen_queue_name_the_backlog():
    trial = replace(HEALTHY, counters={"ListenOverflows": 12})
    (found,) = findings(trial, subject=SubjectRecord("wsgiref+hello", facts=build.declared(backlog=5)))
    assert (found.rule, found.confidence, found.numbers) == (
        "D01",
        Confidence.CERTAIN,
        {"overflows": 12, "limit": 5},
    )
    assert "listen queue of 5 was full" in sentence(found)


def test_overflows_without_a_known_backlog_name_none():
    (found,) = findings(replace(HEALTHY, counters={"ListenOverflows": 1}))
    assert "listen queue was full" in sentence(found)


def test_overflows_on_the_hosts_network_are_the_machines_and_only_possibly_the_servers():
    record = SubjectRecord(
        "wsgiref+hello", facts=build.declared(backlog=5), sandbox=SandboxFacts(Network.HOST)
    )
    (found,) = findings(replace(HEALTHY, counters={"ListenOverflows": 12}), subject=record)
    assert found.confidence is Confidence.POSSIBLE
    assert "on this machine" in sentence(found)


def test_a_limited_generator_may_hide_throughput_and_add_latency():
    (found,) = findings(build.trial(CELL, 0, 0, [1] * 9, limited=Limit(LimitKind.THROTTLED, share=0.095)))
    assert found.rule == "D23"
    assert "a quota of CPU stopped it for 9.5 % of the time" in sentence(found)
    assert "throughput may be higher, and latency lower, than shown" in sentence(found)
    assert "thread" not in advice(found)


@pytest.mark.parametrize(
    ("limit", "words", "alike"),
    [
        (build.BUSY, "a worker thread was busy 93 % of the time", "(a worker thread was busy)"),
        (
            Limit(LimitKind.KEPT_WAITING, share=0.034),
            "others kept a worker thread waiting for its CPU 3.4 % of the time",
            "(others kept a worker thread",
        ),
        (
            Limit(LimitKind.LATE, lag_ns=12_500_000, percentile=99),
            "requests went out 12.5 ms late at p99",
            "(requests went out late)",
        ),
    ],
)
def test_subjects_with_the_same_kind_of_limit_share_it_without_its_figures(limit, words, alike):
    (found,) = findings(build.trial(CELL, 0, 0, [1] * 9, limited=limit))
    assert words in sentence(found)
    said = str(shared_words(found, ""))
    assert alike in said and not re.search("[0-9]", said)


def limited(level, **evidence):
    trial = build.trial(CELL, 0, 0, [1] * 9)
    generator = {"limited": level, "evidence": [{"level": level, **evidence}]}
    return replace(trial, recording=with_parts(trial.recording, generator=generator))


@pytest.mark.parametrize(("level", "blame"), [("suspect", "may have been"), ("yes", "was")])
def test_the_verdict_of_the_engine_says_how_sure_it_is(level, blame):
    (found,) = findings(limited(level, kind="kept_waiting", share=0.34, wait_ns=9))
    assert (found.kind, found.numbers["share"]) == (GENERATOR_KEPT_WAITING, 0.34)
    assert sentence(found).startswith(f"the generator {blame} the limit (others kept")


def test_waits_of_the_generator_are_shown_with_their_length_and_the_replies_that_they_made_late():
    waits = {"kind": "kept_waiting", "share": 0.021, "wait_ns": 2_400_000, "late_share": 0.014}
    (found,) = findings(limited("yes", **waits))
    words = "waiting for its CPU 2.1 % of the time, 2.40 ms at a time: 1.4 % of the replies were taken late)"
    assert words in sentence(found)


@pytest.mark.parametrize("sent", [99, 98])
def test_a_rate_that_was_kept_says_nothing_of_more_throughput(sent):
    cell = replace(CELL, workload=build.Workload(build.OpenLoop(100), CELL.workload.stop))
    trial = build.trial(cell, 0, 0, [1] * 100, limited=build.BUSY)
    parts = {"limited": "yes", "evidence": [{"level": "yes", "kind": "busy", "share": 0.96}]}
    recording = with_parts(trial.recording, generator={**parts, "sent_in_window": sent})
    (found,) = findings(replace(trial, recording=recording))
    assert ("throughput may be higher" in sentence(found)) is (sent < 99)
    assert "latency" in sentence(found)
    assert found.confidence is (Confidence.CERTAIN if sent < 99 else Confidence.LIKELY)


def test_the_evidence_that_is_strongest_is_the_finding():
    trial = build.trial(CELL, 0, 0, [1] * 9)
    evidence = [
        {"level": "yes", "kind": "in_flight", "connections": 8, "at_ns": 2_000_000},
        {"level": "suspect", "kind": "busy", "share": 0.85},
    ]
    generator = {"limited": "yes", "evidence": evidence}
    (found,) = findings(replace(trial, recording=with_parts(trial.recording, generator=generator)))
    assert "8 requests at most could be in flight, and from 2.00 ms on so many were" in sentence(found)


def test_one_overflow_is_one_connection():
    (found,) = findings(replace(HEALTHY, counters={"ListenOverflows": 1}))
    assert sentence(found).startswith("1 connection arrived")


@pytest.mark.parametrize("outcome", [Failed("load", "died"), Invalid("steal")])
def test_trials_that_do_not_count_accuse_neither_the_generator_nor_the_server(outcome):
    limited = build.trial(CELL, 0, 0, [1] * 9, limited=build.BUSY).recording
    recording = answered(without_reply=9, most=200, limited=limited)
    found = findings(replace(HEALTHY, recording=recording, outcome=outcome))
    assert not {"D10", "D23"} & {each.rule for each in found}


def answered(without_reply, most, limited=None):
    replies = {"connections": 10, "without_reply": without_reply, "min": 0, "max": most}
    return with_parts(limited or HEALTHY.recording, connections={"answered": replies})


def test_connections_without_a_reply_are_starved():
    trial = replace(HEALTHY, recording=answered(without_reply=9, most=200))
    (found,) = findings(trial, subject=SubjectRecord("uwsgi+hello", facts=build.declared(slots=1)))
    assert (found.rule, found.numbers) == ("D10", {"served": 1, "connections": 10})
    assert "in the window, as many as it has workers and threads" in sentence(found)


@pytest.mark.parametrize(("served", "sure"), [(40, Confidence.CERTAIN), (50, Confidence.POSSIBLE)])
def test_connections_that_chance_may_have_left_out_are_only_possibly_starved(served, sure):
    """Of 200 replies in a random order the served have few each, where others have none."""
    replies = {"connections": 60, "without_reply": 60 - served, "min": 0, "max": 6}
    trial = replace(HEALTHY, recording=with_parts(HEALTHY.recording, connections={"answered": replies}))
    (found,) = findings(trial)
    assert (found.rule, found.confidence) == ("D10", sure)


@pytest.mark.parametrize(("slow", "sure"), [(60, Confidence.LIKELY), (6, Confidence.CERTAIN)])
def test_connections_that_may_wait_for_a_long_page_are_only_likely_starved(slow, sure):
    times = {"ok_service": distribution([1_000_000] * (620 - slow) + [900_000_000] * slow)}
    replies = {"connections": 100, "without_reply": 37, "min": 0, "max": 40}
    parts = {"distributions": times, "connections": {"answered": replies}, "completed": {"ok": 620}}
    (found,) = findings(replace(HEALTHY, recording=with_parts(HEALTHY.recording, **parts)))
    assert (found.rule, found.confidence) == ("D10", sure)


@pytest.mark.parametrize("most", [1, 2])
def test_a_slow_but_fair_server_in_less_than_a_round_is_not_starving(most):
    assert findings(replace(HEALTHY, recording=answered(without_reply=5, most=most))) == []


@pytest.mark.parametrize(("slots", "words"), [(1, "more workers or threads"), (50, "limit of connections")])
def test_where_workers_are_free_more_of_them_are_not_advised(slots, words):
    trial = replace(HEALTHY, recording=answered(without_reply=9, most=200))
    (found,) = findings(trial, subject=SubjectRecord("waitress+hello", facts=build.declared(slots=slots)))
    assert words in advice(found)


@pytest.mark.parametrize("kept", [True, False])
def test_turning_keep_alive_off_is_advised_only_where_it_is_on(kept):
    trial = replace(HEALTHY, recording=answered(without_reply=9, most=3))
    (found,) = findings(trial, subject=SubjectRecord("a+b", facts=build.declared(keep_alive=kept, slots=1)))
    assert ("turn keep-alive off" in advice(found)) is kept


def test_a_kill_for_memory_is_certain_only_when_it_was_counted():
    died = build.trial(CELL, 0, 0, [], outcome=Failed("load", "ended with signal 9"), counters={})
    assert findings(died)[0].confidence is Confidence.POSSIBLE
    (found,) = findings(replace(died, counters={"cgroup.server.oom_kills": 1}))
    assert found.confidence is Confidence.CERTAIN


@pytest.mark.parametrize(("waited", "rules"), [(5, []), (6, ["D14"]), (100, ["D14"])])
def test_a_quota_that_held_the_server_back_is_found(waited, rules):
    counters = {"cgroup.server.periods": 100, "cgroup.server.throttled_periods": waited}
    assert [found.rule for found in findings(replace(HEALTHY, counters=counters))] == rules


OPEN = replace(CELL, workload=build.Workload(build.OpenLoop(200), CELL.workload.stop))


@pytest.mark.parametrize(
    ("cell", "used_s", "waited", "sure"),
    [
        (CELL, 0.5, 60, Confidence.CERTAIN),
        (CELL, 0.5, 10, Confidence.LIKELY),
        (CELL, 0.3, 60, Confidence.LIKELY),
        (OPEN, 0.5, 60, Confidence.LIKELY),
        (CELL, 0.3, 10, Confidence.POSSIBLE),
        (OPEN, 0.3, 10, Confidence.POSSIBLE),
    ],
    ids=["used up", "seldom", "mostly unused", "the rate was carried", "bursts", "bursts at a rate"],
)
def test_a_quota_is_certain_to_be_the_limit_only_where_it_is_used_up_and_requests_wait(
    cell, used_s, waited, sure
):
    cell = replace(cell, sandbox=replace(cell.sandbox, cpu_quota=0.5))
    trial = build.trial(cell, 0, 0, [1_000_000] * 200)
    counters = {"cgroup.server.periods": 100, "cgroup.server.throttled_periods": waited}
    cpu = {"cgroup.server.cpu_ns": round(used_s * trial.recording.window.length_ns)}
    (found,) = diagnose(Evidence(cell, replace(trial, counters=counters | cpu)))
    assert (found.rule, found.confidence) == ("D14", sure)


@pytest.mark.parametrize(("quota", "rules"), [(1.0, []), (1.5, []), (0.9, ["D14"])])
def test_a_quota_of_all_the_time_of_its_cpus_holds_nobody_back(quota, rules):
    cell = replace(CELL, sandbox=replace(CELL.sandbox, cpu_quota=quota))
    counters = {"cgroup.server.periods": 100, "cgroup.server.throttled_periods": 60}
    trial = replace(build.trial(cell, 0, 0, [1_000_000] * 200), counters=counters)
    assert len(trial.placement.server_cpus) == 1
    assert [one.rule for one in diagnose(Evidence(cell, trial)) if one.rule == "D14"] == rules


def test_every_symptom_has_words_for_its_numbers_and_every_advice_too():
    known = (
        "share lag_ns strays kills restarts ended periods throttled overflows limit longest asked given "
        "dropped half_open served connections softirq_share times more cores busiest_thread threads cpus "
        "percentile wait_ns requests at_ns sent_per_s ceiling_per_s wrong done waiting ports used "
        "first_bytes grown_bytes per_request_bytes forks workers most_cores least_cores early_per_s "
        "late_per_s seconds slots "
        "same_share port most least entries huge_pages migrated connects cap carried off own_bytes "
        "other_bytes without_reply sent opened due at_a_time in_flight alone_ns cpu_share cpu_ns slept "
        "unread size length_ns apart rate processes p50_ns mean_ns held"
    )
    numbers = dict.fromkeys(known.split(" "), 2.0)
    names = {"reason": "why", "role": "worker", "process": "frontend", "sign": "--reload", "other": "b+x"}
    names |= {"status": "500", "of": "VM Thread"}
    for kind in declared(Symptom):
        found = Finding(kind, Confidence.CERTAIN, numbers, names)
        assert sentence(found) and str(shared_words(found, ""))
    for one in declared(Advice):
        assert advice(Finding(HEAT, Confidence.CERTAIN, numbers, names, one))


@pytest.mark.parametrize(
    ("name", "count", "sure"),
    [
        ("connect_refused", 10, Confidence.LIKELY),
        ("connect_refused", 8, Confidence.CERTAIN),
        ("timed_out", 10, Confidence.CERTAIN),
    ],
)
def test_a_generator_that_is_busy_with_connections_that_are_sent_away_is_less_than_certain(name, count, sure):
    trial = limited("yes", kind="busy", share=0.98)
    recording = trial.recording
    account = replace(recording.account, others={name: count})
    recording = replace(recording, account=account, completed=replace(recording.completed, failed=count))
    found = findings(replace(trial, recording=recording))
    assert [one.confidence for one in found if one.kind is GENERATOR_BUSY] == [sure]


@pytest.mark.parametrize(
    ("reason", "kind", "numbers"),
    [
        (
            "out of memory: the kernel killed 2 processes of the server, 1 process of the frontend "
            "at its limit of 96.0 MiB",
            KILLED_FOR_MEMORY,
            {"kills": 3},
        ),
        ("it ended: out of memory: 2 processes", ENDED_UNDER_LOAD, {}),
        (
            f"out of memory: the kernel killed {'7' * 5000} processes of the server",
            ENDED_UNDER_LOAD,
            {},
        ),
        (
            "out of memory: the kernel killed 1 process of the server; it left 3 processes",
            KILLED_FOR_MEMORY,
            {"kills": 1},
        ),
    ],
)
def test_a_server_that_was_killed_for_memory_before_the_window_is_named_by_why_its_trial_failed(
    reason, kind, numbers
):
    trial = build.trial(CELL, 0, 0, [], outcome=Failed("load", reason))
    (found,) = findings(replace(trial, counters={"cgroup.server.oom_kills": 0}))
    assert (found.kind, found.numbers) == (kind, numbers)
