"""Measures what the generator costs a server whose CPUs it shares, on the reference server of known work."""

from dataclasses import replace
from statistics import median

from prony.analysis.generator import Costs, loss_ratio
from prony.errors import EngineError, HostError
from prony.model.sandbox import Placement
from prony.model.trial import Trial
from prony.model.workload import ClosedLoop, CountStop
from prony.monitor.clocks import process_clock_ns
from prony.study.base import StudyListener
from prony.study.reference_load import drive, reference_server

# An assumption for where it cannot be measured: as much again as the generator's own time. Measured was 1.0.
_UNMEASURED = 2.0
# Half of what it costs is the generator's, so that this is seen above the noise; one second for each pair.
_WORK = "30us"
_REQUESTS, _CONNECTIONS, _PAIRS = 8000, 10, 3


def calibrated_sharing(placement: Placement, listener: StudyListener) -> float | None:
    """Return `loss_ratio` on this machine; null where server and generator share no CPU, or only one.

    The median of three pairs of loads. CPU times are compared and not rates, which other programs disturb.
    """
    if not placement.shared or len(placement.server_cpus) < 2:
        return None
    listener.notice("measuring what the generator takes from a server on the same CPUs")
    shared = placement.generator_cpus[-1:]
    other = tuple(cpu for cpu in placement.server_cpus if cpu not in shared)[:1]
    try:
        found = [loss_ratio(_costs(shared, other), _costs(shared, shared)) for _ in range(_PAIRS)]
    except (EngineError, HostError) as error:
        listener.notice(f"not measured: {error.message}; twice its own CPU time is taken for it")
        return _UNMEASURED
    return median(found)


def _costs(server: tuple[int, ...], generator: tuple[int, ...]) -> Costs:
    """Return what a request of the reference server costs on these CPUs."""
    placement = Placement(server, generator, shared=True)
    with reference_server(server, "--work", _WORK) as running:
        before_ns = process_clock_ns(running.pid) or 0
        recording = drive(placement, running, ClosedLoop(_CONNECTIONS), CountStop(_REQUESTS))
        server_ns = (process_clock_ns(running.pid) or 0) - before_ns
    return Costs(server_ns / _REQUESTS, (recording.generator.cpu_work_ns or 0) / _REQUESTS)


def with_taken(trial: Trial, ratio: float | None) -> Trial:
    """Return a trial with what the generator took from its server, by the ratio of `calibrated_sharing`."""
    used_ns = trial.counters.get("prony.cpu_ns")
    if ratio is None or used_ns is None:
        return trial
    return replace(trial, counters={**trial.counters, "generator.taken_ns": round(ratio * used_ns)})
