"""The other end of `prony run --target`: what it makes of what comes first."""

import json
import os

from prony.engine import target_side
from prony.engine.pipe import Pipe


def test_an_order_that_comes_after_beats_is_run(monkeypatch):
    heard, to_target = os.pipe()
    from_target, said = os.pipe()
    order = {"words": ["hello"], "variables": {}, "listen": None, "bytes": 0}
    ran = []
    monkeypatch.setattr(target_side, "Pipe", lambda *_: Pipe(heard, said))
    monkeypatch.setattr(target_side, "reached_address", lambda: "192.0.2.1")
    monkeypatch.setattr(target_side, "_run", lambda order, place, asker: ran.append(order))
    lines = [{"beat": True}, {"beat": True}, order]
    os.write(to_target, "".join(json.dumps(line) + "\n" for line in lines).encode())
    assert target_side.main() == 0
    assert ran == [{**order, "listen": "192.0.2.1"}]
    for end in (heard, to_target, from_target, said):
        os.close(end)
