"""Which code uses the CPU after a window: real runtimes are sampled, and what cannot be is named."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from diagnosis.test_rules import CELL
from golden import build
from prony.core.errors import EngineError
from prony.core.users import HIDES_SESSIONS
from prony.model.address import Address
from prony.model.facts import CodeKind
from prony.model.observation import LogTail, ThreadUsage
from prony.model.sandbox import EngineSeat
from prony.model.workload import ClosedLoop, DurationStop, EngineChoice
from prony.sandbox.contract import listening_ports
from prony.sandbox.identity import descendants
from prony.study.after_window import _number_inside, profiled
from recordings import with_parts

MS, SECOND = 1_000_000, build.SECOND
LOAD = build.Workload(ClosedLoop(4), DurationStop(2 * SECOND), warmup_ns=SECOND)


class Where:
    """A subject that wrote ``file``."""

    address, seat = Address("127.0.0.1", 8000), EngineSeat(cpus=(0,))

    def __init__(self, file=None):
        self._file = file

    def log(self):
        return LogTail(self._file.read_text() if self._file else "")


WHERE = Where()
BURNS = """
import json

def render(rows):
    return json.dumps(rows, indent=1)

def page():
    while True:
        render([{"name": "x" * 9, "price": n} for n in range(3000)])

print("ready", flush=True)
page()
"""


# Nearly all of its time is spent in a call that gives the lock away.
HASHES = """
import hashlib, threading

def page():
    block = b"x" * 20_000_000
    while True:
        hashlib.sha256(block)

print("ready", flush=True)
for _ in range(2):
    threading.Thread(target=page).start()
