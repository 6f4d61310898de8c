"""What one generator of a fleet says while it loads, and when it has ended."""

import json

import pytest

from prony.core.errors import EngineError
from prony.engine.fleet.member import FleetMember


class Generator:
    def __init__(self, recording):
        self._recording = recording

    def run(self, spec, authority, on_event):
        on_event({"event": "window_open"})
        if self._recording is None:
            raise EngineError("no server")
        return self._recording

    def cancel(self):
        pass


@pytest.mark.parametrize(
    ("recording", "answer"), [("{}", {"recording": {}}), (None, {"error": "no server"})], ids=["ok", "failed"]
)
def test_the_last_that_it_says_is_that_its_load_has_ended(recording, answer):
    said = []
    member = FleetMember(said.append, Generator(recording))
    order = json.dumps({"spec": {}, "authority": None}).encode()
    assert json.loads(member.generate(order)) == answer
    assert {"event": {"event": "window_open"}} in said
    assert said[-1] == {"has_ended": True}
    assert said.count({"has_ended": True}) == 1
