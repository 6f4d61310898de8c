"""Whether a planted fault hurts: the figure of each trial that it makes worse, and the comparison in pairs.

Pure.

>>> hurts(Harm.RATE, [(100.0, 50.0), (101.0, 49.0), (99.0, 52.0)])
True
>>> hurts(Harm.RATE, [(100.0, 99.0), (101.0, 102.0), (99.0, 98.0)])
False
"""

from collections.abc import Mapping, Sequence
from math import exp, fsum, inf, log, sqrt
from types import MappingProxyType

from lab.cause import Harm
from prony.figures.account import rates_of
from prony.figures.latency import read_distribution
from prony.figures.missing import Missing
from prony.figures.resources import window_samples
from prony.figures.statistics.effects import student_t
from prony.figures.trial_metrics import trial_metrics
from prony.model.recording import Distribution, Recording
from prony.model.trial import Ok, Trial

# As a ratio to the twin, but for shares of failures: a difference.
_LEAST: Mapping[Harm, float] = MappingProxyType(
    {Harm.RATE: 1.1, Harm.TAIL: 1.3, Harm.CPU: 1.1, Harm.MEMORY: 1.03, Harm.FAILED: 0.01}
)
_LEVEL = 0.05
_LEAST_PAIRS = 3
_QUANTILE = 0.99


def harm_of(kind: Harm, trial: Trial) -> float | None:
    """Return the figure of one trial; None where it has none.

    *Definition*: RATE: valid replies a second; CPU: nanoseconds for a request; TAIL: the 99th percentiles of
    connects and of latencies, summed, in nanoseconds; MEMORY: resident memory at the window's end over that
    at its beginning; FAILED: the share of requests that failed, or of connections without a reply, the
    larger.
    """
    recording = trial.recording
    if recording is None or not isinstance(trial.outcome, Ok):
        return {Harm.RATE: 0.0, Harm.FAILED: 1.0}.get(kind)
    match kind:
        case Harm.RATE:
            return _metric(trial, "ok_per_s") or 0.0
        case Harm.CPU:
            return _metric(trial, "cpu_ns_per_request")
        case Harm.TAIL:
            return _tail(recording)
        case Harm.MEMORY:
            return _growth(trial)
        case Harm.FAILED:
            return _failed(recording)


def hurts(kind: Harm, pairs: Sequence[tuple[float, float]]) -> bool | None:
    """Return whether the fault is worse than its twin by more than chance; None: there is no pair.

    *Definition*: of each block the ratio of healthy and faulty figures, on the scale of logarithms, or of
    shares the difference. From three blocks on, Student's one-sided 95 % bound of the mean must be beyond the
    least harm; of fewer, each must be, twice over.
    """
    if not pairs:
        return None
    least = _LEAST[kind]
    if kind is Harm.FAILED:
        return _beyond([faulty - healthy for healthy, faulty in pairs], least, 2 * least)
    return _beyond(_logs(kind, pairs), log(least), 2 * log(least))


def mean_gain(kind: Harm, pairs: Sequence[tuple[float, float]]) -> float | None:
    """Return how many times better the healthy side is, as a geometric mean; None: there is no pair, or one
    of which a side is zero.

    *Assumptions*: the figure is no share; of shares there is no ratio.

    >>> mean_gain(Harm.RATE, [(100.0, 50.0), (100.0, 50.0)])
    2.0
    """
    found = _logs(kind, pairs)
    return exp(fsum(found) / len(found)) if found and inf not in map(abs, found) else None


def _logs(kind: Harm, pairs: Sequence[tuple[float, float]]) -> list[float]:
    worse = [(healthy, faulty) if kind is Harm.RATE else (faulty, healthy) for healthy, faulty in pairs]
    return [_log_ratio(*pair) for pair in worse]


def _log_ratio(over: float, under: float) -> float:
    if over <= 0:
        return -inf
    return inf if under <= 0 else log(over / under)


def _beyond(found: Sequence[float], least: float, least_of_few: float) -> bool:
    if len(found) < _LEAST_PAIRS or inf in map(abs, found):
        return min(found) > least_of_few
    mean = fsum(found) / len(found)
    spread = sqrt(fsum((one - mean) ** 2 for one in found) / (len(found) - 1))
    return mean - student_t(1 - _LEVEL, len(found) - 1) * spread / sqrt(len(found)) > least


def _metric(trial: Trial, name: str) -> float | None:
    found = trial_metrics(trial)[name]
    return None if isinstance(found, Missing) else found


def _tail(recording: Recording) -> float | None:
    times = recording.distributions
    latency = _quantile(times.ok_response if recording.is_open else times.ok_service)
    return None if latency is None else latency + (_quantile(times.connect) or 0.0)


def _quantile(found: Distribution | None) -> float | None:
    times = read_distribution(found)
    return None if times is None or times.histogram is None else times.histogram.value_at_quantile(_QUANTILE)


def _growth(trial: Trial) -> float | None:
    window = window_samples(trial.samples)
    sizes = [sum(row.rss_bytes for row in sample.processes) for sample in window]
    return sizes[-1] / sizes[0] if sizes and sizes[0] else None


def _failed(recording: Recording) -> float:
    answered = recording.connections.answered
    silent = answered.without_reply / answered.connections if answered and answered.connections else 0.0
    return max(rates_of(recording)["error_ratio"] or 0.0, silent)
