"""METRICS: every quantity that Prony reports, with its unit, its direction, its definition and its source.

The only registry of quantities: tables, JSON, and the reference page read it. Must not know how values are
obtained.

>>> METRICS["response_ok_p99"].unit, METRICS["response_ok_p99"].better
(<Unit.DURATION: 'duration'>, <Better.LOWER: 'lower'>)
>>> format_metric("rss_peak", 55_260_000)
'52.7 MiB'
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from prony.units import (
    format_bytes,
    format_count,
    format_duration,
    format_percent,
    format_rate,
)

__all__ = ["METRICS", "PERCENTILES", "Better", "Metric", "Unit", "format_metric"]


class Unit(StrEnum):
    """What a quantity is counted in. ``DURATION`` is nanoseconds, ``RATIO`` 0 to 1, ``PERCENT`` 100 = one
    core.
    """

    RATE = "rate"
    DURATION = "duration"
    RATIO = "ratio"
    PERCENT = "percent"
    BYTES = "bytes"
    COUNT = "count"


class Better(StrEnum):
    """Which direction is an improvement."""

    LOWER = "lower"
    HIGHER = "higher"
    NEITHER = "neither"


@dataclass(frozen=True, slots=True)
class Metric:
    """One quantity: ``definition`` is a sentence, ``source`` where the numbers come from."""

    name: str
    unit: Unit
    better: Better
    title: str
    definition: str
    source: str


PERCENTILES: Mapping[str, str] = MappingProxyType(
    {"p50": "50", "p90": "90", "p95": "95", "p99": "99", "p999": "99.9", "p9999": "99.99"}
)
"""The percentiles that are reported: metric suffix to percentile."""

_KINDS = {
    "response": (
        "response time",
        "from the moment a request was due to the last byte of its reply (open loop only)",
    ),
    "service": (
        "service time",
        "from the moment a request was handed to the kernel to the last byte of its reply",
    ),
}
_POPULATIONS = {
    "ok": ("of valid replies", "over the requests answered as expected"),
    "all": (
        "of all requests",
        "over all requests: failed ones count as infinite, unanswered ones at their age",
    ),
}
_RANKED = "the smallest value that at least {p} % of the requests do not exceed; needs 10 requests above it"
_HISTOGRAM = "engine's Recording, distributions (HdrHistogram, 3 significant digits; min, max and sum exact)"


def _statistics() -> dict[str, tuple[str, str]]:
    ranked = {suffix: (f"p{p}", _RANKED.format(p=p)) for suffix, p in PERCENTILES.items()}
    return {"mean": ("mean", "sum / count"), **ranked, "max": ("max", "the largest value")}


def _latency_metrics() -> list[Metric]:
    return [
        Metric(
            f"{kind}_{population}_{suffix}",
            Unit.DURATION,
            Better.LOWER,
            f"{title} {of}, {label}",
            f"{statistic}, {over}; timed {timed}",
            _HISTOGRAM,
        )
        for kind, (title, timed) in _KINDS.items()
        for population, (of, over) in _POPULATIONS.items()
        for suffix, (label, statistic) in _statistics().items()
    ]


_ACCOUNT = "engine's Recording, account and window"
_PROC = "/proc/PID/stat (proc_pid_stat(5)), all processes of the subject"
_SMAPS = "/proc/PID/smaps_rollup (kernel: Documentation/filesystems/proc.rst)"
_STATUS = "/proc/PID/status, /proc/PID/task/TID/status (proc_pid_status(5)), at the edges of the window"
_TASK = "/proc/PID/task/TID/stat (proc_pid_task(5)), at the edges of the window"
_DESCRIPTORS = "/proc/PID/fd (proc_pid_fd(5)), at the end of the window"
_SOCK_DIAG = "netlink (sock_diag(7)) in the network of the trial, twice a second"
_STAT = "/proc/stat (proc_stat(5))"
_CONNECTIONS = "engine's Recording, connections"
_GENERATOR = "engine's Recording, generator (per-thread rusage)"

_EACH = {
    "rss_per_process": ("resident memory", "resident set", _PROC),
    "pss_per_process": ("memory (PSS)", "proportional set", _SMAPS),
    "vsz_per_process": ("virtual memory", "virtual size", _PROC),
}


def _per_process_metrics() -> list[Metric]:
    return [
        Metric(
            name,
            Unit.BYTES,
            Better.NEITHER if name.startswith("vsz") else Better.LOWER,
            f"{title} of a process",
            f"mean over the subject's processes (of a role, where one is named) of their {what}, at the end "
            "of the load",
            source,
        )
        for name, (title, what, source) in _EACH.items()
    ]


_ROWS = (
    Metric(
        "ok_per_s",
        Unit.RATE,
        Better.HIGHER,
        "valid replies per second",
        "requests that were answered as expected within the window, whenever begun / length of the window",
        _ACCOUNT,
    ),
    Metric(
        "attempted_per_s",
        Unit.RATE,
        Better.NEITHER,
        "requests per second",
        "requests scheduled in the window / length of the window",
        _ACCOUNT,
    ),
    Metric(
        "error_per_s",
        Unit.RATE,
        Better.LOWER,
        "errors per second",
        "requests that ended otherwise within the window, whenever begun / length of the window",
        _ACCOUNT,
    ),
    Metric(
        "duration_ns_per_request",
        Unit.DURATION,
        Better.LOWER,
        "time per request",
        "length of the window / requests that ended within it, failed ones too; with a fixed number of "
        "requests, "
        "first send to last completion / requests. Of the whole load, not of one connection (closed loop "
        "only)",
        _ACCOUNT,
    ),
    Metric(
        "success_ratio",
        Unit.RATIO,
        Better.HIGHER,
        "success",
        "requests answered as expected / requests scheduled in the window",
        _ACCOUNT,
    ),
    Metric(
        "error_ratio",
        Unit.RATIO,
        Better.LOWER,
        "errors",
        "1 - success ratio: failed, unsent and unanswered requests / requests scheduled in the window",
        _ACCOUNT,
    ),
    *_latency_metrics(),
    Metric(
        "send_lag_p99",
        Unit.DURATION,
        Better.LOWER,
        "generator's lateness, p99",
        "p99 of sent - max(due, a connection was free): the generator's own lateness (open loop only)",
        _HISTOGRAM,
    ),
    Metric(
        "cpu_percent",
        Unit.PERCENT,
        Better.LOWER,
        "CPU",
        "user + system time of all the subject's processes between the first and the last "
        "sample of the window / "
        "time between them, or what the control groups counted in the window if that is more; "
        "100 = one core. Without control groups, CPU of a process after its last sample is lost",
        _PROC,
    ),
    Metric(
        "cpu_user_percent",
        Unit.PERCENT,
        Better.LOWER,
        "CPU in user mode",
        "as CPU, of the time in user mode alone; the kernel splits it by sampling",
        _PROC,
    ),
    Metric(
        "cpu_system_percent",
        Unit.PERCENT,
        Better.LOWER,
        "CPU in the kernel",
        "as CPU, of the time in the kernel alone; the kernel splits it by sampling",
        _PROC,
    ),
    Metric(
        "busiest_thread_percent",
        Unit.PERCENT,
        Better.NEITHER,
        "CPU of the busiest thread",
        "user + system time in the window of the subject's thread that used most / time between "
        "the window's first and last sample; 100 = one core",
        _TASK,
    ),
    Metric(
        "cpu_ns_per_request",
        Unit.DURATION,
        Better.LOWER,
        "CPU time per request",
        "the subject's CPU per second x window / complete replies. On loopback part of the "
        "network work is billed "
        "to the generator",
        f"{_PROC}; {_ACCOUNT}",
    ),
    Metric(
        "rss_peak",
        Unit.BYTES,
        Better.LOWER,
        "resident memory, peak",
        "largest sum over the subject's processes of their resident set, over the window's "
        "samples; shared pages "
        "count once for each process",
        _PROC,
    ),
    Metric(
        "pss_end",
        Unit.BYTES,
        Better.LOWER,
        "memory (PSS) at the end",
        "sum over the subject's processes of their proportional set at the end of the load; a "
        "page shared by k "
        "processes counts 1/k in each",
        _SMAPS,
    ),
    Metric(
        "uss_end",
        Unit.BYTES,
        Better.LOWER,
        "private memory (USS) at the end",
        "sum over the subject's processes of the pages that no other process maps, at the end of the load",
        _SMAPS,
    ),
    Metric(
        "rss_high_water",
        Unit.BYTES,
        Better.LOWER,
        "resident memory, high-water marks",
        "sum over the subject's processes at the end of the load of the kernel's peak of each "
        "one's resident set since its start; at most that much was resident at once",
        _STATUS,
    ),
    Metric(
        "vsz_peak",
        Unit.BYTES,
        Better.NEITHER,
        "virtual memory, peak",
        "largest sum over the subject's processes of their virtual size, over the window's samples",
        _PROC,
    ),
    *_per_process_metrics(),
    Metric(
        "processes_max",
        Unit.COUNT,
        Better.NEITHER,
        "processes, most",
        "largest number of the subject's processes in one sample of the window",
        _PROC,
    ),
    Metric(
        "threads_max",
        Unit.COUNT,
        Better.NEITHER,
        "threads, most",
        "largest sum over the subject's processes of their threads, over the window's samples",
        _PROC,
    ),
    Metric(
        "restarts",
        Unit.COUNT,
        Better.LOWER,
        "processes replaced",
        "sum over the roles of the subject's processes that ended within the window while another of the "
        "role began, one of both seen in more than one sample: a process for each request is none",
        _PROC,
    ),
    Metric(
        "accept_queue_peak",
        Unit.RATIO,
        Better.LOWER,
        "accept queue, fullest",
        "largest share of its limit that the accept queue of a listener of the subject had in a sample of "
        "the window; above 1 connections are dropped",
        _SOCK_DIAG,
    ),
    Metric(
        "descriptors_end",
        Unit.COUNT,
        Better.NEITHER,
        "open descriptors at the end",
        "sum over the subject's processes of their open files and sockets at the end of the load",
        _DESCRIPTORS,
    ),
    Metric(
        "voluntary_switches_per_s",
        Unit.RATE,
        Better.NEITHER,
        "context switches, voluntary",
        "how often a second the subject's threads left a CPU to wait, between the window's marks;"
        " of threads that were there at them",
        _STATUS,
    ),
    Metric(
        "involuntary_switches_per_s",
        Unit.RATE,
        Better.LOWER,
        "context switches, involuntary",
        "how often a second the subject's threads had to leave a CPU to others, between the "
        "window's marks; of threads that were there at them",
        _STATUS,
    ),
    Metric(
        "processes_started",
        Unit.COUNT,
        Better.NEITHER,
        "processes started",
        "processes of the subject that were seen in the window, and not in its first sample",
        _PROC,
    ),
    Metric(
        "processes_ended",
        Unit.COUNT,
        Better.NEITHER,
        "processes ended",
        "processes of the subject that were seen in the window, and not in its last sample",
        _PROC,
    ),
    Metric(
        "accept_queue_longest",
        Unit.COUNT,
        Better.LOWER,
        "accept queue, longest",
        "most connections that waited to be accepted in one of the window's samples, at the "
        "subject's listener whose queue was nearest to its limit",
        _SOCK_DIAG,
    ),
    Metric(
        "accept_queue_limit",
        Unit.COUNT,
        Better.NEITHER,
        "accept queue, limit",
        "how many connections may wait to be accepted at that listener: the server's backlog or "
        "net.core.somaxconn, the smaller; the kernel lets in one more",
        _SOCK_DIAG,
    ),
    Metric(
        "connections_peak",
        Unit.COUNT,
        Better.NEITHER,
        "connections, most",
        "most connections that were established in one of the window's samples where clients "
        "connect to the subject, accepted or not",
        _SOCK_DIAG,
    ),
    Metric(
        "machine_cpu_percent",
        Unit.PERCENT,
        Better.NEITHER,
        "CPU of the machine",
        "busy time of all CPUs between the first and the last sample of the window / time "
        "between; 100 = one core",
        _STAT,
    ),
    Metric(
        "machine_steal_percent",
        Unit.PERCENT,
        Better.LOWER,
        "CPU stolen from the machine",
        "time that the hypervisor gave to others, as a share of all CPUs' time in the window; "
        "100 = all of it",
        _STAT,
    ),
    Metric(
        "other_load_percent",
        Unit.PERCENT,
        Better.LOWER,
        "other load on the trial's CPUs",
        "time of the server's and the generator's CPUs that was used by programs other than the "
        "subject, the generator and Prony, as a share of all those CPUs' time in the window; "
        "100 = all of it; good to some 3",
        f"{_STAT}; {_PROC}",
    ),
    Metric(
        "reconnects",
        Unit.COUNT,
        Better.NEITHER,
        "connections opened again",
        "connections that the generator opened in place of others, from the opening of the window on",
        _CONNECTIONS,
    ),
    Metric(
        "connections_without_reply",
        Unit.COUNT,
        Better.LOWER,
        "connections without a reply",
        "connections of the generator on which no request of the window was answered",
        _CONNECTIONS,
    ),
    Metric(
        "generator_run_queue_percent",
        Unit.PERCENT,
        Better.LOWER,
        "generator's wait for its CPU",
        "of the generator's thread that waited longest: time on the run queue / window and drain",
        "engine's Recording, generator (/proc/thread-self/schedstat)",
    ),
    Metric(
        "generator_cpu_percent",
        Unit.PERCENT,
        Better.LOWER,
        "CPU of the generator",
        "user + system time of the generator's threads less spinning / window and drain; 100 = one core",
        _GENERATOR,
    ),
    Metric(
        "generator_cpu_ns_per_request",
        Unit.DURATION,
        Better.LOWER,
        "generator's CPU time per request",
        "the generator's CPU less spinning / requests completed",
        _GENERATOR,
    ),
    Metric(
        "generator_rss_mean",
        Unit.BYTES,
        Better.LOWER,
        "memory of the generator (RSS)",
        "mean over the window's samples of the sum over the generator's processes of their resident set",
        "engine's Recording, generator.processes (proc_pid_stat(5))",
    ),
    Metric(
        "generator_memory_ratio",
        Unit.RATIO,
        Better.LOWER,
        "memory of the generator, of the machine's",
        "the generator's mean resident memory / the machine's memory",
        "engine's Recording, generator.processes (proc_pid_stat(5), proc_meminfo(5))",
    ),
)

METRICS: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in _ROWS})
"""Name to Metric, in the order in which reports list them."""


def _format_percent_number(value: float) -> str:
    return format_percent(value / 100)


_FORMATTERS: Mapping[Unit, Callable[[float], str]] = MappingProxyType(
    {
        Unit.RATE: format_rate,
        Unit.DURATION: format_duration,
        Unit.RATIO: format_percent,
        Unit.PERCENT: _format_percent_number,
        Unit.BYTES: format_bytes,
        Unit.COUNT: format_count,
    }
)


def format_metric(name: str, value: float) -> str:
    """Return ``value`` of the metric ``name`` with its unit."""
    return _FORMATTERS[METRICS[name].unit](value)
