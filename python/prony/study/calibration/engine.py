"""Is the load engine fit to measure with, on this machine: its ceiling, its lag, known delays, its noise.

It loads the reference server, each on its own CPUs, as in a trial but without a sandbox.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import exp, log
from statistics import median

from prony.core.errors import HostError
from prony.core.units import MICROSECOND_NS, MILLISECOND_NS, SECOND_NS
from prony.figures.latency import LatencySummary, read_distribution, summarise
from prony.model.facts import Fitness, GeneratorFitness
from prony.model.recording import Distribution, Recording
from prony.model.workload import ClosedLoop, CountStop, DurationStop, OpenLoop
from prony.study import StudyListener
from prony.study.calibration import PartFigure, PartResult
from prony.study.calibration.bench import CalibrationBench
from prony.study.calibration.overheads import with_interval
from prony.study.reference_load import drive, ok_per_s, reference_server

CONNECTIONS = (1, 10, 100, 1000)
"""The numbers of connections at which the ceiling is measured."""
_RATES = (1_000.0, 10_000.0)
_PERCENTILES = ("50", "90", "99")
_KNOWN_NS, _KNOWN_REQUESTS, _KNOWN_CONNECTIONS = 20 * MILLISECOND_NS, 3000, 50
_RATE_WINDOW_NS, _PAIRS = SECOND_NS, 6
# What a percentile may be off: a hundredth, or what a reply takes to travel.
_OFF_RATIO, _OFF_NS = 0.01, 20 * MICROSECOND_NS
# Lags that precise pacing keeps on a quiet machine; beyond the last one no latency of a fast server is right.
_LAG_NS: Mapping[str, int] = {"50": 5 * MICROSECOND_NS, "99": 100 * MICROSECOND_NS}
_WORST_LAG_NS = MILLISECOND_NS
# The margin of studies, and what hides most differences that are looked for.
_NOISE, _WORST_NOISE = 0.02, 0.10
_WORST_OFF = 5


@dataclass(frozen=True, slots=True)
class Seen:
    """What was measured. ``off``: how far each percentile is from the truth, in units of what it may be."""

    ceilings: Mapping[int, float]
    lags: Mapping[tuple[float, str], float]
    off: Mapping[str, float]
    noise: float


def judge_engine(bench: CalibrationBench, listener: StudyListener, seed: int) -> PartResult:
    """Return what the engine can do here, and whether it is fit to measure with.

    *Errors*: HostError when the reference server does not start.
    """
    del seed
    listener.notice("measuring the load engine against known delays")
    window_ns, cpus = bench.effort.window_ns // 2, bench.placement.server_cpus
    figures: list[PartFigure] = []
    with reference_server(cpus) as server:
        load = partial(drive, bench.placement, server)
        ceilings = {count: _ceiling(load, count, window_ns, figures) for count in CONNECTIONS}
        noise = _noise(load, window_ns, figures)
    with reference_server(cpus, "--delay", "10ms") as server:
        load = partial(drive, bench.placement, server)
        lags = {key: lag for rate in _RATES for key, lag in _lags(load, rate, figures)}
    with reference_server(cpus, "--delay", "20ms", "--distribution", "exponential") as server:
        off = dict(_known(partial(drive, bench.placement, server), figures))
    fitness = engine_fitness(Seen(ceilings, lags, off, noise), int(time.time()))
    return PartResult("Is the load engine fit to measure with", figures=tuple(figures), fitness=fitness)


def engine_fitness(seen: Seen, made_unix_s: int) -> GeneratorFitness:
    """Return whether the engine is fit, with the reasons why it is not.

    *Definition*: fit with limits beyond a send lag of 5 us at p50 or 100 us at p99, a percentile that is more
    than 1 % or 20 us off, or noise of 2 % between equal loads; not fit beyond a lag of 1 ms, five times as
    far off, or noise of 10 %.
    """
    shares = [
        *(
            (lag / _LAG_NS[name], lag / _WORST_LAG_NS, f"the send lag at {rate:g}/s: p{name}")
            for (rate, name), lag in seen.lags.items()
        ),
        *((off, off / _WORST_OFF, f"known delays: p{name}") for name, off in seen.off.items()),
        (seen.noise / _NOISE, seen.noise / _WORST_NOISE, "the noise between equal loads"),
    ]
    reasons = tuple(words for limit, _, words in shares if limit > 1)
    is_bad = any(worst > 1 for _, worst, _ in shares)
    level = Fitness.NOT_FIT if is_bad else Fitness.LIMITS if reasons else Fitness.FIT
    ceilings = {str(count): rate for count, rate in seen.ceilings.items()}
    return GeneratorFitness(level, reasons, ceilings, made_unix_s)


_Load = Callable[..., Recording]


# --- what is measured -------------------------------------------------------------------------------------


def _ceiling(load: _Load, connections: int, window_ns: int, figures: list[PartFigure]) -> float:
    """Return the replies per second in a closed loop: the server is the fastest there is."""
    asked = ClosedLoop(connections), DurationStop(window_ns), window_ns // 4
    found = [ok_per_s(load(*asked)) for _ in range(3)]
    noun = "connection" if connections == 1 else "connections"
    figures.append(with_interval(f"ceiling with {connections} {noun}", "rate", found))
    return median(found)


def _noise(load: _Load, window_ns: int, figures: list[PartFigure]) -> float:
    """Return half the width of the interval of the ratio between equal loads, in pairs."""
    asked = ClosedLoop(10), DurationStop(window_ns), window_ns // 4
    ratios = [log(ok_per_s(load(*asked)) / ok_per_s(load(*asked))) for _ in range(_PAIRS)]
    found = with_interval("", "ratio", ratios)
    value, low, high = (exp(one) - 1 for one in (found.value, found.low, found.high))
    figures.append(PartFigure("difference between equal loads", "ratio", value, low, high, found.count))
    return found.half_width


def _lags(
    load: _Load, rate_per_s: float, figures: list[PartFigure]
) -> Iterator[tuple[tuple[float, str], float]]:
    """Yield the send lag at a rate, by percentile."""
    found = load(OpenLoop(rate_per_s), DurationStop(_RATE_WINDOW_NS), _RATE_WINDOW_NS // 4)
    lag = _summary(found.distributions.send_lag)
    for name in _LAG_NS:
        value = float(lag.percentiles[name] or 0.0)
        figures.append(_alone(f"send lag at {rate_per_s:g}/s, p{name}", value, lag.count))
        yield (rate_per_s, name), value


def _known(load: _Load, figures: list[PartFigure]) -> Iterator[tuple[str, float]]:
    """Yield how far the percentiles of known delays are off, in units of what they may be."""
    found = load(ClosedLoop(_KNOWN_CONNECTIONS), CountStop(_KNOWN_REQUESTS))
    measured = _summary(found.distributions.ok_service)
    truth = known_percentiles(delays_ns(_KNOWN_NS, 1, _KNOWN_REQUESTS))
    for name in _PERCENTILES:
        off_ns = abs(float(measured.percentiles[name] or 0.0) - truth[name])
        figures.append(_alone(f"known delays, p{name}: off by", off_ns, measured.count))
        yield name, off_ns / max(_OFF_RATIO * truth[name], _OFF_NS)


def _summary(found: Distribution | None) -> LatencySummary:
    times = read_distribution(found)
    if times is None:
        raise HostError("the load engine measured nothing against its reference server")
    return summarise(times)


def _alone(name: str, value: float, count: int) -> PartFigure:
    """Return a figure of one run, which has no interval."""
    return PartFigure(name, "duration", value, value, value, count)


# --- what is true -----------------------------------------------------------------------------------------


def known_percentiles(values: Sequence[int]) -> Mapping[str, float]:
    """Return percentiles of exact values: the smallest that so many per cent do not exceed."""
    ordered = sorted(values)
    places = {name: -(-len(ordered) * int(name) // 100) - 1 for name in _PERCENTILES}
    return {name: float(ordered[place]) for name, place in places.items()}


def delays_ns(mean_ns: int, seed: int, requests: int) -> list[int]:
    """Return the delays of the reference server's first requests: exponential, from its seed.

    *Source*: Steele, Lea and Flood, 2014, Fast Splittable Pseudorandom Number Generators, section 3; the
    reference server, src/delay.rs.
    """
    return [int(-log(1 - _uniform(seed, number)) * mean_ns) for number in range(1, requests + 1)]


_MASK = 2**64 - 1


def _uniform(seed: int, number: int) -> float:
    mixed = (seed + number * 0x9E3779B97F4A7C15) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return float((mixed ^ (mixed >> 31)) >> 11) / float(2**53)
