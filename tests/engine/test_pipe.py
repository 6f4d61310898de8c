"""Loads that another machine sends: the border of the pipe, with a stand-in on the other side."""

import json
import os
import threading

import pytest

from commands import eventually
from prony.core.errors import EngineError
from prony.engine.pipe import Pipe, PipeEngine
from prony.model.address import Address
from prony.model.sandbox import EngineSeat
from prony.model.workload import ClosedLoop, DurationStop, EngineChoice, Workload
from recordings import IDLE

LOAD = Workload(ClosedLoop(1), DurationStop(0), timeout_ns=0, grace_ns=0)
ADDRESS = Address("192.0.2.1", 8000)
DONE = {
    "recording": IDLE,
    "machine": {
        **{"version": "1", "machine": "x86_64", "host": "near", "cpus": 2, "pid": 7, "is_root": False},
        "fingerprint": {"kernel": {"release": "6.1"}},
    },
}


class Other:
    """The other side: answers each order with these lines; with None it goes."""

    def __init__(self, answer):
        self.heard, self.to = os.pipe()
        self.from_, self.said = os.pipe()
        self.orders = []
        self._answer = answer
        self.pipe = Pipe(self.from_, self.to)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with os.fdopen(self.heard, "rb") as lines, os.fdopen(self.said, "wb", buffering=0) as out:
            for line in lines:
                order = json.loads(line)
                self.orders.append(order)
                answers = self._answer(order)
                if answers is None:
                    return
                for answer in answers:
                    out.write(json.dumps(answer).encode() + b"\n")

    def run(self, on_event=lambda event: None):
        return PipeEngine(EngineChoice(), self.pipe).run(LOAD, ADDRESS, EngineSeat(cpus=()), on_event)


def of(order, *lines):
    return [{"load": order["load"], **one} for one in lines] if "load" in order else []


def test_events_are_dated_here_and_the_recording_comes_last():
    opened = {"event": "window_open", "monotonic_ns": 7}
    other = Other(lambda order: of(order, {"event": {"event": "started"}}, {"event": opened}, DONE))
    events = []
    found = other.run(events.append)
    assert [one["event"] for one in events] == ["started", "window_open"]
    assert events[1]["monotonic_ns"] > 7
    assert found.account.scheduled == IDLE["account"]["scheduled"]
    assert [(one.name, one.fingerprint.fact("kernel", "release")) for one in found.machines] == [
        ("near", "6.1")
    ]
    assert other.orders[0]["spec"]["target"]["host"] == ADDRESS.host


def test_what_is_left_of_an_earlier_load_is_not_taken_for_this_one():
    other = Other(lambda order: [{"load": -1, "recording": {}}, *of(order, DONE)])
    assert other.run().window.interrupted == IDLE["window"]["interrupted"]


def test_a_line_of_which_an_interrupted_load_has_read_a_part_does_not_harm_the_next():
    lines = [
        {"load": 1, "event": {"event": "started"}},
        {"load": 1, "error": "over"},
        {"load": 2, **DONE},
    ]
    said = "".join(json.dumps(one) + "\n" for one in lines).encode()
    other = Other(lambda order: [])
    half = said.index(b"error")
    os.write(other.said, said[:half])

    def interrupt(event):
        os.write(other.said, said[half:])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        other.run(interrupt)
    assert other.run().window.interrupted == IDLE["window"]["interrupted"]


def test_an_error_there_is_said_in_its_words():
    with pytest.raises(EngineError, match="no route to it"):
        Other(lambda order: of(order, {"error": "no route to it"})).run()


@pytest.mark.parametrize("odd", [{}, {"event": []}, {"recording": 5}, {"recording": {}}, {"error": ["x"]}])
def test_what_is_no_answer_is_refused_in_one_line(odd):
    with pytest.raises(EngineError) as refused:
        Other(lambda order: of(order, odd)).run()
    assert refused.value.message.isprintable()


def test_when_the_other_side_is_gone_it_is_said():
    with pytest.raises(EngineError, match="is gone"):
        Other(lambda order: None).run()


def test_an_interruption_here_ends_the_load_there():
    other = Other(lambda order: of(order, {"event": {"event": "started"}}))

    def interrupt(event):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        other.run(interrupt)
    assert eventually(lambda: other.orders[1:] == [{"cancel": other.orders[0]["load"]}])
