"""An external tool in the role of an engine: finds it, refuses loads that it cannot send, runs it, reads it.

The report of an external generator as a Recording: what it does not measure is null, with the reason.

Pure.

>>> account(Measured(1, 3, {"503": 1}, {"reset": 2})).scheduled
6
"""

import os
import re
import shutil
import subprocess
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import cache

from prony.core.errors import EngineError, refused_by
from prony.core.metrics import PERCENTILES
from prony.core.temporary import temporary_folder
from prony.core.units import MICROSECOND_NS, MILLISECOND_NS, SECOND_NS
from prony.core.users import SUBJECT_PATH
from prony.engine.child_process import SPARE_NS, Child, ChildResult
from prony.engine.external.tool import Job, Measured, Output, Reported, Tool, refusal
from prony.engine.generator import OnEvent
from prony.figures.account import classes
from prony.model.address import Address
from prony.model.json_codec import Json, decode
from prony.model.recording import (
    Account,
    Completed,
    Connections,
    Distribution,
    Distributions,
    GeneratorCost,
    GeneratorName,
    GeneratorProcesses,
    LittlesLaw,
    LoopKind,
    Population,
    Queue,
    Recording,
    ReportedLatency,
    Specification,
    Traffic,
    Window,
)
from prony.model.sandbox import EngineSeat
from prony.model.workload import ClosedLoop, DurationStop, EngineChoice, Workload
from prony.plan.engine_spec import hard_limit_ns, to_spec

# As in the engine's own percentiles: with fewer values above it, a percentile describes a handful of
# requests.
_LEAST_ABOVE = 10


@dataclass(frozen=True, slots=True)
class Around:
    """What is known of a tool's run beside its own output. ``open_ns``, ``close_ns``: when it was started,
    and when its time was over; null: it was broken off. ``warmed``: it was run once before.
    """

    command: tuple[str, ...]
    version: str | None = None
    warmed: bool = False
    spec: Specification | None = None
    open_ns: int | None = None
    close_ns: int | None = None
    open_unix_ns: int | None = None


def to_recording(tool: Tool, job: Job, measured: Measured, around: Around) -> Recording:
    """Return the Recording of a run."""
    counts = account(measured)
    caveats = (*tool.caveats, *measured.caveats, *_own_caveats(tool, job, counts, around))
    opened = around if measured.open_ns is None else replace(around, open_ns=measured.open_ns)
    return replace(
        _frame(tool, job, around, caveats),
        window=_window(opened, measured.duration_ns),
        account=counts,
        completed=measured.completed or Completed(counts.ok, counts.scheduled - counts.ok),
        bytes=Traffic(None, measured.received_bytes, measured.body_bytes),
        reported_latency=_reported(measured.latency),
    )


def account(measured: Measured) -> Account:
    """Return the requests by how they ended; a class that the tool does not report separately is None."""
    failed: Mapping[str, int] = {name: count for name, count in measured.failed.items() if count}
    bad = dict(measured.bad_status)
    scheduled = measured.ok + sum(bad.values()) + sum(failed.values())
    others = (name for name in classes() if name not in ("ok", "bad_status"))
    known = {name: failed.get(name, 0 if name in measured.failed else None) for name in others}
    return Account(scheduled, measured.ok, bad, known)


def _frame(tool: Tool, job: Job, around: Around, caveats: tuple[str, ...]) -> Recording:
    """Return what every Recording of a tool has, with None for what no tool measures."""
    return Recording(
        format=1,
        engine=GeneratorName(
            name=tool.name,
            version=around.version,
            driver=None,
            threads=job.threads,
            pacing=None,
            command=around.command,
            caveats=caveats,
            missing={name: f"{tool.name} {reason}" for name, reason in _missing(tool).items()},
        ),
        spec=around.spec,
        loop=LoopKind.CLOSED if isinstance(job.workload.loop, ClosedLoop) else LoopKind.OPEN,
        window=_window(around, 0),
        account=account(Measured(0, 0)),
        completed=Completed(0, 0),
        connections=Connections(None, None, None, None, None),
        bytes=Traffic(None, None, None),
        queue=Queue(None, None),
        distributions=Distributions(),
        series=(),
        generator=GeneratorCost(None, None, None, None, None, None),
        little=LittlesLaw(None, None, None),
        error_samples=(),
    )


_MISSING = {
    "distributions": "gives no histogram of its latencies",
    "series": "gives no figures by the second",
    "carried_in": "does not report what was open when its window opened",
    "connections": "does not report what became of its connections",
    "little": "does not report how many requests were in flight",
    "window": "has no window: the window begins with its start and is as long as the tool reports",
}


