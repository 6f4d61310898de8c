"""All metrics of one trial by name, each a value or the reason why there is none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from prony.core.metrics import METRICS, PERCENTILES
from prony.core.units import SECOND_NS
from prony.figures.accept_queue import accept_queue_metrics
from prony.figures.account import answered, rates_of, tally
from prony.figures.generator import connection_metrics, generator_metrics, missing_reason, reported_service
from prony.figures.handshakes import handshake_metrics
from prony.figures.latency import (
    LatencySummary,
    latency_summaries,
    nothing_measured,
    read_distribution,
    summarise,
)
from prony.figures.missing import Missing, Value
from prony.figures.resources import (
    LEAST_UNSAMPLED_PERCENT,
    cpu_share,
    machine_metrics,
    process_metrics,
    roles,
    samples_by_role,
    stayed_alone,
    thread_metrics,
    window_length_ns,
    window_samples,
    without_roles,
)
from prony.figures.rounds import slice_metrics
from prony.figures.validity import (
    SERVICE_ROLES,
    asked_cpu_ns,
    asked_roles,
    environment_metrics,
    part_cpu_ns,
    subject_cpu_ns,
)
from prony.model.observation import Sample
from prony.model.recording import Recording
from prony.model.trial import Trial

_NO_LOAD = Missing("there was no load")
ROUNDS_ALONE = Missing("its block has rounds alone")
_CLOSED = Missing("a closed loop has no intended times")
_OPEN = Missing("in an open loop the generator sets the pace")


def _percentile(summary: LatencySummary, percentile: str) -> Value:
    value = summary.percentiles[percentile]
    if value is not None:
        return float(value)
    if summary.infinite_from is not None and float(percentile) > summary.infinite_from:
        return Missing(f"requests failed above p{summary.infinite_from:.4g}, which counts as infinite", True)
    return Missing("fewer than 10 requests lie above it")


def _latency(summary: LatencySummary | None, prefix: str, absent: Missing) -> dict[str, Value]:
    names = [f"{prefix}_{suffix}" for suffix in ("mean", *PERCENTILES, "max")]
    if summary is None:
        return dict.fromkeys(names, absent)
    if summary.min_ns is None:
        reason = nothing_measured(summary, prefix.partition("_")[2])
        return dict.fromkeys(names, Missing(reason, summary.infinite_from is not None))
    infinite = Missing("requests failed, which counts as infinite", True)
    return {
        f"{prefix}_mean": infinite if summary.mean_ns is None else summary.mean_ns,
        **{f"{prefix}_{suffix}": _percentile(summary, p) for suffix, p in PERCENTILES.items()},
        f"{prefix}_max": infinite if summary.max_ns is None else float(summary.max_ns),
    }


def _send_lag(recording: Recording) -> dict[str, Value]:
    lag = read_distribution(recording.distributions.send_lag)
    found = None if lag is None else summarise(lag)
    absent = _absent(recording, "response")
    return {f"send_lag_p{p}": absent if found is None else _percentile(found, p) for p in ("50", "99")}


@dataclass(frozen=True, slots=True)
class _Hidden:
    """CPU in cores that no sample shows. ``own``: by role, what is its; ``more``: by role, what it may have
    at most of what is ``left``, in all without a role.
    """

    own: Mapping[str, float]
    more: Mapping[str, float]
    left: float


def _hidden(trial: Trial) -> _Hidden:
    """Return whose CPU it is that no sample shows: of processes between two samples, or after their last one.

    *Definition*: what was counted of a part of the subject (server, frontend, services) less the samples of
    its roles. It belongs to the only one of them that had more than one process, or else to its only role.
    Where several may have it, and where it was not counted by part, it is left.
    *Assumptions*: the roles of frontends begin with `frontend`, those of services are `SERVICE_ROLES`: where
    they do not, more is left. A process that no sample shows has the role of one that a sample shows.
    """
    asked = asked_roles(trial.counters)
    window = [without_roles(one, asked) for one in window_samples(trial.samples)]
    length_ns = window_length_ns(window)
    if length_ns <= 0:
        return _Hidden({}, {}, 0.0)
    sampled = {role: _known(cpu_share(window, role)) for role in roles(trial.samples) if role not in asked}
    counted = part_cpu_ns(trial.counters)
    kinds = {role: _kind(role) for role in sampled}
    if not counted.keys() >= set(kinds.values()):
        kinds, counted = dict.fromkeys(sampled, ""), {"": subject_cpu_ns(trial.counters)}
    parts = {kind: [role for role in sampled if kinds[role] == kind] for kind in kinds.values()}
    hidden = {
        kind: max(0.0, counted[kind] / length_ns - fsum(sampled[role] for role in of))
        for kind, of in parts.items()
    }
    left = max(0.0, subject_cpu_ns(trial.counters) / length_ns - fsum(sampled.values()))
    anyones = max(0.0, left - fsum(hidden.values()))
    own, more = {}, dict.fromkeys(sampled, anyones)
    for kind, of in parts.items():
        may = [role for role in of if not stayed_alone(window, role)] or of
        if len(may) == 1:
            own[may[0]] = hidden[kind]
        else:
            more |= dict.fromkeys(may, anyones + hidden[kind])
    return _Hidden(own, more, max(0.0, left - fsum(own.values())))


def _kind(role: str) -> str:
    if role in SERVICE_ROLES:
        return "service"
    return "frontend" if role.startswith("frontend") else "server"


def _known(cores: float | Missing) -> float:
    return 0.0 if isinstance(cores, Missing) else cores


def _cores(trial: Trial) -> float | Missing:
    """Return the subject's CPU in cores.

    It is that of its sampled processes, or what was counted in the window, the larger: samples miss what a
    process used after its last one, and all of one that lived between two. What it asks is counted.
    """
    asked = asked_roles(trial.counters)
    window = [without_roles(one, asked) for one in window_samples(trial.samples)]
    sampled = cpu_share(window)
    if isinstance(sampled, Missing):
        return sampled
    length_ns = window_length_ns(window)
    beside = asked_cpu_ns(trial.counters) / length_ns
    return max(sampled, subject_cpu_ns(trial.counters) / length_ns) + beside


def _in_percent(cores: float | Missing) -> Value:
    return cores if isinstance(cores, Missing) else 100 * cores


def _cpu_per_request(recording: Recording, cores: float | Missing) -> Value:
    length_s, replies = recording.window.duration_s, answered(recording.account)
    if isinstance(cores, Missing):
        return cores
    if not replies or length_s is None:
        return Missing("no request was answered")
    return cores * length_s * SECOND_NS / replies


def load_metrics(recording: Recording) -> dict[str, Value]:
    """Return every metric of METRICS that a Recording alone has."""
    no_window = Missing("the window never opened, or nothing was sent in it")
    found: dict[str, Value] = {name: no_window if v is None else v for name, v in rates_of(recording).items()}
    if recording.is_open:
        found["duration_ns_per_request"] = _OPEN
    for (population, kind), summary in latency_summaries(recording).items():
        absent = _absent(recording, kind)
        found |= _latency(summary, f"{kind}_{population}", absent)
    if recording.distributions.ok_service is None:
        found |= reported_service(recording)
    found |= connection_metrics(recording)
    found |= handshake_metrics(recording)
    found |= _carried_in(recording)
    found["reply_bytes"] = reply_bytes(recording)
    return found | generator_metrics(recording) | _send_lag(recording)


def _carried_in(recording: Recording) -> dict[str, Value]:
    found = tally(recording.account).carried_in
    if found is None:
        absent = missing_reason(recording.engine, "carried_in")
        return {"carried_in": absent, "carried_in_lost": absent}
    return {
        "carried_in": float(found.requests),
        "carried_in_lost": float(found.failed + found.unanswered),
    }


def reply_bytes(recording: Recording) -> Value:
    """Return how large replies are on average, heads included: bytes received / replies of any status."""
    received, replies = recording.bytes.received, answered(recording.account)
    if received is None:
        return missing_reason(recording.engine, "bytes")
    return received / replies if replies else Missing("no request was answered")


def _absent(recording: Recording, kind: str) -> Missing:
    """Return why a Recording has no latencies of this kind."""
    closed = kind == "response" and not recording.is_open
    return _CLOSED if closed else missing_reason(recording.engine, "distributions")


def _with_memory(trial: Trial) -> Sequence[Sample]:
    """Return the samples, without the programs that the subject asks where their memory may not be read: that
    of all others is known.
    """
    asked = asked_roles(trial.counters)
    marked = (one for one in trial.samples if any(row.pss_bytes is not None for row in one.processes))
    closed = any(row.role in asked and row.pss_bytes is None for one in marked for row in one.processes)
    return [without_roles(one, asked) for one in trial.samples] if closed else trial.samples


def trial_metrics(trial: Trial) -> dict[str, Value]:
    """Return every metric of METRICS for one trial."""
    if trial.is_of_rounds:
        in_rounds = slice_metrics(trial.slices)
        return {name: in_rounds.get(name, ROUNDS_ALONE) for name in METRICS}
    found: dict[str, Value] = {
        **process_metrics(_with_memory(trial)),
        **machine_metrics(trial.samples),
        **environment_metrics(trial),
        **accept_queue_metrics(window_samples(trial.samples)),
        **thread_metrics(trial),
    }
    found["memory_peak"] = _memory_peak(trial)
    cores = _cores(trial)
    left = cores if isinstance(cores, Missing) else _hidden(trial).left
    found |= {"cpu_percent": _in_percent(cores), "cpu_unsampled_percent": _in_percent(left)}
    if trial.recording is not None:
        found |= load_metrics(trial.recording)
        found["cpu_ns_per_request"] = _cpu_per_request(trial.recording, cores)
        in_rounds = slice_metrics(trial.slices)
        if asked_roles(trial.counters):
            # Rounds do not count what the subject asks.
            in_rounds.pop("cpu_ns_per_request", None)
        if trial.recording.is_open:
            # The pace is given, and half a second has few of its requests.
            in_rounds = {name: one for name, one in in_rounds.items() if name == "cpu_ns_per_request"}
        found |= {name: value for name, value in in_rounds.items() if not isinstance(found[name], Missing)}
    return {name: found.get(name, _NO_LOAD) for name in METRICS}


def _memory_peak(trial: Trial) -> Value:
    """Return the peaks of the subject's control groups together."""
    found = [
        peak
        for name, peak in trial.counters.items()
        if name.startswith("cgroup.") and name.endswith(".memory_peak_bytes")
    ]
    return float(sum(found)) if found else Missing("no control group counted it")


