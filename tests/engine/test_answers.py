"""Generators that say what no generator of Prony says: they are named, and nothing of Prony fails."""

import json
import time

import pytest

from prony._engine import ReferenceServer
from prony.core.errors import EngineError
from prony.engine.answers import event_in, progress_in, read_answer, read_facts
from prony.engine.fleet import Fleet
from prony.engine.fleet.cluster import Cluster
from prony.engine.fleet.engine import FleetEngine
from prony.engine.generator import OnLoss
from prony.model.address import Address
from prony.model.sandbox import EngineSeat
from prony.model.workload import ClosedLoop, CountStop, EngineChoice, Pacing, Workload

PROGRESS = {
    "event": "progress",
    "phase": "window",
    "elapsed_ns": 5,
    "ok": 2,
    "failed": 0,
    "in_flight": 1,
    "queued": 0,
    "connected": 1,
}


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"\xff\xfe not text",
        b"[1, 2]",
        b"null",
        b"{}",
        b'{"recording": []}',
        b'{"error": {"a": 1}}',
        b"[" * 200_000,
    ],
    ids=range(8),
)
def test_what_is_no_answer_is_refused_with_the_generators_name(said):
    with pytest.raises(EngineError, match=r"^generator `far-1` sent what is no answer of Prony's: "):
        read_answer("far-1", said)


FACTS = {
    **{"version": "1", "machine": "x86_64", "host": "far-1", "cpus": 2, "pid": 7, "is_root": False},
    "fingerprint": {"kernel": {"release": "6.1"}},
}


@pytest.mark.parametrize(
    "said", [None, [], {**FACTS, "cpus": "many"}, {**FACTS, "cpus": -1}, {**FACTS, "version": {"\x1b[2J": 1}}]
)
def test_what_are_no_facts_of_a_machine_is_refused_in_one_line(said):
    assert read_facts("far-1", FACTS).cpus == 2
    with pytest.raises(
        EngineError, match=r"^generator `far-1` sent what is no answer of Prony's: facts"
    ) as no:
        read_facts("far-1", said)
    assert no.value.message.isprintable()


@pytest.mark.parametrize(
    "odd",
    [
        *({"phase": "lunch"}, {"phase": [1]}, {"ok": "many"}, {"elapsed_ns": None}, {"connected": 1.5}),
        *({"ok": True}, {"failed": -1}, {"elapsed_ns": 10**400}, {"last_second": {"p50_ns": "x"}}),
    ],
)
def test_progress_that_cannot_be_added_up_is_none(odd):
    assert progress_in({"progress": PROGRESS}) == PROGRESS
    assert progress_in({"progress": {**PROGRESS, **odd}}) is None


@pytest.mark.parametrize(
    "odd",
    [
        *("started", 7, {}, {"event": 3}, {"event": "window_open", "monotonic_ns": "soon"}),
        # A line that its process would take for the result of all generators, or for the end.
        *({"event": "recording", "recording": {}}, {"event": "error", "message": ""}),
        {"event": "window_open", "monotonic_ns": 5, "kept": [0] * 20_000},
        # What shows it would take the sum, or the name, for one of its own.
        *({"event": "progress"}, PROGRESS | {"elapsed_ns": 10**400}),
        *({"event": "window_close", "monotonic_ns": -5}, {"event": "window_open"}, {"event": "waiting"}),
        *({"event": "started", "limit": "x"}, {"event": "started", "machine": {"connections": 1, "by": "x"}}),
    ],
)
def test_an_event_of_no_known_kind_with_more_or_with_an_odd_time_is_none(odd):
    assert event_in({"event": {"event": "window_open", "monotonic_ns": 5}})
    assert event_in({"event": {"event": "started"}})
    assert event_in({"event": odd}) is None
    assert event_in({}) is None


class Falsified:
    """An answer that has been changed on its way."""

    def __init__(self, submission, change):
        self._submission, self._change = submission, change

    def is_done(self):
        return self._submission.is_done()

    def result(self):
        found = json.loads(self._submission.result())
        self._change(found["recording"])
        return json.dumps(found).encode()


@pytest.mark.parametrize(
    "change",
    [
        lambda recording: recording["account"].update(ok=10**6),
        lambda recording: recording["account"].update(ok=-5),
        lambda recording: recording.clear(),
    ],
    ids=["too many", "negative", "nothing"],
)
def test_whose_recording_cannot_be_used_is_named(change, monkeypatch):
    class Liar(Cluster):
        def submit(self, address, order):
            honest = super().submit(address, order)
            return Falsified(honest, change) if self.names[address] == "generator-2" else honest

    choice = EngineChoice(threads=1, pacing=Pacing.ECONOMICAL)
    engine = FleetEngine(Fleet(None, 2), choice, OnLoss.PARTIAL, 1)
    monkeypatch.setattr("prony.engine.fleet.cluster.Cluster", Liar)
    events = []
    with ReferenceServer("{}") as server, pytest.raises(EngineError, match=r"^generator `generator-2`: "):
        engine.run(
            Workload(ClosedLoop(2), CountStop(20)),
            Address("127.0.0.1", server.port),
            EngineSeat(cpus=()),
            events.append,
        )
    assert events[0] == {"event": "waiting", "generators": 2}


SPREAD = (ClosedLoop(2), CountStop(20))


def shared(monkeypatch, liar):
    """Return the Recording and the events of a load of two generators, of a cluster that lies."""
    monkeypatch.setattr("prony.engine.fleet.cluster.Cluster", liar)
    events = []
    engine = FleetEngine(Fleet(None, 2), EngineChoice(threads=1, pacing=Pacing.ECONOMICAL), OnLoss.INVALID, 1)
    with ReferenceServer("{}") as server:
        where = Address("127.0.0.1", server.port), EngineSeat(cpus=())
        return engine.run(Workload(*SPREAD), *where, events.append), events


@pytest.mark.parametrize("at_ns", [0, 2**62], ids=["before all", "in centuries"])
def test_a_window_is_open_when_it_was_seen_whatever_a_generator_says(at_ns, monkeypatch):
    class Liar(Cluster):
        def prepare(self, on_beat):
            def lying(address, beat):
                if "monotonic_ns" in (beat.get("event") or {}):
                    beat = {**beat, "event": {**beat["event"], "monotonic_ns": at_ns}}
                on_beat(address, beat)

            super().prepare(lying)

    recording, events = shared(monkeypatch, Liar)
    times = [one["monotonic_ns"] for one in events if "monotonic_ns" in one]
    assert recording.account.ok == 20
    assert len(times) == 2
    assert all(0 <= one <= time.monotonic_ns() for one in times)


def test_who_speaks_for_a_generator_that_there_is_not_is_not_heard(monkeypatch):
    class Liar(Cluster):
        def prepare(self, on_beat):
            super().prepare(on_beat)
            for odd in ({"worker": "tls://192.0.2.1:9"}, {"worker": [1]}, {}, 7):
                event = {"event": "window_open", "monotonic_ns": 5}
                beat = {"event": event, **odd} if isinstance(odd, dict) else odd
                self._client.log_event(self._topic, beat)

    recording, events = shared(monkeypatch, Liar)
    assert recording.account.ok == 20
    assert [one["event"] for one in events].count("window_open") == 1
    assert all(one.get("monotonic_ns") != 5 for one in events)