def _missing(tool: Tool) -> Mapping[str, str]:
    own = ("distributions", "window") if tool.speaks else ()
    return {name: reason for name, reason in _MISSING.items() if name not in own}


def _window(around: Around, duration_ns: int) -> Window:
    if around.open_ns is None:
        return Window(None, None, None, around.open_unix_ns, interrupted=False)
    closed = around.open_ns + duration_ns
    drained = None if around.close_ns is None else max(around.close_ns, closed)
    return Window(around.open_ns, closed, drained, around.open_unix_ns, interrupted=False)


def _reported(latency: Reported | None) -> ReportedLatency | None:
    if latency is None:
        return None
    known = latency.percentiles
    return ReportedLatency(
        Population(latency.population),
        latency.count,
        latency.min_ns,
        latency.mean_ns,
        latency.max_ns,
        {p: known.get(p) if _is_known(p, latency.count) else None for p in PERCENTILES.values()},
    )


def _is_known(percentile: str, count: int) -> bool:
    return count * (1 - Fraction(percentile) / 100) >= _LEAST_ABOVE


def _own_caveats(tool: Tool, job: Job, counts: Account, around: Around) -> tuple[str, ...]:
    """Return the caveats of this run."""
    name, workload, lost = tool.name, job.workload, (job.requests or 0) - counts.scheduled
    wanted, warm = workload.expect_status, 0 if tool.speaks else workload.warmup_ns
    texts = (
        (
            f"{name} does not compare bodies: a reply with a wrong body counts as valid",
            _wants_body(tool, workload),
        ),
        (
            f"{name} does not report single statuses: replies with a status other than {wanted} count too",
            wanted and not tool.abilities.reports_status,
        ),
        (f"{lost} of the {job.requests} requests are missing from {name}'s counts", lost > 0),
        (
            f"{name} has no warm-up: Prony ran it once before, on other connections",
            warm and around.warmed,
        ),
        (f"{name} was not warmed up", warm and not around.warmed),
        (f"{name} accepts whole seconds only: the load lasted {job.seconds} s", _is_rounded(tool, job)),
    )
    return tuple(text for text, holds in texts if holds)


def _wants_body(tool: Tool, workload: Workload) -> bool:
    return workload.expect_body is not None and not tool.compares_bodies


def _is_rounded(tool: Tool, job: Job) -> bool:
    return tool.abilities.whole_seconds and (job.duration_ns or 0) % SECOND_NS != 0


# --- an external tool in the role of an engine ------------------------------------------------------------


