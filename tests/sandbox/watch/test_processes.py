import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from commands import eventually
from prony.model.launch import RoleRule
from prony.model.observation import Phase
from prony.model.sandbox import Placement
from prony.sandbox.watch.native import CompiledSource
from prony.sandbox.watch.processes import ProcessMonitor, role_of

CPUS = tuple(os.sched_getaffinity(0))
PLACEMENT = Placement(CPUS, CPUS[-1:], shared=True)


@dataclass(frozen=True)
class FakeProcess:
    pid: int
    start_time_ticks: int = 7
    user_ns: int = 30
    system_ns: int = 20
    rss_bytes: int = 100
    vsz_bytes: int = 200
    threads: int = 3


@dataclass(frozen=True)
class FakeMemory:
    pss_bytes: int = 11
    uss_bytes: int = 10


@dataclass(frozen=True)
class FakeThread:
    tid: int
    cpu_ns: int
    name: str = "loop"
    voluntary_switches: int = 3
    involuntary_switches: int = 2


@dataclass(frozen=True)
class FakeDetail:
    threads: list[FakeThread]
    rss_peak_bytes: int = 150
    descriptors: int = 9


class FakeSource:
    """Two processes: this one, and one that is gone by the time it is looked at."""

    def __init__(self) -> None:
        self.threads: set[tuple[int, int]] = set()
        self.details = 0

    def sample(self) -> list[FakeProcess]:
        thread = threading.get_native_id()
        self.threads.add((os.getpriority(os.PRIO_PROCESS, thread), len(os.sched_getaffinity(thread))))
        return [FakeProcess(os.getpid()), FakeProcess(2**22)]

    def memory(self, pid: int) -> FakeMemory | None:
        return FakeMemory() if pid == os.getpid() else None

    def detail(self, pid: int) -> FakeDetail | None:
        """Return one that uses 40 ns between two looks, one that uses none, and a new one each time."""
        if pid != os.getpid():
            return None
        self.details += 1
        threads = [
            FakeThread(1, 100 + 40 * self.details),
            FakeThread(2, 70),
            FakeThread(10 + self.details, 5),
        ]
        return FakeDetail(threads)


def monitor(source: FakeSource) -> ProcessMonitor:
    rules = (RoleRule("server"), RoleRule("worker", "child"))
    return ProcessMonitor(source, {os.getpid(): rules}, PLACEMENT)


@pytest.mark.parametrize(
    ("rules", "is_main", "command", "role"),
    [
        ((RoleRule("master"), RoleRule("worker", "child")), True, "", "master"),
        ((RoleRule("master"), RoleRule("worker", "child")), False, "", "worker"),
        ((RoleRule("proxy", "command", "nginx"), RoleRule("app", "child")), False, "nginx: worker", "proxy"),
        ((RoleRule("proxy", "command", "nginx"), RoleRule("app", "child")), False, "python", "app"),
        ((RoleRule("master"),), False, "python", "other"),
    ],
)
def test_the_first_rule_that_fits_gives_the_role(
    rules: tuple[RoleRule, ...], is_main: bool, command: str, role: str
) -> None:
    assert role_of(rules, is_main, command) == role


def test_the_window_has_a_sample_at_each_edge_and_memory_at_its_end() -> None:
    watch = monitor(FakeSource())
    watch.enter(Phase.WARMUP)
    watch.open_window()
    watch.close_window()
    samples = watch.samples()
    assert [sample.phase for sample in samples] == ["idle", "warmup", "warmup", "window", "window", "drain"]
    assert [row.pss_bytes for row in samples[4].processes] == [11, None]
    assert [row.role for row in samples[4].processes] == ["server", "worker"]
    assert all(row.pss_bytes is None for sample in samples[:4] for row in sample.processes)
    assert [sample.monotonic_ns for sample in samples] == sorted(sample.monotonic_ns for sample in samples)


def test_what_is_dear_is_read_at_both_edges_of_the_window_and_nowhere_else() -> None:
    watch = monitor(FakeSource())
    watch.enter(Phase.WARMUP)
    watch.open_window()
    watch.sample()
    watch.close_window()
    rows = [sample.processes[0] for sample in watch.samples() if sample.phase is Phase.WINDOW]
    assert [row.rss_peak_bytes for row in rows] == [150, None, 150]
    assert [row.descriptors for row in rows] == [9, None, 9]
    switches = [(row.voluntary_switches, row.involuntary_switches) for row in rows]
    assert switches == [(9, 6), (None, None), (9, 6)]
    gone = [sample.processes[1].rss_peak_bytes for sample in watch.samples()]
    assert set(gone) == {None}


def test_a_threads_use_is_that_of_the_window_and_idle_ones_are_left_out() -> None:
    watch = monitor(FakeSource())
    watch.open_window()
    watch.close_window()
    assert [(one.tid, one.cpu_ns) for one in watch.threads()] == [(1, 40), (12, 5)]
    assert watch.threads()[0].pid == os.getpid()


class FakeGauges:
    def __init__(self) -> None:
        self.closed = False

    def read(self) -> dict[str, int]:
        return {"queued": 1}

    def read_at_open(self) -> dict[str, int]:
        return {"queued": 2, "established": 3}

    def read_at_close(self) -> dict[str, int]:
        return {"queued": 4, "established": 5}

    def missing(self) -> dict[str, str]:
        return {}

    def close(self) -> None:
        self.closed = True