"""


class Engine:
    """Sends nothing for so long, and answers with so many replies."""

    def __init__(self, replies=200, window_s=0.0):
        self._replies, self._window_s, self.loads = replies, window_s, []

    def run(self, workload, address, seat, on_event):
        self.loads.append(workload)
        if not self._replies:
            raise EngineError("it broke")
        on_event({"event": "window_open"})
        time.sleep(self._window_s)
        on_event({"event": "window_close"})
        return build.recording(LOAD, [MS] * self._replies)


@pytest.fixture
def cell():
    return replace(CELL, workload=LOAD)


@contextmanager
def started(words, **options):
    """Run a program, and end it with all that it started, however its test ends."""
    with subprocess.Popen(words, start_new_session=True, **options) as program:
        try:
            yield program
        finally:
            if program.poll() is None:
                os.killpg(program.pid, signal.SIGKILL)


@contextmanager
def running(folder, script):
    file = folder / "shop.py"
    file.write_text(script)
    with started([sys.executable, file], stdout=subprocess.PIPE) as program:
        program.stdout.readline()
        yield program.pid


@pytest.fixture
def busy(tmp_path):
    with running(tmp_path, BURNS) as pid:
        yield pid


def threads(*pids):
    # Little: on a busy machine they have little more while they are sampled.
    return [ThreadUsage(pid, pid, "main", SECOND // 20) for pid in pids]


def loaded(**window):
    found = build.recording(LOAD, [MS] * 400)
    return with_parts(found, window=window) if window else found


def test_the_function_that_burns_is_found_and_by_how_much_the_rate_fell(cell, busy):
    engine = Engine(window_s=2.0)
    found = profiled(engine, cell, loaded(), WHERE, threads(busy))
    if "ermission" in found.missing:
        pytest.skip(found.missing)
    assert found.missing == ""
    spot = found.hottest[0]
    assert (spot.kind, spot.place.partition(":")[0]) == (CodeKind.APP, "shop.py")
    assert "json.encoder" in spot.function or spot.function == "render"
    # On a busy machine some stacks change while they are read.
    assert found.shares[CodeKind.APP] > 0.6
    assert found.slowed == 0.5
    (sent,) = engine.loads
    assert (sent.loop, sent.stop, sent.request) == (LOAD.loop, DurationStop(3 * SECOND), LOAD.request)


def test_of_several_busy_threads_who_has_the_lock_counts(cell, tmp_path):
    script = BURNS.replace(
        "page()\n", "import threading\nfor _ in range(3):\n    threading.Thread(target=page).start()\n"
    )
    with running(tmp_path, script) as pid:
        several = [ThreadUsage(pid, pid + n, "page", SECOND // 3) for n in range(3)]
        found = profiled(Engine(window_s=2.0), cell, loaded(), WHERE, several)
    if "ermission" in found.missing:
        pytest.skip(found.missing)
    assert found.shares[CodeKind.APP] > 0.6
    assert 50 < found.samples < 300


def test_several_threads_without_the_lock_are_named(cell, tmp_path):
    script = HASHES
    with running(tmp_path, script) as pid:
        several = [ThreadUsage(pid, pid + n, "page", 2 * SECOND) for n in range(2)]
        found = profiled(Engine(window_s=2.0), cell, loaded(), WHERE, several)
    if "ermission" in found.missing:
        pytest.skip(found.missing)
    assert "without CPython's lock" in found.missing


def test_too_few_samples_have_no_shares(cell, busy):
    found = profiled(Engine(), cell, loaded(), WHERE, threads(busy))
    assert (found.hottest, found.shares) == ((), {})
    assert found.missing


@pytest.mark.parametrize(
    ("name", "why"),
    [("php-fpm8.2", "Excimer"), ("ruby3.1", "rbspy"), ("perl", "NYTProf"), ("java", "JFR.start")],
)
def test_another_runtime_is_named_with_what_does_it_and_not_loaded(cell, tmp_path, name, why):
    engine, file = Engine(), tmp_path / name
    shutil.copy(shutil.which("sleep"), file)
    with started([file, "60"]) as asleep:
        found = profiled(engine, cell, loaded(), WHERE, threads(asleep.pid))
    assert why in found.missing
    assert engine.loads == []


def test_a_compiled_program_is_sampled_by_the_kernel(cell):
    """The shell computes without a library's help: all of it is the program's own."""
    with started(["sh", "-c", "while :; do :; done"]) as loop:
        found = profiled(Engine(window_s=3.0), cell, loaded(), WHERE, threads(loop.pid))
    if "refuses" in found.missing:
        pytest.skip(found.missing)
    assert found.missing == ""
    assert found.shares[CodeKind.SERVER] > 0.6
    assert found.samples >= 30


NODE = """
const crypto = require("node:crypto");
function render(rows) { return JSON.stringify(rows); }
function page() {
  let text = "";
  for (let n = 0; n < 20; n++) text += render(Array.from({length: 300}, (_, i) => ({name: "x", price: i})));
  return crypto.createHash("sha256").update(text).digest("hex");
}
console.log("ready");
(function loop() { page(); setImmediate(loop); })();
"""


@contextmanager
def running_node(folder, script=NODE, processes=1, **variables):
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed")
    (folder / "shop.js").write_text(script)
    variables = {**os.environ, "NODE_OPTIONS": HIDES_SESSIONS, **variables}
    words = [node, folder / "shop.js"]
    with (
        (folder / "log").open("w+b") as log,
        started(words, stdout=log, stderr=log, env=variables) as program,
    ):
        until_s = time.monotonic() + 30
        while (folder / "log").read_bytes().count(b"ready") < processes:
            assert time.monotonic() < until_s, (folder / "log").read_text()
            time.sleep(0.01)
        yield program, Where(folder / "log")


@pytest.mark.servers
def test_a_running_node_is_sampled_and_its_inspector_closes(cell, tmp_path):
    with running_node(tmp_path) as (program, where):
        found = profiled(Engine(window_s=1.5), cell, loaded(), where, threads(program.pid))
        assert listening_ports([program.pid]) == ()
        assert program.poll() is None
        # A second time, as after another window.
        again = profiled(Engine(window_s=1.0), cell, loaded(), where, threads(program.pid))
    assert (found.missing, again.missing) == ("", "")
    assert found.hottest[0].place.partition(":")[0] == "shop.js"
    assert found.shares[CodeKind.APP] > 0.6
    assert found.samples > 30


@pytest.mark.servers
def test_the_port_of_the_inspector_may_be_taken(cell, tmp_path):
    script = f'require("node:net").createServer().listen(9229, "127.0.0.1", () => {{ {NODE} }});'
    with running_node(tmp_path, script) as (program, where):
        found = profiled(Engine(window_s=0.1), cell, loaded(), where, threads(program.pid))
        assert program.poll() is None
    assert "is its port taken" in found.missing


@pytest.mark.servers
def test_an_inspector_that_others_would_find_is_not_opened(cell, tmp_path):
    with running_node(tmp_path, NODE_OPTIONS="") as (program, where):
        found = profiled(Engine(), cell, loaded(), where, threads(program.pid))
        assert "Debugger" not in where.log().text
    assert "other users could enter it" in found.missing


@pytest.mark.servers
def test_each_worker_of_a_cluster_can_be_asked(cell, tmp_path):
    script = (
        f'const c = require("node:cluster"); if (c.isPrimary) {{ c.fork(); c.fork(); }} else {{ {NODE} }}'
    )
    with running_node(tmp_path, script, processes=2) as (program, where):
        workers = descendants(program.pid)
        assert len(workers) == 2
        for pid in workers:
            found = profiled(Engine(window_s=1.5), cell, loaded(), where, threads(pid))
            assert found.missing == ""
            assert found.hottest[0].place.partition(":")[0] == "shop.js"


GO = """
package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
)