def distribution(counted: Json) -> Distribution:
    """Return it with the engine's histogram: each value is the middle of its microsecond."""
    from prony._engine import Histogram

    histogram = Histogram()
    for microseconds, count in counted["microseconds"].items():
        histogram.record(microseconds * MICROSECOND_NS + MICROSECOND_NS // 2, count)
    return Distribution(
        counted["count"], counted["min_ns"], counted["max_ns"], counted["sum_ns"], histogram.encode()
    )


# Ticks of 10 ms: with fewer the error is above a tenth.
_LEAST_TICKS_NS = 100 * MILLISECOND_NS


@dataclass(frozen=True, slots=True)
class InstalledTool:
    """A tool on this machine. ``version`` null: it does not print one."""

    program: str
    version: str | None


class ExternalEngine:
    """See ``Engine``. One run at a time. ``counts``: the server is asked what it counted."""

    def __init__(
        self,
        choice: EngineChoice,
        tool: Tool,
        find: Callable[[Tool], "InstalledTool"] | None = None,
        spare_ns: int = SPARE_NS,
        counts: bool = False,
    ) -> None:
        self._choice = choice
        self._counts = counts
        self._tool = tool
        self._find = find or find_tool
        self._spare_ns = spare_ns
        self._child = Child("prony.engine.external.child", is_generator=False)

    def run(self, workload: Workload, address: Address, seat: EngineSeat, on_event: OnEvent) -> Recording:
        """Run the tool, if necessary once before as a warm-up, and return the Recording.

        *Errors*: EngineError when it is not installed, cannot send this load, failed, or printed nothing
        readable; errors of ``on_event``.
        """
        tool = self._tool
        refused = refusal(tool, workload, address)
        if refused:
            raise EngineError(f"{refused}; the load is {workload.describe()} over {address.wire}")
        found = self._find(tool)
        job = Job(found.program, workload, address, self._choice.threads)
        asked = {"counted_at": address.port if self._counts else None}
        runs = [*_warm_up(tool, job), {**_run(tool, job, is_window=True), **asked}]
        spec = to_spec(workload, address, self._choice, seat.cpus)
        around = Around(
            command=tool.order(job).commands[0],
            version=found.version,
            warmed=len(runs) > 1,
            spec=decode(Specification, spec, "spec"),
        )
        with _seated(seat) as taken:
            return self._measured(job, {"seat": asdict(taken), "runs": runs}, around, on_event)

    def _measured(self, job: Job, order: Json, around: Around, on_event: OnEvent) -> Recording:
        told = self._child.run(order, hard_limit_ns(job.workload) + self._spare_ns, on_event)
        opened_ns, closed_ns = told.said["open_ns"], told.said["close_ns"]
        unix_ns = time.time_ns() - (time.monotonic_ns() - opened_ns)
        known = replace(around, open_ns=opened_ns, close_ns=closed_ns, open_unix_ns=unix_ns)
        measured = _parsed(self._tool, job, told.said)
        recording = to_recording(self._tool, job, measured, known)
        times = recording.distributions
        if measured.latencies is not None:
            times = replace(times, ok_service=distribution(measured.latencies))
        cost = replace(recording.generator, processes=_exact(told, recording.window))
        return replace(recording, distributions=times, generator=cost)


@contextmanager
def _seated(seat: EngineSeat) -> Iterator[EngineSeat]:
    """Yield the seat with a folder for the tool: its own, else one that goes even if the tool's starter is
    killed.

    *Errors*: EngineError when none can be made.
    """
    if seat.folder is not None:
        yield seat
        return
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(temporary_folder("engine"))
        except OSError as error:
            raise EngineError(f"cannot create a folder for the generator: {refused_by(error)}") from error
        if seat.uid is not None:
            os.chown(folder, seat.uid, -1)
        yield replace(seat, folder=str(folder))


def _exact(told: ChildResult, window: Window) -> GeneratorProcesses:
    """Return what the processes used; if the CPU time is too short for clock ticks, by the exact count.

    The exact count covers the whole run, which is hardly longer than the window of a tool without its own
    window.
    """
    used, length_ns = told.processes, window.length_ns
    seen = used.cpu_percent
    if length_ns is None or (seen is not None and seen / 100 * length_ns >= _LEAST_TICKS_NS):
        return used
    return replace(used, cpu_percent=100 * told.said["cpu_ns"] / length_ns)


def find_tool(tool: Tool) -> InstalledTool:
    """Return where a tool is installed, and its version.

    *Errors*: EngineError when it is not.
    """
    program = shutil.which(tool.name, path=f"{os.environ.get('PATH', '')}:{SUBJECT_PATH}")
    if program is None:
        raise EngineError(f"`{tool.name}` is not installed", hint=f"install it: {tool.get}")
    return InstalledTool(program, _version(program, tool.ask_version))


@cache
def _version(program: str, arguments: tuple[str, ...]) -> str | None:
    if not arguments:
        return None
    try:
        done = subprocess.run(
            [program, *arguments],
            capture_output=True,
            timeout=10,
            check=False,
            env={"PATH": SUBJECT_PATH, "LANG": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"\d+\.\d+(\.\d+)?([-+~.][0-9A-Za-z.+~-]+)?", done.stdout + done.stderr)
    return found[0] if found else None


def _warm_up(tool: Tool, job: Job) -> list[Json]:
    if not job.workload.warmup_ns or not tool.abilities.duration or tool.speaks:
        return []
    workload = replace(job.workload, stop=DurationStop(job.workload.warmup_ns))
    return [_run(tool, replace(job, workload=workload), is_window=False)]


def _run(tool: Tool, job: Job, is_window: bool) -> Json:
    order = tool.order(job)
    return {
        "commands": [list(command) for command in order.commands],
        "files": {name: b64encode(content).decode() for name, content in order.files.items()},
        "reads": list(order.reads),
        "environment": dict(order.environment),
        "duration_ns": job.duration_ns,
        "is_window": is_window,
        "speaks": tool.speaks,
        "interrupted_after": not tool.ends,
        "counted_at": None,
    }


def _parsed(tool: Tool, job: Job, told: Json) -> Measured:
    length_ns = told["close_ns"] - told["open_ns"]
    output = Output(told["stdout"], told["stderr"], told["files"], length_ns, told["counted"])
    try:
        return tool.parse(output, job)
    except EngineError as error:
        last = (told["stderr"].strip() or told["stdout"].strip()).splitlines()[-1:]
        said = f"; it ended with status {told['status']} and said: {last[0][:300]}" if last else ""
        raise EngineError(f"{tool.name}: {error.message}{said}") from error
