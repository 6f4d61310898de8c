"""The stable JSON of one load run (`prony load --json`). docs/reference/load-json.md lists every key."""

from prony.analysis.distribution import read_distribution
from prony.analysis.latency import LatencySummary, latency_summaries, summarise
from prony.analysis.rates import rates_of, window_s
from prony.model import Json
from prony.model.recording import Distribution, Recording
from prony.model.shapes import encode

__all__ = ["VERSION", "load_result"]

VERSION = 1


def _series(recording: Recording) -> list[Json]:
    return [
        {
            **{name: getattr(one, name) for name in ("second", "scheduled", "ok", "failed", "body_bytes")},
            "latency_ns": _single(one.latency),
        }
        for one in recording.series
    ]


def _generator(recording: Recording) -> Json:
    engine, generator = encode(recording.engine), encode(recording.generator)
    return {
        **{key: engine[key] for key in ("name", "version", "driver", "threads", "pacing")},
        **{key: generator[key] for key in ("limit", "limited", "cpu_ns_per_request", "spin_share")},
        **{key: generator[key] for key in ("cpu_work_ns", "cpu_spin_ns", "run_queue_ns")},
    }


def _summary(summary: LatencySummary | None) -> Json | None:
    """Return a summary with stable keys; null stays null."""
    if summary is None:
        return None
    return {
        "count": summary.count,
        "min": summary.min_ns,
        "mean": summary.mean_ns,
        "max": summary.max_ns,
        "percentiles": dict(summary.percentiles),
        "censored_from": summary.censored_from,
        "infinite_from": summary.infinite_from,
    }


def _single(found: Distribution | None) -> Json | None:
    times = read_distribution(found)
    return None if times is None else _summary(summarise(times))


def _latency(recording: Recording) -> Json:
    """Return all latencies of a Recording: `ok` and `all`, response and service, send lag and connect
    time.
    """
    summaries = latency_summaries(recording)
    of = {
        population: {f"{kind}_ns": _summary(summaries[population, kind]) for kind in ("response", "service")}
        for population in ("ok", "all")
    }
    times = recording.distributions
    return {**of, "send_lag_ns": _single(times.send_lag), "connect_ns": _single(times.connect)}


def load_result(recording: Recording) -> Json:
    """Return everything that one run measured, as JSON with stable keys; a missing value is null."""
    found, spec = rates_of(recording), recording.spec
    return {
        "version": VERSION,
        "loop": encode(recording.loop),
        "workload": encode(spec and spec.workload),
        "target": encode(spec and spec.target),
        "window": {**encode(recording.window), "duration_s": window_s(recording)},
        "account": encode(recording.account),
        "rate": {name: found[name] for name in ("ok_per_s", "attempted_per_s", "error_per_s")},
        "ratio": {"success": found["success_ratio"], "error": found["error_ratio"]},
        "latency": _latency(recording),
        "connections": encode(recording.connections),
        "queue": encode(recording.queue),
        "bytes": encode(recording.bytes),
        "little": encode(recording.little),
        "generator": _generator(recording),
        "errors": encode(recording.error_samples),
        "series": _series(recording),
    }
