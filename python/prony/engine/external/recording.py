"""The report of an external generator as a Recording: what it does not measure is null, with the reason.

Pure.

>>> account(Measured(1, 3, {"503": 1}, {"reset": 2}))["scheduled"]
6
"""

from collections.abc import Mapping
from fractions import Fraction

from prony.engine.external.tool import Job, Measured, Reported, Tool
from prony.metrics import PERCENTILES
from prony.model import ClosedLoop, Json, Workload
from prony.units import SECOND_NS

__all__ = ["account", "interrupted", "to_recording"]

_CLASSES = (
    *(
        "failed_validation",
        "connect_refused",
        "connect_timed_out",
        "connect_unreachable",
        "dns",
        "tls",
        "reset",
    ),
    *("eof", "short_body", "parse", "timed_out", "not_sent_queue", "not_sent_end", "in_flight_at_end"),
    *("client_no_address", "client_no_descriptor", "client_no_buffer", "client_other", "unspecified"),
)
_DISTRIBUTIONS = (
    *("ok_response", "ok_service", "censored_response", "censored_service", "send_lag", "connect"),
)
# As in the engine's own percentiles: with fewer values above it, a percentile describes a handful of
# requests.
_LEAST_ABOVE = 10


def to_recording(tool: Tool, job: Job, measured: Measured, facts: Json) -> Json:
    """Return the Recording of a run. ``facts``: ``open_ns``, ``close_ns``, ``open_unix_ns``, ``version``,
    ``spec``, ``command`` and ``warmed``.
    """
    counts = account(measured)
    failed = counts["scheduled"] - counts["ok"]
    return {
        **_frame(
            tool, job, facts, (*tool.caveats, *measured.caveats, *_own_caveats(tool, job, counts, facts))
        ),
        "window": _window({**facts, **_opened(measured)}, measured.duration_ns),
        "account": counts,
        "completed": measured.completed or {"ok": counts["ok"], "failed": failed},
        "bytes": {"sent": None, "received": measured.received_bytes, "body_received": measured.body_bytes},
        "reported_latency_ns": _reported(measured.latency),
    }


def _opened(measured: Measured) -> Json:
    return {} if measured.open_ns is None else {"open_ns": measured.open_ns}


def interrupted(tool: Tool, job: Job, facts: Json) -> Json:
    """Return the Recording of an interrupted run: the tool has reported nothing."""
    nothing = account(Measured(0, 0))
    window = {**_window(facts, 0), "interrupted": True}
    return {**_frame(tool, job, facts, tool.caveats), "window": window, "account": nothing}


def account(measured: Measured) -> Json:
    """Return the requests by how they ended; a class that the tool does not report separately is null."""
    failed: Mapping[str, int] = {name: count for name, count in measured.failed.items() if count}
    bad = dict(measured.bad_status)
    scheduled = measured.ok + sum(bad.values()) + sum(failed.values())
    known = {name: failed.get(name, 0 if name in measured.failed else None) for name in _CLASSES}
    return {"scheduled": scheduled, "ok": measured.ok, "bad_status": bad, **known}


def _frame(tool: Tool, job: Job, facts: Json, caveats: tuple[str, ...]) -> Json:
    """Return what every Recording of a tool has, with null for what no tool measures."""
    return {
        "format": 1,
        "engine": {
            "name": tool.name,
            "version": facts.get("version"),
            "driver": None,
            "threads": job.threads,
            "pacing": None,
            "command": facts.get("command"),
            "caveats": list(caveats),
            "missing": {name: f"{tool.name} {reason}" for name, reason in _missing(tool).items()},
        },
        "spec": facts.get("spec"),
        "loop": "closed" if isinstance(job.workload.loop, ClosedLoop) else "open",
        "completed": {"ok": 0, "failed": 0},
        "connections": dict.fromkeys(("opened", "reconnects", "connect_failures", "retried", "answered")),
        "bytes": dict.fromkeys(("sent", "received", "body_received")),
        "queue": dict.fromkeys(("waited", "max_length")),
        "distributions": dict.fromkeys(_DISTRIBUTIONS),
        "reported_latency_ns": None,
        "series": [],
        "generator": {**dict.fromkeys(_GENERATOR), "threads": []},
        "little": dict.fromkeys(("in_flight_integral_ns", "sojourn_sum_ns", "residual")),
        "error_samples": [],
    }


_GENERATOR = (
    *("limit", "limited", "cpu_work_ns", "cpu_spin_ns", "run_queue_ns"),
    *("cpu_ns_per_request", "spin_share"),
)
_MISSING = {
    "distributions": "gives no histogram of its latencies",
    "series": "gives no figures by the second",
    "connections": "does not report what became of its connections",
    "little": "does not report how many requests were in flight",
    "window": "has no window: the window begins with its start and is as long as the tool reports",
}


def _missing(tool: Tool) -> Mapping[str, str]:
    own = ("distributions", "window") if tool.speaks else ()
    return {name: reason for name, reason in _MISSING.items() if name not in own}


def _window(facts: Json, duration_ns: int) -> Json:
    opened, ended = facts.get("open_ns"), facts.get("close_ns")
    return {
        "open_ns": opened,
        "close_ns": None if opened is None else opened + duration_ns,
        "drained_ns": None if opened is None or ended is None else max(ended, opened + duration_ns),
        "open_unix_ns": facts.get("open_unix_ns"),
        "interrupted": False,
    }


def _reported(latency: Reported | None) -> Json | None:
    if latency is None:
        return None
    known = latency.percentiles
    return {
        "population": latency.population,
        "count": latency.count,
        "min": latency.min_ns,
        "mean": latency.mean_ns,
        "max": latency.max_ns,
        "percentiles": {
            p: known.get(p) if _is_known(p, latency.count) else None for p in PERCENTILES.values()
        },
    }


def _is_known(percentile: str, count: int) -> bool:
    return count * (1 - Fraction(percentile) / 100) >= _LEAST_ABOVE


def _own_caveats(tool: Tool, job: Job, counts: Json, facts: Json) -> tuple[str, ...]:
    """Return the caveats of this run."""
    name, workload, lost = tool.name, job.workload, (job.requests or 0) - counts["scheduled"]
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
            warm and facts.get("warmed"),
        ),
        (f"{name} was not warmed up", warm and not facts.get("warmed")),
        (f"{name} accepts whole seconds only: the load lasted {job.seconds} s", _is_rounded(tool, job)),
    )
    return tuple(text for text, holds in texts if holds)


def _wants_body(tool: Tool, workload: Workload) -> bool:
    return workload.expect_body is not None and not tool.compares_bodies


def _is_rounded(tool: Tool, job: Job) -> bool:
    return tool.abilities.whole_seconds and (job.duration_ns or 0) % SECOND_NS != 0
