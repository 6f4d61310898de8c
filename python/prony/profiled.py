"""Which code uses the CPU of a server that is at its limit: its stacks, in a short load after the window.

The trial's own figures are all from before; while stacks are sampled its rate may fall, and by how much is
said. What is sampled is CPython; of other runtimes it says that they are not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from prony.alone import may_load_again
from prony.analysis.hot_code import hot_code, of_thread
from prony.engine.base import Engine
from prony.errors import EngineError
from prony.model.address import Address
from prony.model.facts import HotCode
from prony.model.observation import ThreadUsage
from prony.model.plan import Cell
from prony.model.recording import Recording
from prony.model.sandbox import EngineSeat
from prony.model.shapes import Json
from prony.model.workload import ClosedLoop, DurationStop, Loop, OpenLoop, Workload
from prony.monitor.stacks import RATE_HZ, PythonStacks
from prony.units import MILLISECOND_NS, SECOND_NS

# At 100 looks a second shares have a standard error of 3 % at most.
_LENGTH_NS, _WARMUP_NS = 3 * SECOND_NS, 200 * MILLISECOND_NS
_LEAST_SAMPLES = 30
# Of a process's CPU: others than this thread are then of no interest.
_NEARLY_ALL = 0.8
# Of its CPU: who uses more of it without CPython's lock is not seen by who has that.
_LEAST_HELD = 0.5
# It may not pause the server for each look: what is then read of a stack while that changes is wrong at most
# for this look.
_OPTIONS = ("--nonblocking", "--full-filenames", "--threads")
_OTHER_RUNTIME = (
    "only the code of CPython is looked at; other runtimes have profilers of their own "
    "(`node --cpu-prof`, `go tool pprof`, `perf record -g`)"
)
_WITHOUT_LOCK = (
    "several threads use most of its CPU without CPython's lock, where nothing says which of them runs; "
    "measure it with one thread"
)


def profiled(
    engine: Engine,
    cell: Cell,
    loaded: Recording,
    where: tuple[Address, EngineSeat],
    threads: Sequence[ThreadUsage],
) -> HotCode | None:
    """Return where the CPU goes of the processes that have these ``threads``, the busiest first, under the
    trial's own load, after the window that ``loaded`` recorded; null by other generators, after a short
    window, or without threads.
    """
    if not threads or not may_load_again(cell, loaded):
        return None
    own = [one for one in threads if _is_python(one.pid)]
    if not own:
        return HotCode(missing=_OTHER_RUNTIME)
    lone = _lone_threads(own)
    stacks = PythonStacks(
        lambda: tuple(dict.fromkeys(one.pid for one in own)), *_OPTIONS, *([] if lone else ["--gil"])
    )
    try:
        found = engine.run(_short(cell.workload), *where, lambda event: _on_event(stacks, event))
    except EngineError as error:
        return HotCode(missing=error.message)
    finally:
        stacks.close_window()
    cores = sum(one.cpu_ns for one in own) / (loaded.window.length_ns or 1)
    code = _code(stacks, lone, cores)
    return code if code.missing else replace(code, slowed=_slowed(loaded, found))


def _is_python(pid: int) -> bool:
    """Return whether a process has a CPython in it, as uWSGI and others may."""
    try:
        return "python" in Path(f"/proc/{pid}/maps").read_text(errors="replace")
    except OSError:
        return True  # py-spy says why it may not be read


def _lone_threads(threads: Sequence[ThreadUsage]) -> dict[int, int]:
    """Return by process its only busy thread, by its number in its own namespace; none where one process has
    several: who waits for CPython's lock then looks busy too.
    """
    found: dict[int, int] = {}
    for pid in {one.pid for one in threads}:
        own = [one for one in threads if one.pid == pid]
        busiest = max(own, key=lambda one: one.cpu_ns)
        if busiest.cpu_ns < _NEARLY_ALL * sum(one.cpu_ns for one in own):
            return {}
        found[pid] = _number_inside(busiest)
    return found


def _number_inside(thread: ThreadUsage) -> int:
    """*Source*: proc_pid_status(5), NSpid: the numbers in each namespace, the innermost last."""
    try:
        lines = Path(f"/proc/{thread.pid}/task/{thread.tid}/status").read_text(errors="replace").splitlines()
    except OSError:
        return thread.tid
    return next((int(line.split()[-1]) for line in lines if line.startswith("NSpid:")), thread.tid)


def _short(load: Workload) -> Workload:
    match load.loop:
        case ClosedLoop(connections):
            steady: Loop = ClosedLoop(connections)
        case OpenLoop() as asked:
            steady = replace(asked, stages=())
    return replace(load, loop=steady, stop=DurationStop(_LENGTH_NS), warmup_ns=_WARMUP_NS)


def _on_event(stacks: PythonStacks, event: Json) -> None:
    match event["event"]:
        case "window_open":
            stacks.open_window()
        case "window_close":
            stacks.close_window()


def _slowed(before: Recording, meanwhile: Recording) -> float | None:
    """Return by which share a closed loop's rate fell."""
    rates = [one.completed.ok / (one.window.length_ns or 1) for one in (before, meanwhile)]
    return None if before.is_open or not rates[0] else max(0.0, 1 - rates[1] / rates[0])


def _code(stacks: PythonStacks, lone: Mapping[int, int], cores: float) -> HotCode:
    texts = stacks.texts()
    if not texts:
        return HotCode(missing=stacks.reason)
    try:
        found = hot_code(of_thread(text, lone[pid]) if lone else text for pid, text in texts.items())
    except ValueError as error:
        return HotCode(missing=f"py-spy wrote something else than stacks: {error}")
    if not lone and found.samples < _LEAST_HELD * cores * RATE_HZ * stacks.looked_s / len(texts):
        return HotCode(missing=_WITHOUT_LOCK)
    if found.samples < _LEAST_SAMPLES:
        return HotCode(missing=f"of {found.samples} stacks no share can be read; {_LEAST_SAMPLES} are needed")
    return found
