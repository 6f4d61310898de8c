"""What a Recording says of a load, as its JSON has it: counts as they are, and of times their summaries.

Must not know words.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from prony.analysis.account import Carried, tally
from prony.analysis.distribution import read_distribution
from prony.analysis.latency import LatencySummary, latency_summaries, summarise
from prony.analysis.paths import LoadPath
from prony.analysis.rates import rates_of, window_s
from prony.model.limit import GeneratorVerdict
from prony.model.recording import (
    Account,
    Connections,
    Distribution,
    ErrorSample,
    GeneratorMachine,
    LittlesLaw,
    LoopKind,
    PathFigures,
    Queue,
    RawLatencies,
    Recording,
    Second,
    Target,
    Traffic,
    Window,
)
from prony.model.shapes import INLINE, at
from prony.model.workload import Workload


@dataclass(frozen=True, slots=True)
class TimedWindow:
    """The window, and how long it was."""

    stamps: Window = field(metadata=INLINE)
    duration_s: float | None


@dataclass(frozen=True, slots=True)
class Latencies:
    """The times of some requests: from the moment that each was due, and from the moment that it was sent."""

    response_ns: LatencySummary | None
    """Null in a closed loop."""
    service_ns: LatencySummary | None


@dataclass(frozen=True, slots=True)
class Populations:
    """Times of valid replies, and of all requests."""

    ok: LatencySummary
    all: LatencySummary


@dataclass(frozen=True, slots=True)
class OfKind:
    """Times of the kind that the load has: response times in an open loop, service times in a closed one."""

    response_ns: Populations | None
    """Null in a closed loop."""
    service_ns: Populations | None
    """Null in an open loop."""


@dataclass(frozen=True, slots=True)
class GeneratorFigures:
    """The generator, what the load cost it, and whether it set the figures."""

    name: str
    version: str | None
    driver: str | None
    """How it reached the kernel."""
    threads: int | None
    pacing: str | None
    sent_in_window: int | None
    cpu_ns_per_request: float | None
    """Without spinning."""
    spin_share: float | None
    cpu_work_ns: int | None
    cpu_spin_ns: int | None
    run_queue_ns: int | None
    spin_margins_ns: tuple[int | None, ...]
    """Of each thread; null: it only slept."""
    verdict: GeneratorVerdict = field(metadata=INLINE)


@dataclass(frozen=True, slots=True)
class SecondOfLoad:
    """One second of the window or the drain."""

    second: int
    scheduled: int
    """Due in it."""
    due_ok: int | None
    """Of these, those with a valid reply, whenever it came."""
    sent: int | None
    ok: int
    failed: int
    body_bytes: int
    latency_ns: LatencySummary | None
    """Of valid replies."""


@dataclass(frozen=True, slots=True)
class PathOfMix:
    """A path of a mix. All paths together are the whole."""

    path: str
    weight: float
    asked: float
    """The share that its weight asks for."""
    requests: int
    """Those that the window found open too."""
    share: float | None
    """Of all requests; null where there were none."""
    errors: int
    """Those without a valid reply."""
    account: Account
    bytes: Traffic
    times: OfKind = field(metadata=INLINE)


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the generator counted and timed."""

    loop: LoopKind
    workload: Workload | None
    """What was asked for; null for an external generator."""
    target: Target | None
    window: TimedWindow
    account: Account
    all_requests: int
    """Those scheduled in the window and those carried into it."""
    carried_in: Carried | None
    """Those that were open when the window opened; null where the generator does not report them."""
    rate: Mapping[str, float | None]
    """`ok_per_s`: answered in the window, `attempted_per_s`: scheduled in it, `error_per_s`: all without a
    valid reply, each / the window's length.
    """
    ratio: Mapping[str, float | None]
    """`success` and `error` of all requests; null where nothing was sent."""
    ok: Latencies = field(metadata=at("latency", "ok"))
    """Of valid replies."""
    all: Latencies = field(metadata=at("latency", "all"))
    """Of all requests: a failed one counts as infinite, an unanswered one at its age. What was never sent has
    no service time: an open loop leaves it out; in a closed loop, what failed is infinite.
    """
    send_lag: LatencySummary | None = field(metadata=at("latency", "send_lag_ns"))
    """The generator's own lateness; null in a closed loop."""
    connect: LatencySummary | None = field(metadata=at("latency", "connect_ns"))
    paths: tuple[PathOfMix, ...]
    """Of a mix, each path; else empty."""
    connections: Connections
    queue: Queue
    bytes: Traffic
    little: LittlesLaw
    generator: GeneratorFigures
    errors: tuple[ErrorSample, ...]
    """Up to three samples of a class."""
    raw_latencies: RawLatencies | None
    """Of a load with `--latencies`."""
    catch_up: str | None
    """`all`: what was due while nothing could be sent goes out as soon as it can, however much it is."""
    series: tuple[SecondOfLoad, ...]
    machines: tuple[GeneratorMachine, ...]
    """Of a load with `--fleet`, each generator; else empty."""
    lost_machines: int
    """How many of them are not in the account."""


