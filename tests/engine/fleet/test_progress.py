"""What is shown of a load while several generators share it."""

from prony.engine.fleet.engine import summed


def said(phase, elapsed_ns, ok=0, connected=0):
    counts = {"ok": ok, "failed": 1, "in_flight": connected, "queued": 0, "connected": connected}
    return {"event": "progress", "phase": phase, "elapsed_ns": elapsed_ns, **counts}


def test_the_whole_is_in_the_phase_of_the_last_and_has_the_sum_of_the_counts():
    found = summed({"a": said("window", 3, ok=5, connected=7), "b": said("warmup", 9, ok=1, connected=2)}, ())
    assert (found["phase"], found["elapsed_ns"]) == ("warmup", 9)
    assert (found["ok"], found["failed"], found["in_flight"], found["connected"]) == (6, 2, 9, 9)


def test_of_two_in_one_phase_the_earlier_decides():
    assert summed({"a": said("window", 9), "b": said("window", 4)}, ())["elapsed_ns"] == 4


def test_who_has_ended_has_nothing_open_and_keeps_what_it_counted():
    found = summed(
        {"a": said("drain", 3, ok=5, connected=7), "b": said("window", 2, ok=1, connected=2)}, {"a"}
    )
    assert (found["ok"], found["in_flight"], found["connected"]) == (6, 2, 2)


def test_nobody_has_said_anything():
    assert summed({}, ()) is None
