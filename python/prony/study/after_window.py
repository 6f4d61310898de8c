"""What follows the window of a trial: short loads that say what its figures cannot.

How long a request takes that has the server to itself: a short load of one connection after the window.

With the rate under load it says how many requests the server worked on at a time (Little's law), and so
whether more connections can carry more. Where that is one at a time, requests far apart show whether it is
busy with one for that long, or only lets so many through. Counters: ``alone.requests``, ``alone.service_ns``
and ``alone.mean_ns``, the median and the mean service time of valid replies, and ``alone.spaced_ns``, the
median of requests that are due four times as far apart as it answered.

Which code uses the CPU of a server that is at its limit: its stacks, in a short load after the window.

The trial's own figures are all from before; while stacks are sampled its rate may fall, and by how much is
said. CPython is sampled by py-spy, Node.js by V8's own profiler, Go and other compiled programs by the
kernel; of other runtimes it says that they are not, and what does it.
"""

import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from prony.core.errors import EngineError
from prony.core.units import MILLISECOND_NS, SECOND_NS, seconds
from prony.engine.generator import Engine
from prony.figures.hot_code import hot_code, of_thread
from prony.figures.latency import read_distribution
from prony.model.address import Address
from prony.model.facts import HotCode
from prony.model.json_codec import Json
from prony.model.observation import LogTail, ThreadUsage
from prony.model.plan import Cell
from prony.model.recording import Distribution, Recording
from prony.model.sandbox import EngineSeat
from prony.model.workload import ELSEWHERE, ClosedLoop, DurationStop, Loop, OpenLoop, Workload, is_fleet
from prony.sandbox.container import inner_number
from prony.sandbox.contract import listening_ports
from prony.sandbox.linux import in_network
from prony.sandbox.watch.inspector import NodeProcess, NodeStacks
from prony.sandbox.watch.native_stacks import NativeStacks, mappings_text
from prony.sandbox.watch.stacks import RATE_HZ, PythonStacks

# A median of fewer says little; of ten all but the first have a warm connection.
_LEAST_REPLIES, _REPLIES = 3, 10
_SHORTEST_NS, _LONGEST_NS = 300 * MILLISECOND_NS, 2 * SECOND_NS
# Three replies of a page that waits for more than half a second.
_PATIENT_NS = 5 * SECOND_NS
# A study of shorter windows looks for something else, and has its answer sooner.
_LEAST_WINDOW_NS = 2 * SECOND_NS
# Of one request at a time, by Little's law; by how much further apart requests are then due.
_ONE, _APART = (0.7, 1.35), 4


def alone(
    engine: Engine, cell: Cell, loaded: Recording, where: tuple[Address, EngineSeat]
) -> Mapping[str, int]:
    """Return the counters, after the window that ``loaded`` recorded; none by other generators, after a short
    window, of pages of which fewer than three fit into 5 s, of a server that fails.
    """
    length_ns = _length_ns(cell, loaded)
    if length_ns is None:
        return {}
    own = ClosedLoop(1)
    found = _times_of(engine, _short(cell.workload, own, length_ns), where)
    if found is None and length_ns == _LONGEST_NS:
        found = _times_of(engine, _short(cell.workload, own, _PATIENT_NS), where)
    if found is None:
        return {}
    replies, median_ns, mean_ns = found
    counters = {"alone.requests": replies, "alone.service_ns": median_ns, "alone.mean_ns": mean_ns}
    per_s = loaded.completed.ok * SECOND_NS / (loaded.window.length_ns or SECOND_NS)
    if not _ONE[0] <= per_s * seconds(median_ns) <= _ONE[1]:
        return counters
    apart = OpenLoop(per_s / _APART, connections=1)
    spaced_ns = min(max(round(_REPLIES * _APART / per_s * SECOND_NS), _SHORTEST_NS), _LONGEST_NS)
    spaced = _times_of(engine, _short(cell.workload, apart, spaced_ns), where)
    return counters | ({"alone.spaced_ns": spaced[1]} if spaced else {})


def _times_of(
    engine: Engine, load: Workload, where: tuple[Address, EngineSeat]
) -> tuple[int, int, int] | None:
    """Return how many valid replies a short load had, their median time and their mean; None: too few, or a
    failure.
    """
    try:
        found = engine.run(load, *where, lambda _: None)
    except EngineError:
        return None
    times = found.distributions.ok_service
    replies, median_ns = found.completed.ok, _median_ns(times)
    if times is None or median_ns is None or replies < _LEAST_REPLIES or found.completed.failed:
        return None
    return replies, median_ns, round((times.sum_ns or 0) / times.count)


