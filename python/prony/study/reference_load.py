"""A load on the reference server, outside of a sandbox: what an engine and a machine can do is seen there."""

import contextlib
import os
import re
import subprocess
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from statistics import median

from prony.core.errors import EngineError, HostError
from prony.core.units import SECOND_NS, seconds
from prony.core.version import own_command
from prony.engine.registry import open_engine
from prony.figures.generator import Costs, loss_ratio
from prony.model.address import Address
from prony.model.recording import Recording
from prony.model.sandbox import EngineSeat, Placement
from prony.model.trial import Trial
from prony.model.workload import ClosedLoop, CountStop, EngineChoice, Loop, Pacing, Stop, Workload
from prony.sandbox.watch.processes import process_clock_ns
from prony.study.task import StudyListener


@dataclass(frozen=True, slots=True)
class ReferenceServer:
    """A running reference server."""

    port: int
    pid: int


def drive(
    placement: Placement, server: ReferenceServer, loop: Loop, stop: Stop, warmup_ns: int = 0
) -> Recording:
    """Return the Recording of a load on the reference server."""
    pacing = Pacing.usual(shares_cpus=placement.shared)
    engine = open_engine(EngineChoice(pacing=pacing))
    load = Workload(loop, stop, warmup_ns=warmup_ns, timeout_ns=2 * SECOND_NS, grace_ns=SECOND_NS)
    seat = EngineSeat(cpus=placement.generator_cpus)
    return engine.run(load, Address("127.0.0.1", server.port), seat, lambda _event: None)


@contextlib.contextmanager
def reference_server(cpus: Collection[int], *options: str) -> Iterator[ReferenceServer]:
    """Run the reference server on these CPUs within the block; yield it.

    *Errors*: HostError when it does not start.
    """
    command = own_command("reference", "--port", "0", *options)
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        # Long before it starts its threads, which inherit them.
        os.sched_setaffinity(process.pid, cpus)
        assert process.stderr, "it is a pipe"
        try:
            said = process.stderr.readline()
            found = re.search(r":(\d+)$", said.strip())
            if found is None:
                raise HostError(f"the reference server did not start: {said.strip()}")
            yield ReferenceServer(int(found[1]), process.pid)
        finally:
            process.terminate()


def ok_per_s(recording: Recording) -> float:
    """Return the valid replies per second of the window."""
    length_ns = recording.window.length_ns
    return recording.completed.ok / seconds(length_ns) if length_ns else 0.0


# --- measures what the generator costs a server whose CPUs it shares, on the reference server o -----------


# An assumption for where it cannot be measured: as much again as the generator's own time. Measured was 1.0.
_UNMEASURED = 2.0
# Half of what it costs is the generator's, so that this is seen above the noise; one second for each pair.
_WORK = "30us"
_REQUESTS, _CONNECTIONS, _PAIRS = 8000, 10, 3


def calibrated_sharing(placement: Placement, listener: StudyListener) -> float | None:
    """Return `loss_ratio` on this machine; None where server and generator share no CPU, or only one.

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
