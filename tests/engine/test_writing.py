"""A Recording is written while the other threads of the process go on: one of them says that it is alive."""

import json
import threading
import time

from prony import _engine
from prony.core.units import SECOND_NS
from prony.model.address import Address
from prony.model.workload import ClosedLoop, DurationStop, EngineChoice, Workload
from prony.plan.engine_spec import to_spec

LENGTH_S = 1200


def long_recording():
    """A Recording of twenty minutes, each second of which has the replies of a real one."""
    with _engine.ReferenceServer(json.dumps({"port": 0})) as server:
        load = Workload(ClosedLoop(16), DurationStop(2 * SECOND_NS))
        spec = to_spec(load, Address("127.0.0.1", server.port), EngineChoice(), None)
        found = json.loads(_engine.run(json.dumps(spec)))
    second = found["series"][1]
    return json.dumps({**found, "series": [{**second, "second": k} for k in range(LENGTH_S)]})


def longest_pause(work):
    """Run it, and return what share of its time another thread waited at a stretch, at most."""
    over, pauses = threading.Event(), []

    def beat():
        last_s = time.monotonic()
        while not over.wait(0.002):
            now_s = time.monotonic()
            pauses.append(now_s - last_s)
            last_s = now_s

    thread = threading.Thread(target=beat)
    thread.start()
    began_s = time.monotonic()
    work()
    took_s = time.monotonic() - began_s
    over.set()
    thread.join()
    return max(pauses) / took_s


def test_other_threads_go_on_while_a_long_recording_is_written():
    text = long_recording()
    # To write it takes more than a third of the time in which it is read, added up and written; to hand over
    # the text, for which others do wait, less than a tenth. Another process may keep it waiting for once.
    assert min(longest_pause(lambda: _engine.merge_recordings([text], [0])) for _ in range(3)) < 0.2