def recorded(recording: Recording, paths: tuple[LoadPath, ...]) -> Recorded:
    """Return what a Recording says; ``paths``: those of its mix."""
    spec, found, rates = recording.spec, tally(recording.account), rates_of(recording)
    times = recording.distributions
    return Recorded(
        loop=recording.loop,
        workload=spec.workload if spec else None,
        target=spec.target if spec else None,
        window=TimedWindow(recording.window, window_s(recording)),
        account=recording.account,
        all_requests=found.requests,
        carried_in=found.carried_in,
        rate={name: rates[name] for name in ("ok_per_s", "attempted_per_s", "error_per_s")},
        ratio={"success": rates["success_ratio"], "error": rates["error_ratio"]},
        ok=_latencies(recording, "ok"),
        all=_latencies(recording, "all"),
        send_lag=summary_of(times.send_lag),
        connect=summary_of(times.connect),
        paths=tuple(_path(*both, found.requests) for both in zip(paths, recording.paths, strict=True)),
        connections=recording.connections,
        queue=recording.queue,
        bytes=recording.bytes,
        little=recording.little,
        generator=_generator(recording),
        errors=recording.error_samples,
        raw_latencies=recording.raw_latencies,
        catch_up="all" if recording.is_open else None,
        series=tuple(map(_second, recording.series)),
        machines=recording.machines,
        lost_machines=sum(one.lost is not None for one in recording.machines),
    )


def summary_of(found: Distribution | None) -> LatencySummary | None:
    """Return the summary of times of which none failed; null where there are none."""
    times = read_distribution(found)
    return None if times is None else summarise(times)


def of_kind(kind: str, ok: LatencySummary, every: LatencySummary) -> OfKind:
    """Return the times of a load of one ``kind``: `response` or `service`."""
    times = Populations(ok, every)
    return OfKind(times, None) if kind == "response" else OfKind(None, times)


def _latencies(recording: Recording, population: str) -> Latencies:
    found = latency_summaries(recording)
    return Latencies(found[population, "response"], found[population, "service"])


def _path(one: LoadPath, figures: PathFigures, requests: int) -> PathOfMix:
    own = one.account
    return PathOfMix(
        path=one.path,
        weight=one.weight,
        asked=one.asked,
        requests=own.requests,
        share=own.requests / requests if requests else None,
        errors=own.lost,
        account=figures.account,
        bytes=figures.bytes,
        times=of_kind(one.kind, one.ok, one.all),
    )


def _generator(recording: Recording) -> GeneratorFigures:
    engine, cost = recording.engine, recording.generator
    return GeneratorFigures(
        *(engine.name, engine.version, engine.driver, engine.threads, engine.pacing),
        *(cost.sent_in_window, cost.cpu_ns_per_request, cost.spin_share),
        *(cost.cpu_work_ns, cost.cpu_spin_ns, cost.run_queue_ns),
        tuple(one.spin_margin_ns for one in cost.threads),
        cost.verdict,
    )


def _second(one: Second) -> SecondOfLoad:
    counts = one.second, one.scheduled, one.due_ok, one.sent, one.ok, one.failed, one.body_bytes
    return SecondOfLoad(*counts, summary_of(one.latency))
