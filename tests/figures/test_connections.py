"""The generator's connections and its waits for a CPU."""

from prony.figures.generator import connection_metrics
from prony.figures.missing import Missing
from recordings import recording_of

SECOND = 1_000_000_000


def recording(**more):
    answered = {"connections": 10, "without_reply": 4, "min": 0, "max": 9}
    window = {"open_ns": SECOND, "close_ns": 10 * SECOND, "drained_ns": 11 * SECOND, "interrupted": False}
    parts = {
        "connections": {"reconnects": 7, "answered": answered},
        "generator": {"threads": [thread(SECOND // 10), thread(SECOND // 2)]},
        "window": window,
    }
    return recording_of(**{**parts, **more})


def thread(waited_ns):
    return {"cpu": 0, "user_ns": 0, "system_ns": 0, "spin_ns": 0, "run_queue_ns": waited_ns}


def test_connections_that_were_opened_again_and_those_without_a_reply_are_counted():
    found = connection_metrics(recording())
    assert (found["reconnects"], found["connections_without_reply"]) == (7, 4)


def test_the_longest_wait_of_a_thread_is_of_window_and_drain():
    assert connection_metrics(recording())["generator_run_queue_percent"] == 5


def test_what_another_generator_does_not_record_has_its_reason():
    nothing = dict.fromkeys(("reconnects", "answered"))
    told = {"name": "wrk", "missing": {"connections": "wrk does not count them"}}
    found = connection_metrics(recording(connections=nothing, generator={}, engine=told))
    assert found["reconnects"] == Missing("wrk does not count them")
    assert found["connections_without_reply"] == Missing("wrk does not count them")
    assert isinstance(found["generator_run_queue_percent"], Missing)