def test_gauges_are_read_with_each_sample_and_in_full_at_the_marks() -> None:
    watch = ProcessMonitor(FakeSource(), {os.getpid(): ()}, PLACEMENT, [FakeGauges()])
    watch.enter(Phase.WARMUP)
    watch.open_window()
    watch.sample()
    watch.close_window()
    window = [sample.gauges for sample in watch.samples() if sample.phase is Phase.WINDOW]
    opened, closed = {"queued": 2, "established": 3}, {"queued": 4, "established": 5}
    assert window == [opened, {"queued": 1}, closed]


def test_a_row_names_the_command_and_the_machine_is_read() -> None:
    watch = monitor(FakeSource())
    watch.sample()
    sample = watch.samples()[0]
    assert "python" in sample.processes[0].command
    assert sample.processes[1].command == ""
    assert sample.machine_busy_ns > 0


def test_the_thread_samples_at_the_lowest_priority_on_the_generators_cpus(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("prony.sandbox.watch.processes._PERIOD_S", 0.01)
    source, own = FakeSource(), os.getpriority(os.PRIO_PROCESS, 0)
    with monitor(source) as watch:
        deadline_s = time.monotonic() + 5
        while len(watch.samples()) < 3 and time.monotonic() < deadline_s:
            time.sleep(0.01)
        watch.stop()
    assert len(watch.samples()) >= 3
    assert source.threads == {(19, 1)}
    assert os.getpriority(os.PRIO_PROCESS, 0) == own


def test_what_goes_wrong_in_the_thread_comes_back_at_the_stop() -> None:
    broke = threading.Event()

    class Broken(FakeSource):
        def sample(self) -> list[FakeProcess]:
            broke.set()
            raise OSError("broken")

    watch = monitor(Broken())
    watch.start()
    assert broke.wait(timeout=30)
    with pytest.raises(OSError, match="broken"):
        watch.stop()
    watch.stop()


# Threads that come and go, each of which leaves its children to one that is listed after it.
HANDING_ON = """
import ctypes, os, signal, threading, time
threading.stack_size(65536)
def live(children):
    for _ in range(children):
        if os.fork() == 0:
            while True:
                signal.pause()
    time.sleep(0.0005 if children else 0.005)
    threading.Thread(target=live, args=(0,)).start()
for place in range(40):
    threading.Thread(target=live, args=(0 if place else 200,)).start()
    time.sleep(0.0005)
ctypes.CDLL(None).pthread_exit(None)
"""


def test_a_process_is_in_a_sample_once_though_it_passes_from_thread_to_thread() -> None:
    command = [sys.executable, "-c", HANDING_ON]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, process_group=0) as handing_on:
        try:
            source, most = CompiledSource(os.getpid()), 0
            until_s = time.monotonic() + 1.5
            while time.monotonic() < until_s:
                found = Counter(one.pid for one in source.sample())
                most = max(most, len(found))
                assert max(found.values()) == 1
        finally:
            os.killpg(handing_on.pid, signal.SIGKILL)
    assert most > 50


# A list of arguments that has no end, and that takes no memory: prctl(2), PR_SET_MM_MAP.
ENDLESS = """
import ctypes, struct, time
libc = ctypes.CDLL(None)
libc.mmap.restype = libc.sbrk.restype = ctypes.c_void_p
fields = [int(one) for one in open("/proc/self/stat").read().rpartition(")")[2].split()[1:]]
begin = libc.mmap(None, ctypes.c_size_t(1 << 40), 1, 0x4022, -1, ctypes.c_long(0))
places = [*fields[22:24], *fields[41:44], libc.sbrk(0), fields[24], begin, begin + (1 << 40), *fields[46:48]]
mapped = struct.pack("=12QiI", *places, 0, 0, 0xFFFFFFFF)
print(libc.prctl(35, 14, mapped, len(mapped), 0), flush=True)
time.sleep(60)
"""


def test_a_command_line_without_an_end_is_read_to_its_cap() -> None:
    with subprocess.Popen([sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE) as endless:
        try:
            assert endless.stdout is not None
            if endless.stdout.readline() != b"0\n":
                pytest.skip("this kernel lets no process say where its arguments are")
            watch = ProcessMonitor(CompiledSource(endless.pid, include_root=True), {1: ()}, PLACEMENT)
            watch.sample()
        finally:
            endless.kill()
    # All of it are zeroes.
    assert watch.samples()[0].processes[0].command.startswith("[python")


def test_of_very_many_long_command_lines_the_beginnings_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prony.sandbox.watch.processes._MOST_COMMANDS", 5000)
    sleeping = [sys.executable, "-c", "import time; time.sleep(60)", "x" * 3000]
    children = [subprocess.Popen(sleeping) for _ in range(4)]
    # On a busy machine a child may not be its program yet.
    lines = [Path(f"/proc/{child.pid}/cmdline") for child in children]
    assert eventually(lambda: all(len(line.read_bytes()) > 3000 for line in lines))
    watch = monitor(CompiledSource(os.getpid()))
    watch.sample()
    for child in children:
        child.kill()
        child.wait()
    lengths = {one.pid: len(one.command) for one in watch.samples()[0].processes}
    assert sorted(lengths[child.pid] > 3000 for child in children) == [False, False, True, True]
    assert min(lengths[child.pid] for child in children) == 256