type row struct {
	Name  string
	Price int
}

//go:noinline
func render(rows []row) []byte {
	found, _ := json.Marshal(rows)
	return found
}

func page() [32]byte {
	rows := []row{}
	for n := 0; n < 3000; n++ {
		rows = append(rows, row{"x", n})
	}
	return sha256.Sum256(render(rows))
}

func main() {
	fmt.Println("ready")
	for {
		page()
	}
}
"""


@pytest.mark.servers
@pytest.mark.parametrize(
    "options",
    [
        pytest.param((), marks=pytest.mark.slow),
        ("-trimpath", "-ldflags=-s -w"),
        pytest.param(("-buildmode=pie", "-ldflags=-s -w"), marks=pytest.mark.slow),
    ],
)
def test_a_go_program_is_sampled_with_its_lines(cell, tmp_path, options):
    go = shutil.which("go") or "/usr/lib/go/bin/go"
    if not Path(go).exists():
        pytest.skip("Go is not installed")
    (tmp_path / "shop.go").write_text(GO)
    variables = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}
    words = [go, "build", *options, "-o", "shop", "shop.go"]
    subprocess.run(words, cwd=tmp_path, env=variables, check=True, timeout=300)
    with started([tmp_path / "shop"], stdout=subprocess.PIPE) as program:
        program.stdout.readline()
        found = profiled(Engine(window_s=1.5), cell, loaded(), WHERE, threads(program.pid))
    if "refuses" in found.missing:
        pytest.skip(found.missing)
    assert found.missing == ""
    render = next(one for one in found.hottest if "json" in one.function or one.function == "main.render")
    assert (render.kind, render.place) == (CodeKind.APP, "shop.go:17")
    assert found.shares[CodeKind.APP] > 0.5


def test_a_generator_that_breaks_is_the_reason(cell, busy):
    assert profiled(Engine(replies=0), cell, loaded(), WHERE, threads(busy)).missing == "it broke"


@pytest.mark.parametrize(
    ("choice", "recording", "pids"),
    [
        (EngineChoice("wrk"), loaded(), (1,)),
        (EngineChoice("fleet"), loaded(), (1,)),
        (EngineChoice(), loaded(interrupted=True), (1,)),
        (EngineChoice(), loaded(close_ns=1000 * SECOND + 1999 * MS), (1,)),
        (EngineChoice(), loaded(), ()),
    ],
    ids=["another generator", "elsewhere", "interrupted", "a short window", "nobody is busy"],
)
def test_nobody_looks_where_the_cpu_is_no_question(cell, choice, recording, pids):
    engine = Engine()
    assert profiled(engine, replace(cell, engine=choice), recording, WHERE, threads(*pids)) is None
    assert engine.loads == []


def test_a_thread_with_half_a_letter_in_its_name_has_its_number():
    """The kernel cuts names after 15 bytes, wherever a letter ends."""
    done = threading.Event()
    numbers = []

    def named():
        Path("/proc/thread-self/comm").write_bytes("äöüäöüäö".encode()[:15])
        numbers.append(threading.get_native_id())
        done.wait()

    thread = threading.Thread(target=named)
    thread.start()
    try:
        while not numbers:
            time.sleep(0.001)
        assert b"\xc3\n" in Path(f"/proc/self/task/{numbers[0]}/status").read_bytes()
        one = ThreadUsage(os.getpid(), numbers[0], "a", 1)
        assert _number_inside(one) > 0
    finally:
        done.set()
        thread.join()