def role_metrics(trial: Trial) -> dict[str, dict[str, Value]]:
    """Return what processes used by their role, then by metric name."""
    found = {
        role: {**process_metrics(samples, role), **thread_metrics(trial, role)}
        for role, samples in samples_by_role(trial.samples).items()
    }
    hidden = _hidden(trial)
    for role, more in hidden.more.items():
        found[role] |= _with_hidden(found[role]["cpu_percent"], 100 * hidden.own.get(role, 0.0), 100 * more)
    length_ns = window_length_ns(window_samples(trial.samples))
    for role in asked_roles(trial.counters) if length_ns else ():
        found.setdefault(role, process_metrics(trial.samples, role))
        found[role]["cpu_percent"] = 100 * asked_cpu_ns(trial.counters, role) / length_ns
    return found


def _with_hidden(sampled: Value, own: float, more: float) -> dict[str, Value]:
    """Return a role's CPU with what no sample shows, which has no peak and is not split."""
    if isinstance(sampled, Missing):
        return {}
    names = ("cpu_user_percent", "cpu_system_percent", "cpu_percent_peak")
    lost = names if own + more >= LEAST_UNSAMPLED_PERCENT else ()
    split = dict.fromkeys(lost, Missing("not known of processes that lived between two samples"))
    return {"cpu_percent": sampled + own, "cpu_unsampled_percent": more, **split}


def has_roles(metric: str) -> bool:
    """Return whether a metric is one of processes, so that each role has a figure of its own.

    >>> has_roles("rss_per_process"), has_roles("ok_per_s")
    (True, False)
    """
    return metric in process_metrics(()) or metric == "busiest_thread_percent"
