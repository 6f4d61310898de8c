"""The report of an external generator as a Recording: what it does not measure is null, with the reason.

Pure.

>>> account(Measured(1, 3, {"503": 1}, {"reset": 2})).scheduled
6
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from prony.core.metrics import PERCENTILES
from prony.core.units import SECOND_NS
from prony.engine.external.tool import Job, Measured, Reported, Tool
from prony.figures.account import classes
from prony.model.recording import (
    Account,
    Completed,
    Connections,
    Distributions,
    GeneratorCost,
    GeneratorName,
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
from prony.model.workload import ClosedLoop, Workload

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


def interrupted(tool: Tool, job: Job, around: Around) -> Recording:
    """Return the Recording of an interrupted run: the tool has reported nothing."""
    frame = _frame(tool, job, around, tool.caveats)
    return replace(frame, window=replace(_window(around, 0), interrupted=True))


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
