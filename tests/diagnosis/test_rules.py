"""Each rule fires on its symptom, and none on a healthy trial."""

from dataclasses import replace

import pytest

from golden import build
from prony.archive import SubjectRecord
from prony.diagnosis import RULES, Confidence, Evidence, diagnose
from prony.model import Cell, Failed

CELL = Cell(
    1, build.subject("wsgiref+hello"), build.Workload(build.ClosedLoop(1), build.DurationStop(build.SECOND))
)
HEALTHY = build.trial(CELL, 0, 0, [1_000_000] * 200)


def findings(trial, **kwargs):
    return diagnose(Evidence(CELL, trial, **kwargs))


def test_a_healthy_trial_has_no_finding():
    assert findings(HEALTHY) == []


def test_a_trial_without_load_has_no_finding():
    assert findings(build.trial(CELL, 0, 0, [], outcome=Failed("start", "no port"))) == []


@pytest.mark.parametrize("name", ["ListenOverflows", "TcpExt.ListenOverflows"])
def test_overflows_of_the_listen_queue_name_the_backlog(name):
    trial = replace(HEALTHY, counters={name: 12})
    (found,) = findings(trial, subject=SubjectRecord("wsgiref+hello", facts={"backlog": 5}))
    assert (found.rule, found.confidence, found.numbers) == ("D01", Confidence.CERTAIN, {"overflows": 12})
    assert "listen queue of 5 was full" in found.sentence


def test_overflows_without_a_known_backlog_name_none():
    (found,) = findings(replace(HEALTHY, counters={"ListenOverflows": 1}))
    assert "listen queue was full" in found.sentence


def test_a_limited_generator_makes_a_lower_bound():
    (found,) = findings(build.trial(CELL, 0, 0, [1] * 9, limited="worker CPU 95 %"))
    assert found.rule == "D23"
    assert "worker CPU 95 %" in found.sentence


def test_connections_without_a_reply_are_starved():
    recording = {**(HEALTHY.recording or {}), "loop": "closed"}
    recording["connections"] = {
        **recording["connections"],
        "answered": {"connections": 10, "without_reply": 9, "min": 0, "max": 200},
    }
    trial = replace(HEALTHY, recording=recording)
    (found,) = findings(trial, subject=SubjectRecord("uwsgi+hello", facts={"slots": 1}))
    assert (found.rule, found.numbers) == ("D10", {"served": 1, "connections": 10})
    assert "as many as it has workers and threads" in found.sentence


def test_a_kill_for_memory_is_certain_only_when_it_was_counted():
    died = build.trial(CELL, 0, 0, [], outcome=Failed("load", "ended with signal 9"), counters={})
    assert findings(died)[0].confidence is Confidence.POSSIBLE
    (found,) = findings(replace(died, counters={"memory.events.oom_kill": 1}))
    assert found.confidence is Confidence.CERTAIN


def test_rules_have_one_file_each():
    assert len({rule.__module__ for rule in RULES}) == len(RULES)