def may_load_again(cell: Cell, loaded: Recording) -> bool:
    """Return whether a short load may follow a window: of one own generator, and of 2 s or more."""
    name, window_ns = cell.engine.name, loaded.window.length_ns or 0
    is_one = cell.engine.is_built_in and name != ELSEWHERE and not is_fleet(name)
    return is_one and window_ns >= _LEAST_WINDOW_NS and not loaded.window.interrupted


def _length_ns(cell: Cell, loaded: Recording) -> int | None:
    """Return for how long one connection asks, for ten replies if each takes as long as beside others; None:
    not at all.
    """
    if not may_load_again(cell, loaded):
        return None
    median_ns = _median_ns(loaded.distributions.ok_service)
    return None if median_ns is None else min(max(_REPLIES * median_ns, _SHORTEST_NS), _LONGEST_NS)


def _median_ns(found: Distribution | None) -> int | None:
    times = read_distribution(found)
    return times.histogram.value_at_quantile(0.5) if times and times.histogram else None


def _short(load: Workload, loop: Loop, length_ns: int) -> Workload:
    stop = DurationStop(length_ns)
    return replace(load, loop=loop, stop=stop, streams=1, warmup_ns=0, grace_ns=_LONGEST_NS)


# At 100 looks a second shares have a standard error of 3 % at most.
_LENGTH_NS, _WARMUP_NS = 3 * SECOND_NS, 200 * MILLISECOND_NS
_LEAST_SAMPLES = 30
# Of a process's CPU: others than this thread are then of no interest.
_NEARLY_ALL = 0.8
# Of its CPU: who uses more of it without CPython's lock is not seen by who has that, nor a thread beside
# that of JavaScript.
_LEAST_SEEN = 0.5
# It may not pause the server for each look: what is then read of a stack while that changes is wrong at most
# for this look.
_OPTIONS = ("--nonblocking", "--full-filenames", "--threads")
# A file's name, and not that of a folder in which an app lies.
_PYTHON = re.compile(r"/[^/\n]*python[^/\n]*$", re.MULTILINE)
_EMBEDDED = re.compile(r"/lib(php|ruby|perl)[^/\n]*$", re.MULTILINE)
_WITHOUT_LOCK = (
    "several threads use most of its CPU without CPython's lock, where nothing says which of them runs; "
    "measure it with one thread"
)
_BESIDE_SCRIPT = (
    "most of its CPU is used by threads beside that of JavaScript (libuv's, or workers), which V8's profiler "
    "does not see; `perf record -g` does"
)
_NOT_SEEN = (
    "less than half of the CPU that it used was sampled; the kernel's part needs root, or "
    "`sysctl kernel.perf_event_paranoid=1`"
)
# By how its program's name begins: nothing samples these from outside, or nothing that is here.
_OTHERS = {
    "php": "PHP cannot be sampled from outside; the extension Excimer, or Xdebug's profiler, does it inside",
    "ruby": "Ruby is not sampled yet; `rbspy record --pid` does it",
    "perl": "Perl cannot be sampled from outside; `perl -d:NYTProf` does it inside",
    "java": "Java is not sampled yet; `jcmd <pid> JFR.start` does it",
    "bun": "Bun is not sampled yet; `bun --cpu-prof` does it",
    "deno": "Deno is not sampled yet; `deno run --inspect` lets a browser do it",
    "dotnet": ".NET is not sampled yet; `dotnet-trace collect` does it",
    "beam": "Erlang's machine cannot be sampled from outside; `fprof` does it inside",
}


class Profiled(Protocol):
    """A subject that runs."""

    address: Address
    seat: EngineSeat

    def log(self) -> LogTail:
        """Return its output so far."""


class Stacks(Protocol):
    """Samples stacks from the opening of a window to its close; never raises for what a server does."""

    looked_s: float
    """How long processes were sampled, together."""
    reason: str
    """Why there are no texts."""

    def open_window(self) -> None:
        """Begin."""

    def close_window(self) -> None:
        """End, and read what there is; a second call does nothing."""

    def texts(self) -> dict[int, str]:
        """Return by process a line for each stack, with how often it was."""


@dataclass(frozen=True, slots=True)
class _Sampling:
    """Who samples which threads. ``lone``: by process the only thread whose stacks count."""

    stacks: Stacks
    threads: Sequence[ThreadUsage]
    too_few: str
    """Why a sampler sees less than half of the CPU that these use."""
    lone: Mapping[int, int] = field(default_factory=dict)


