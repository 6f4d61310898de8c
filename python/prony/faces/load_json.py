"""The stable JSON of one load run (`prony load --json`). docs/reference/load-json.md lists every key."""

from prony.analysis.distribution import read_distribution
from prony.analysis.latency import latency_json, summarise, summary_json
from prony.analysis.rates import rates, window_s
from prony.model import Json

__all__ = ["VERSION", "load_result"]

VERSION = 1


def _series(recording: Json) -> list[Json]:
    found = []
    for second in recording.get("series") or ():
        latency = read_distribution(second.get("latency"))
        counts = {key: second.get(key) for key in ("second", "scheduled", "ok", "failed", "body_bytes")}
        summary = None if latency is None else summary_json(summarise(latency))
        found.append({**counts, "latency_ns": summary})
    return found


def _generator(recording: Json) -> Json:
    engine, generator = recording["engine"], recording["generator"]
    return {
        "name": engine.get("name"),
        "version": engine.get("version"),
        "driver": engine.get("driver"),
        "threads": engine.get("threads"),
        "pacing": engine.get("pacing"),
        **{key: generator.get(key) for key in ("limited", "cpu_ns_per_request", "spin_share")},
        **{key: generator.get(key) for key in ("cpu_work_ns", "cpu_spin_ns", "run_queue_ns")},
    }


def load_result(recording: Json) -> Json:
    """Return everything that one run measured, as JSON with stable keys; a missing value is null."""
    found = rates(recording)
    return {
        "version": VERSION,
        "loop": recording["loop"],
        "workload": (recording.get("spec") or {}).get("workload"),
        "target": (recording.get("spec") or {}).get("target"),
        "window": {**recording["window"], "duration_s": window_s(recording)},
        "account": recording["account"],
        "rate": {name: found[name] for name in ("ok_per_s", "attempted_per_s", "error_per_s")},
        "ratio": {"success": found["success_ratio"], "error": found["error_ratio"]},
        "latency": latency_json(recording),
        "connections": recording.get("connections"),
        "queue": recording.get("queue"),
        "bytes": recording.get("bytes"),
        "little": recording.get("little"),
        "generator": _generator(recording),
        "errors": recording.get("error_samples") or [],
        "series": _series(recording),
    }
