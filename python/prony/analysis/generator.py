"""What a generator cost, and what it reports in its own words where it records nothing finer. Pure.

>>> generator_metrics({"generator": {"processes": {"cpu_percent": 50.0}}, "window": {"open_ns": 0,
...     "close_ns": 10**9}, "completed": {"ok": 100, "failed": 0}})["generator_cpu_ns_per_request"]
5000000.0
"""

from prony.analysis.missing import Missing, Value
from prony.metrics import PERCENTILES
from prony.model import Json

__all__ = ["generator_metrics", "missing_reason", "reported_service"]

_NOT_RECORDED = Missing("not recorded by this generator")


def generator_metrics(recording: Json) -> dict[str, Value]:
    """Return the generator's CPU and memory by metric name.

    *Definition*: what the engine counts itself where it does; else of its processes, as they were sampled
    from outside: what it spins is then work.
    """
    generator = recording["generator"]
    processes = generator.get("processes") or {}
    cpu = _cpu_percent(recording)
    return {
        "generator_cpu_percent": cpu,
        "generator_cpu_ns_per_request": _per_request(recording, cpu),
        "generator_rss_mean": _known(processes.get("rss_mean_bytes")),
        "generator_memory_ratio": _known(processes.get("memory_ratio")),
    }


def _known(value: float | None) -> Value:
    return _NOT_RECORDED if value is None else float(value)


def _cpu_percent(recording: Json) -> Value:
    generator, window = recording["generator"], recording["window"]
    work_ns = generator.get("cpu_work_ns")
    if work_ns is None:
        return _known((generator.get("processes") or {}).get("cpu_percent"))
    ended_ns = window.get("drained_ns") or window.get("close_ns")
    length_ns = (ended_ns or 0) - (window.get("open_ns") or 0)
    return 100 * work_ns / length_ns if length_ns > 0 else _NOT_RECORDED


def _per_request(recording: Json, cpu: Value) -> Value:
    counted = recording["generator"].get("cpu_ns_per_request")
    if counted is not None:
        return float(counted)
    window, completed = recording["window"], recording["completed"]
    done = completed["ok"] + completed["failed"]
    if isinstance(cpu, Missing):
        return cpu
    if not done or window.get("open_ns") is None or window.get("close_ns") is None:
        return Missing("no request was completed")
    return cpu / 100 * float(window["close_ns"] - window["open_ns"]) / float(done)


def missing_reason(recording: Json, part: str) -> Missing:
    """Return why a Recording lacks a part: what its generator says of it."""
    told = (recording.get("engine") or {}).get("missing") or {}
    return Missing(str(told[part])) if part in told else _NOT_RECORDED


def reported_service(recording: Json) -> dict[str, Value]:
    """Return the service times of valid replies as the generator itself reports them.

    *Assumptions*: they are of valid replies only where it says so, or where every reply was valid; otherwise
    they are missing, since failures are mixed into them.
    """
    reported, name = recording.get("reported_latency_ns"), (recording.get("engine") or {}).get("name")
    names = ("mean", *PERCENTILES, "max")
    if not reported:
        return {f"service_ok_{suffix}": missing_reason(recording, "distributions") for suffix in names}
    account = recording["account"]
    if reported["population"] != "ok" and account["scheduled"] != account["ok"]:
        mixed = Missing(f"{name} mixes failed requests into its latencies")
        return {f"service_ok_{suffix}": mixed for suffix in names}
    found = {"mean": reported["mean"], "max": reported["max"]}
    found |= {suffix: reported["percentiles"].get(p) for suffix, p in PERCENTILES.items()}
    absent = Missing(f"{name} does not report it, or fewer than 10 requests lie above it")
    return {
        f"service_ok_{suffix}": absent if found[suffix] is None else float(found[suffix]) for suffix in names
    }
