"""The stable JSON of one load run (`prony load --json`). docs/reference/load-json.md lists every key."""

from dataclasses import asdict

from prony.analysis.account import Tally
from prony.analysis.latency import LatencySummary
from prony.analysis.load_condition import ConditionResult
from prony.analysis.paths import LoadPath
from prony.model.recording import PathFigures, Recording
from prony.model.shapes import Json, encode
from prony.reading.load import (
    LoadReading,
    Spread,
    StageReading,
    StreamsReading,
    TlsReading,
    summary_of,
)

VERSION = 1


def _series(recording: Recording) -> list[Json]:
    return [
        {
            **{
                name: getattr(one, name)
                for name in ("second", "scheduled", "due_ok", "sent", "ok", "failed", "body_bytes")
            },
            "latency_ns": _summary(summary_of(one.latency)),
        }
        for one in recording.series
    ]


def _generator(recording: Recording) -> Json:
    engine, generator = encode(recording.engine), encode(recording.generator)
    return {
        **{key: engine[key] for key in ("name", "version", "driver", "threads", "pacing")},
        **{key: generator[key] for key in ("sent_in_window", "cpu_ns_per_request", "spin_share")},
        **{key: generator[key] for key in ("cpu_work_ns", "cpu_spin_ns", "run_queue_ns")},
        "spin_margins_ns": [one.spin_margin_ns for one in recording.generator.threads],
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


def _latency(reading: LoadReading) -> Json:
    """Return all latencies of a load run: `ok` and `all`, response and service, send lag and connect time."""
    summaries = reading.latency
    of = {
        population: {f"{kind}_ns": _summary(summaries[population, kind]) for kind in ("response", "service")}
        for population in ("ok", "all")
    }
    return {**of, "send_lag_ns": _summary(reading.send_lag), "connect_ns": _summary(reading.connect)}


def _requests(reading: LoadReading) -> list[Json]:
    return [
        {"class": one.ending.key, "requests": one.requests, "share": one.share} for one in reading.requests
    ]


def _stage(one: StageReading) -> Json:
    figures = one.figures
    ends = ("from_per_s", "to_per_s", "from_connections", "to_connections")
    names = ("begin_ns", "duration_ns", *ends, "scheduled", "sent", "ok", "failed")
    latency = {"ok": _summary(one.ok), "all": _summary(one.all)}
    return {
        **{name: getattr(figures, name) for name in names},
        "errors": figures.scheduled - figures.ok,
        "ok_per_s": one.ok_per_s,
        **{f"{kind}_ns": latency if kind == one.kind else None for kind in ("response", "service")},
    }


def _path(one: LoadPath, figures: PathFigures, of: Tally) -> Json:
    latency = {"ok": _summary(one.ok), "all": _summary(one.all)}
    return {
        "path": one.path,
        "weight": one.weight,
        "asked": one.asked,
        "requests": one.account.requests,
        "share": one.share(of),
        "errors": one.account.lost,
        "account": encode(figures.account),
        "bytes": encode(figures.bytes),
        **{f"{kind}_ns": latency if kind == one.kind else None for kind in ("response", "service")},
    }


def _paths(reading: LoadReading) -> list[Json]:
    pairs = zip(reading.paths, reading.recording.paths, strict=True)
    return [_path(one, figures, reading.account) for one, figures in pairs]


_AGREED = ("failed", "protocols", "ciphers", "groups", "keys", "alpn")


def _tls(found: TlsReading | None) -> Json | None:
    if found is None:
        return None
    figures = encode(found.figures)
    return {
        "verified": found.verified,
        "full_ns": _summary(found.full),
        "resumed_ns": _summary(found.resumed),
        **{name: figures[name] for name in _AGREED},
    }


_OF_STREAMS = ("goaways", "refused", "resets", "limit")


def _streams(found: StreamsReading | None) -> Json | None:
    if found is None:
        return None
    return {
        "schedule_wait_ns": _summary(found.schedule_wait),
        "stream_wait_ns": _summary(found.stream_wait),
        "wire_ns": _summary(found.wire),
        **{name: getattr(found.figures, name) for name in _OF_STREAMS},
    }


def _condition(one: ConditionResult) -> Json:
    own = {"condition": one.condition.text, "metric": one.metric, "limit": one.condition.limit}
    return {**own, "value": one.value, "holds": one.holds, "reason": one.reason}


def _spread(found: Spread | None) -> Json | None:
    if found is None:
        return None
    return {"of": f"{found.kind}_ns", "classes": [asdict(one) for one in found.classes]}


def _machines(recording: Recording) -> Json:
    """Return the generators of a fleet, and how many of them were lost; nothing for one generator."""
    found = recording.machines
    if not found:
        return {}
    return {"machines": encode(found), "lost_machines": sum(one.lost is not None for one in found)}


def load_result(reading: LoadReading) -> Json:
    """Return everything that one run measured, as JSON with stable keys; a missing value is null."""
    recording, rates = reading.recording, reading.rates
    spec = recording.spec
    return {
        "version": VERSION,
        "loop": encode(recording.loop),
        "workload": encode(spec and spec.workload),
        "target": encode(spec and spec.target),
        "window": {**encode(recording.window), "duration_s": reading.window_s},
        "account": encode(recording.account),
        "all_requests": reading.account.requests,
        "carried_in": encode(reading.account.carried_in),
        "requests": _requests(reading),
        "fail_if": [_condition(one) for one in reading.conditions],
        "rate": {name: rates[name] for name in ("ok_per_s", "attempted_per_s", "error_per_s")},
        "ratio": {"success": rates["success_ratio"], "error": rates["error_ratio"]},
        "latency": _latency(reading),
        "spread": _spread(reading.spread),
        "stages": [_stage(one) for one in reading.stages],
        # Only of a mix: all else that reads this knows one path.
        **({"paths": _paths(reading)} if reading.paths else {}),
        "tls": _tls(reading.tls),
        # Only of HTTP/2: elsewhere a connection has one request at a time.
        **({"streams": _streams(reading.streams)} if reading.streams else {}),
        "connections": encode(recording.connections),
        "queue": encode(recording.queue),
        "bytes": encode(recording.bytes),
        "little": encode(recording.little),
        "generator": {**_generator(recording), **encode(reading.verdict)},
        "errors": encode(recording.error_samples),
        "raw_latencies": encode(recording.raw_latencies),
        "catch_up": "all" if recording.is_open else None,
        "series": _series(recording),
        **_machines(recording),
    }
