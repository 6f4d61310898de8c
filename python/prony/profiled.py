"""Which code uses the CPU of a server that is at its limit: its stacks, in a short load after the window.

The trial's own figures are all from before; while stacks are sampled its rate may fall, and by how much is
said. What is sampled is CPython; of other runtimes it says that they are not.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from prony.alone import may_load_again
from prony.analysis.hot_code import hot_code
from prony.engine.base import Engine
from prony.errors import EngineError
from prony.model.address import Address
from prony.model.facts import HotCode
from prony.model.plan import Cell
from prony.model.recording import Recording
from prony.model.shapes import Json
from prony.model.workload import DurationStop, Workload
from prony.monitor.stacks import PythonStacks
from prony.seat import EngineSeat
from prony.units import MILLISECOND_NS, SECOND_NS

# At 100 looks a second shares have a standard error of 3 % at most.
_LENGTH_NS, _WARMUP_NS = 3 * SECOND_NS, 200 * MILLISECOND_NS
_LEAST_SAMPLES = 30
# It may not pause the server for each look: what is then read of a stack while that changes is wrong at most
# for this look.
_OPTIONS = ("--nonblocking", "--full-filenames")
_OTHER_RUNTIME = (
    "only the code of CPython is looked at; other runtimes have profilers of their own "
    "(`node --cpu-prof`, `go tool pprof`, `perf record -g`)"
)


def profiled(
    engine: Engine, cell: Cell, loaded: Recording, where: tuple[Address, EngineSeat], pids: Sequence[int]
) -> HotCode | None:
    """Return where the CPU of these processes goes under the trial's own load, after the window that
    ``loaded`` recorded; null by other generators, after a short window, or where no process is named.
    """
    if not pids or not may_load_again(cell, loaded):
        return None
    own = tuple(pid for pid in pids if _is_python(pid))
    if not own:
        return HotCode(missing=_OTHER_RUNTIME)
    stacks = PythonStacks(lambda: own, *_OPTIONS)
    try:
        found = engine.run(_short(cell.workload), *where, lambda event: _on_event(stacks, event))
    except EngineError as error:
        return HotCode(missing=error.message)
    finally:
        stacks.close_window()
    return _code(stacks, _slowed(loaded, found))


def _is_python(pid: int) -> bool:
    """Return whether a process has a CPython in it, as uWSGI and others may."""
    try:
        return "python" in Path(f"/proc/{pid}/maps").read_text(errors="replace")
    except OSError:
        return True  # py-spy says why it may not be read


def _short(load: Workload) -> Workload:
    steady = replace(load.loop, stages=())
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


def _code(stacks: PythonStacks, slowed: float | None) -> HotCode:
    texts = stacks.texts()
    if not texts:
        return HotCode(missing=stacks.reason)
    try:
        found = hot_code(texts)
    except ValueError as error:
        return HotCode(missing=f"py-spy wrote something else than stacks: {error}")
    if found.samples < _LEAST_SAMPLES:
        return HotCode(missing=f"of {found.samples} stacks no share can be read; 30 are needed")
    return replace(found, slowed=slowed)
