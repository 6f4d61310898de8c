import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

import prony
from prony.core.errors import EngineError
from prony.engine.child_process import Child
from prony.engine.process import ProcessEngine
from prony.model.address import Address
from prony.model.json_codec import Json, encode
from prony.model.sandbox import EngineSeat
from prony.model.workload import ClosedLoop, DurationStop, EngineChoice, Workload
from prony.plan.engine_spec import encode_target
from recordings import IDLE

# The child with another engine in place of the compiled one.
DRIVER = """
import sys, types
sys.path.insert(0, {path!r})
fake = types.ModuleType("prony._engine")
exec({body!r}, fake.__dict__)
fake.IDLE = {idle!r}
sys.modules["prony._engine"] = fake
from prony.engine.child import main
sys.exit(main())
"""

WORKLOAD = Workload(ClosedLoop(1), DurationStop(0), timeout_ns=0, grace_ns=0)
ADDRESS = Address("127.0.0.1", 8000)

WAITS = """
import time
def run(spec, on_event, *_):
    on_event('{"event": "started"}')
    time.sleep(600)
"""

WAITS_AND_RECORDS = """
import json, time
def run(spec, on_event, *_):
    try:
        on_event('{"event": "started"}')
        time.sleep(600)
    except KeyboardInterrupt:
        return json.dumps({**IDLE, "window": {"interrupted": True}})
"""


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Callable[..., ProcessEngine]:
    def make(body: str, spare_ns: int = 10_000_000_000) -> ProcessEngine:
        text = DRIVER.format(path=str(Path(prony.__file__).parent.parent), body=body, idle=IDLE)
        monkeypatch.setattr(Child, "command", lambda _: [sys.executable, "-c", text])
        return ProcessEngine(EngineChoice(), spare_ns)

    return make


@pytest.fixture
def seat() -> EngineSeat:
    return EngineSeat(cpus=(max(os.sched_getaffinity(0)),))


def ignore(_event: Json) -> None:
    pass


def test_events_come_in_order_and_the_recording_last(
    engine: Callable[..., ProcessEngine], seat: EngineSeat
) -> None:
    body = """
import json, os
def run(spec, on_event, *_):
    on_event('{"event": "started"}')
    on_event('{"event": "window_open", "monotonic_ns": 7}')
    where = {"name": str(sorted(os.sched_getaffinity(0))), "version": "x" * 3_000_000}
    return json.dumps({**IDLE, "spec": json.loads(spec), "engine": where})
"""
    events: list[Json] = []
    recording = engine(body).run(WORKLOAD, ADDRESS, seat, events.append)
    assert events == [{"event": "started"}, {"event": "window_open", "monotonic_ns": 7}]
    assert recording.spec is not None
    assert encode(recording.spec.target) == encode_target(ADDRESS)
    assert recording.engine.name == str(list(seat.cpus))
    assert len(recording.engine.version or "") == 3_000_000
    assert recording.generator.processes is not None


def test_an_error_of_the_engine_is_said_in_its_words(
    engine: Callable[..., ProcessEngine], seat: EngineSeat
) -> None:
    body = "def run(spec, on_event, *_): raise ValueError('`rate_per_s` is 0; expected more')"
    with pytest.raises(EngineError, match="`rate_per_s` is 0; expected more"):
        engine(body).run(WORKLOAD, ADDRESS, seat, ignore)


def test_an_engine_that_dies_is_named_with_its_end(
    engine: Callable[..., ProcessEngine], seat: EngineSeat
) -> None:
    body = "import os\ndef run(spec, on_event, *_): os.abort()"
    with pytest.raises(EngineError, match=r"ended without a recording \(killed by signal 6\)"):
        engine(body).run(WORKLOAD, ADDRESS, seat, ignore)


def test_an_engine_that_hangs_is_killed_at_the_hard_deadline(
    engine: Callable[..., ProcessEngine], seat: EngineSeat
) -> None:
    body = "import time, signal\ndef run(*_):\n  signal.signal(15, signal.SIG_IGN); time.sleep(600)"
    with pytest.raises(EngineError, match="did not finish within 300 ms and was killed"):
        engine(body, spare_ns=300_000_000).run(WORKLOAD, ADDRESS, seat, ignore)


def test_an_engine_that_stays_and_hangs_is_killed_at_once(
    engine: Callable[..., ProcessEngine], seat: EngineSeat
) -> None:
    body = "import time, signal\ndef run(*_):\n  signal.signal(15, signal.SIG_IGN); time.sleep(600)"
    hangs = engine(body, spare_ns=300_000_000)
    with hangs.staying():
        with pytest.raises(EngineError, match="was killed"):
            hangs.run_short(WORKLOAD, ADDRESS, seat, ignore)
        process = hangs._child._staying
        assert process is not None
        assert process.wait(5) == -9