def profiled(
    engine: Engine,
    cell: Cell,
    loaded: Recording,
    subject: Profiled,
    threads: Sequence[ThreadUsage],
) -> HotCode | None:
    """Return where the CPU goes of the processes of a subject that have these ``threads``, the busiest first,
    under the trial's own load, after the window that ``loaded`` recorded; None by other generators, after a
    short window, or without threads.
    """
    if not threads or not may_load_again(cell, loaded):
        return None
    sampling = _sampling(threads, subject)
    if isinstance(sampling, str):
        return HotCode(missing=sampling)
    stacks = sampling.stacks
    try:
        found = engine.run(
            _steady(cell.workload), subject.address, subject.seat, lambda event: _on_event(stacks, event)
        )
    except EngineError as error:
        return HotCode(missing=error.message)
    finally:
        stacks.close_window()
    cores = sum(one.cpu_ns for one in sampling.threads) / (loaded.window.length_ns or 1)
    code = _code(sampling, cores)
    return code if code.missing else replace(code, slowed=_slowed(loaded, found))


def _sampling(threads: Sequence[ThreadUsage], subject: Profiled) -> _Sampling | str:
    """Return who samples these threads, or why nobody does: of Node.js one process; of several runtimes the
    first of these.
    """
    python = [one for one in threads if _is_python(one.pid)]
    if python:
        lone = _lone_threads(python)
        options = (*_OPTIONS, *([] if lone else ["--gil"]))
        return _Sampling(PythonStacks(lambda: _processes(python), *options), python, _WITHOUT_LOCK, lone)
    names = {pid: _program(pid) for pid in _processes(threads)}
    node = next((pid for pid, name in names.items() if name in ("node", "nodejs")), None)
    if node is not None:
        connect = partial(_connected, subject.seat.network_namespace)
        own = NodeProcess(node, lambda: subject.log().text, partial(listening_ports, (node,)), connect)
        return _Sampling(NodeStacks(own), [one for one in threads if one.pid == node], _BESIDE_SCRIPT)
    for name in names.values():
        for begin, why in _OTHERS.items():
            if name.startswith(begin):
                return why
    return _Sampling(NativeStacks(lambda: _processes(threads)), threads, _NOT_SEEN)


def _processes(threads: Sequence[ThreadUsage]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(one.pid for one in threads))


def _connected(network: str | None, port: int) -> socket.socket:
    return in_network(network, lambda: socket.create_connection(("127.0.0.1", port), timeout=1))


def _program(pid: int) -> str:
    """Return the name of the file that a process executes, or of the runtime in it, as uWSGI's; empty where
    that may not be read.
    """
    try:
        name = Path(f"/proc/{pid}/exe").readlink().name
        inside = _EMBEDDED.search(mappings_text(pid))
    except OSError:
        return ""
    # Of nginx it is one of many modules.
    return inside[1] if inside and name != "nginx" else name


def _is_python(pid: int) -> bool:
    """Return whether a process has a CPython in it, as uWSGI and others may."""
    try:
        return _PYTHON.search(mappings_text(pid)) is not None
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
    try:
        status = Path(f"/proc/{thread.pid}/task/{thread.tid}/status").read_text(errors="replace")
    except OSError:
        return thread.tid
    return inner_number(status) or thread.tid


def _steady(load: Workload) -> Workload:
    match load.loop:
        case ClosedLoop(connections):
            steady: Loop = ClosedLoop(connections)
        case OpenLoop() as asked:
            steady = replace(asked, stages=())
    return replace(load, loop=steady, stop=DurationStop(_LENGTH_NS), warmup_ns=_WARMUP_NS)


def _on_event(stacks: Stacks, event: Json) -> None:
    match event["event"]:
        case "window_open":
            stacks.open_window()
        case "window_close":
            stacks.close_window()


def _slowed(before: Recording, meanwhile: Recording) -> float | None:
    """Return by which share a closed loop's rate fell."""
    rates = [one.completed.ok / (one.window.length_ns or 1) for one in (before, meanwhile)]
    return None if before.is_open or not rates[0] else max(0.0, 1 - rates[1] / rates[0])


def _code(sampling: _Sampling, cores: float) -> HotCode:
    stacks, lone = sampling.stacks, sampling.lone
    texts = stacks.texts()
    if not texts:
        return HotCode(missing=stacks.reason)
    try:
        found = hot_code(of_thread(text, lone[pid]) if lone else text for pid, text in texts.items())
    except ValueError as error:
        return HotCode(missing=f"py-spy wrote something else than stacks: {error}")
    if not lone and found.samples < _LEAST_SEEN * cores * RATE_HZ * stacks.looked_s / len(texts):
        return HotCode(missing=sampling.too_few)
    if found.samples < _LEAST_SAMPLES:
        return HotCode(missing=f"of {found.samples} stacks no share can be read; {_LEAST_SAMPLES} are needed")
    return found