def test_a_cancelled_run_returns_what_it_has(engine: Callable[..., ProcessEngine], seat: EngineSeat) -> None:
    process = engine(WAITS_AND_RECORDS)

    def cancel_elsewhere(_event: Json) -> None:
        threading.Thread(target=process._child.cancel).start()

    assert process.run(WORKLOAD, ADDRESS, seat, cancel_elsewhere).window.interrupted


def test_a_cancelled_run_without_a_recording_is_an_error(
    engine: Callable[..., ProcessEngine], seat: EngineSeat
) -> None:
    process = engine(WAITS)
    with pytest.raises(EngineError, match="the run was cancelled"):
        process.run(WORKLOAD, ADDRESS, seat, lambda _event: process._child.cancel())


def test_an_interruption_ends_the_child(engine: Callable[..., ProcessEngine], seat: EngineSeat) -> None:
    process = engine(WAITS)
    pids: list[int] = []

    def interrupt(_event: Json) -> None:
        child = process._child._process
        assert child is not None
        pids.append(child.pid)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        process.run(WORKLOAD, ADDRESS, seat, interrupt)
    assert not Path(f"/proc/{pids[0]}").exists()


def test_the_end_of_its_stdin_cancels_it(engine: Callable[..., ProcessEngine], seat: EngineSeat) -> None:
    engine(WAITS)
    order = json.dumps({"spec": {}, "seat": asdict(seat)}) + "\n"
    done = subprocess.run(
        Child("prony.engine.child").command(),
        input=order,
        capture_output=True,
        text=True,
        timeout=10,
        check=False,
    )
    assert done.stdout.splitlines()[-1] == (
        '{"event": "error", "kind": "cancelled", "message": "the run was cancelled"}'
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it changes the user")
def test_it_gives_up_its_privileges(engine: Callable[..., ProcessEngine], seat: EngineSeat) -> None:
    body = """
import json, os
def run(spec, on_event, *_):
    ids = [*os.getresuid(), *os.getresgid()], os.getgroups()
    return json.dumps({**IDLE, "engine": {"name": str(ids)}})
"""
    nobody = EngineSeat(seat.cpus, None, 65534, 65534, (65534,))
    recording = engine(body).run(WORKLOAD, ADDRESS, nobody, ignore)
    assert recording.engine.name == str(([65534] * 6, [65534]))


BURNS = """
import json, time
def run(spec, on_event, *_):
    on_event('{"event": "started"}')
    on_event('{"event": "window_open", "monotonic_ns": 1}')
    end = time.process_time() + 0.4
    while time.process_time() < end:
        pass
    on_event('{"event": "window_close", "monotonic_ns": 2}')
    return json.dumps(IDLE)
"""


def test_its_own_cpu_and_memory_are_seen_over_the_window(
    engine: Callable[..., ProcessEngine], seat: EngineSeat
) -> None:
    used = engine(BURNS).run(WORKLOAD, ADDRESS, seat, ignore).generator.processes
    assert used is not None
    # It burns all the time that the machine gives it, which others share.
    assert 10 < (used.cpu_percent or 0) < 110
    assert used.processes_max == 1
    assert 1 << 20 < (used.rss_mean_bytes or 0) <= (used.rss_peak_bytes or 0) < 1 << 30
    assert 0 < (used.memory_ratio or 0) < 1


COUNTS_ITS_RUNS = """
import json, os
runs = 0
def run(spec, on_event, *_):
    global runs
    runs += 1
    return json.dumps({**IDLE, "engine": {**IDLE["engine"], "version": f"{os.getpid()}:{runs}"}})
"""


def test_one_that_stays_sends_all_loads_and_is_gone_afterwards(
    engine: Callable[..., ProcessEngine], seat: EngineSeat
) -> None:
    own = engine(COUNTS_ITS_RUNS)
    with own.staying():
        said = [own.run_short(WORKLOAD, ADDRESS, seat, ignore).engine.version for _ in range(3)]
    pids, runs = zip(*(one.split(":") for one in said), strict=True)
    assert (len(set(pids)), runs) == (1, ("1", "2", "3"))
    assert not Path(f"/proc/{pids[0]}").exists()
    alone = [own.run(WORKLOAD, ADDRESS, seat, ignore).engine.version for _ in range(2)]
    assert [one.split(":")[1] for one in alone] == ["1", "1"]
