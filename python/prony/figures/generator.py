"""The cost of a generator, and the figures that it reports itself when it records nothing finer. Pure.

>>> missing_reason(GeneratorName("hey", None, None, 1, None, missing={"series": "hey gives none"}), "series")
Missing(reason='hey gives none', infinite=False)

What a generator on the server's CPUs takes from it: its own CPU time, and what it makes the server spend.
Over loopback the kernel does a part of a process's network work in the other one's time, and two on one CPU
drive each other out of its caches: so the generator's own time alone is no bound. How much more it is, a
reference server of known work shows.

How many requests a closed loop can make at most on a server that waits before each reply.

Near that a throughput is the server's delay divided among the connections, whichever generator makes it.

Ports of a trial's network. *Source*: RFC 9293, section 3.6.1: who closes a connection first keeps its port
for 60 s (TIME_WAIT); errno(3), EADDRNOTAVAIL; kernel, Documentation/networking/ip-sysctl.rst,
ip_local_port_range.

>>> longest_wait_ns((WorkerThread(0, 0, 0, 0, 7), WorkerThread(1, 0, 0, 0, None)))
7
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from prony.core.metrics import PERCENTILES
from prony.core.units import MILLISECOND_NS, SECOND_NS, seconds
from prony.figures.missing import Missing, Value
from prony.figures.validity import subject_cpu_ns
from prony.model.limit import LimitKind
from prony.model.plan import Cell
from prony.model.recording import GeneratorName, GeneratorProcesses, Population, Recording, WorkerThread
from prony.model.trial import SubjectRecord, Trial
from prony.model.workload import ClosedLoop

# A generator of one process spends some per cent of 30 ms between a reply and its next request.
_NEAR = 0.9


def most_per_s(cell: Cell, record: SubjectRecord | None) -> float | None:
    """Return how many requests a second the cell's connections can make at most; None where its server does
    not wait, where the loop is open, or where that is not known.
    """
    delay_ms = record.settings.get("delay_ms") if record else None
    loop = cell.workload.loop
    if not isinstance(loop, ClosedLoop) or not isinstance(delay_ms, int) or delay_ms <= 0:
        return None
    return loop.connections * cell.workload.streams / seconds(delay_ms * MILLISECOND_NS)


def is_at_ceiling(per_s: float, most: float) -> bool:
    """Return whether a throughput is that of the server's delay: at least 0.9 of the most that is possible.

    >>> is_at_ceiling(2600, 2667), is_at_ceiling(1200, 2667)
    (True, False)
    """
    return per_s >= _NEAR * most


_NOT_RECORDED = Missing("not recorded by this generator")
_UNKNOWN = GeneratorProcesses(None, None, None, None, None, None, None, None)


def generator_metrics(recording: Recording) -> dict[str, Value]:
    """Return the generator's CPU and memory by metric name.

    *Definition*: what the engine counts itself where it does; else of its processes, as they were sampled
    from outside: what it spins is then work.
    """
    processes = recording.generator.processes or _UNKNOWN
    cpu = _cpu_percent(recording)
    each = _per_request(recording, cpu)
    return {
        "generator_cpu_percent": cpu,
        "generator_cpu_ns_per_request": each,
        "generator_ok_per_cpu_s": _per_cpu_second(recording, each),
        "generator_rss_mean": _known(processes.rss_mean_bytes),
        "generator_memory_ratio": _known(processes.memory_ratio),
    }


def _known(value: float | None) -> Value:
    return _NOT_RECORDED if value is None else float(value)


def _cpu_percent(recording: Recording) -> Value:
    generator, length_ns = recording.generator, recording.window.length_ns
    if generator.cpu_work_ns is None:
        return _known((generator.processes or _UNKNOWN).cpu_percent)
    return _NOT_RECORDED if length_ns is None else 100 * generator.cpu_work_ns / length_ns


def _per_request(recording: Recording, cpu: Value) -> Value:
    counted = recording.generator.cpu_ns_per_request
    if counted is not None:
        return float(counted)
    length_ns, done = recording.window.length_ns, recording.completed.all
    if isinstance(cpu, Missing):
        return cpu
    return cpu / 100 * length_ns / done if done and length_ns else Missing("no request was completed")


def _per_cpu_second(recording: Recording, each_ns: Value) -> Value:
    """Return valid replies for each second of CPU, from the CPU of one request."""
    done = recording.completed
    if isinstance(each_ns, Missing):
        return each_ns
    if not each_ns:
        return Missing("it used no CPU that was seen")
    return SECOND_NS / each_ns * done.ok / done.all if done.all else Missing("no request was completed")


def missing_reason(engine: GeneratorName, part: str) -> Missing:
    """Return why a Recording lacks a part: its generator's own reason."""
    return Missing(engine.missing[part]) if part in engine.missing else _NOT_RECORDED


def reported_service(recording: Recording) -> dict[str, Value]:
    """Return the service times of valid replies as the generator itself reports them.

    *Assumptions*: they are of valid replies only where it says so, or where every reply was valid; otherwise
    they are missing, since failures are mixed into them.
    """
    reported, account, name = recording.reported_latency, recording.account, recording.engine.name
    names = ("mean", *PERCENTILES, "max")
    if reported is None:
        return _for_each(names, missing_reason(recording.engine, "distributions"))
    if reported.population is not Population.OK and account.scheduled != account.ok:
        return _for_each(names, Missing(f"{name} mixes failed requests into its latencies"))
    absent = Missing(f"{name} does not report it, or fewer than 10 requests lie above it")
    found = {"mean": reported.mean_ns, "max": reported.max_ns}
    found |= {suffix: reported.percentiles.get(percentile) for suffix, percentile in PERCENTILES.items()}
    return {
        f"service_ok_{suffix}": absent if (value := found[suffix]) is None else float(value)
        for suffix in names
    }


def _for_each(names: Iterable[str], value: Value) -> dict[str, Value]:
    return {f"service_ok_{suffix}": value for suffix in names}


_MOST = 0.95


@dataclass(frozen=True, slots=True)
class Costs:
    """The CPU time that server and generator are billed for a request, in nanoseconds."""

    server_ns: float
    generator_ns: float


def loss_ratio(apart: Costs, together: Costs) -> float:
    """Return how much CPU time a server loses for each second that is billed to a generator on its CPU.

    *Definition*: (s' + g' - s) / g', at least 1: s and g as billed for a request; s' and g' where both share
    a CPU.
    *Assumptions*: a request's work is the same in both. That CPUs of their own cost a server more (it sleeps
    and wakes more often) is no reason to let it lose less than the generator used.

    >>> loss_ratio(Costs(60, 12), Costs(62, 10))
    1.2
    """
    return max(1.0, (together.server_ns + together.generator_ns - apart.server_ns) / together.generator_ns)


def generator_share(trial: Trial) -> float:
    """Return the share of the CPU time of server and generator that the generator took at most, where both
    share CPUs; else 0.

    *Definition*: t / (s + p): t is what the server lost by it (`generator.taken_ns`), s and p are the CPU
    times of the subject, and of Prony and its generator, in the window.
    """
    taken_ns = trial.counters.get("generator.taken_ns", 0)
    both_ns = subject_cpu_ns(trial.counters) + trial.counters.get("prony.cpu_ns", 0)
    return min(taken_ns / both_ns, 1.0) if both_ns else 0.0


def lost_to_server_ns(trial: Trial) -> tuple[float, float]:
    """Return the CPU time that a server on its generator's CPUs used in the window, and how much more the
    generator's requests cost it for that; 0 where both share no CPU.

    *Definition*: s and (r - 1) s: s is the subject's CPU time, r what a server loses for each second of a
    generator beside it.
    *Assumptions*: a generator loses as much for each second of its server.
    """
    own_ns, taken_ns = trial.counters.get("prony.cpu_ns", 0), trial.counters.get("generator.taken_ns", 0)
    if not own_ns or not taken_ns:
        return 0.0, 0.0
    server_ns = subject_cpu_ns(trial.counters)
    return server_ns, max(0.0, taken_ns / own_ns - 1) * server_ns


def dearer_ns(trial: Trial) -> int:
    """Return the CPU time that a server's requests cost it more in the window because a generator ran on its
    CPUs: what it lost by it (`generator.taken_ns`) without the generator's own.
    """
    return max(0, trial.counters.get("generator.taken_ns", 0) - trial.counters.get("prony.cpu_ns", 0))


def share_reach(share: float) -> float | None:
    """Return the factor by which a server's throughput may be higher without the generator on its CPUs; None
    from 95 % on, where nothing is known.

    *Definition*: 1 / (1 - ``share``): the same requests cost so much less.
    *Assumptions*: the server found no idle CPU while the generator ran; it is less where it did, as one
    process does on two CPUs.

    >>> round(share_reach(0.06), 3)
    1.064
    """
    return 1 / (1 - share) if share < _MOST else None


# --- how the generator's connections ended, and how long its threads waited for their CPU -----------------


NEARLY_ALL_PORTS = 0.8
"""Of the ports that the kernel gives out: where so many wait, the rest are those of open connections."""

_NO_PORT = re.compile(r"(?i)cannot assign requested address|EADDRNOTAVAIL")
# A server that could not bind an address lacked that address, and no port.
_OF_LISTENERS = re.compile(r"(?i)\b(?:bind|listen)")


def server_lacked_ports(trial: Trial) -> bool:
    """Return whether the server's log says that it found no port."""
    lines = trial.log.text.splitlines()
    return any(_NO_PORT.search(line) and not _OF_LISTENERS.search(line) for line in lines)


def generator_lacked_ports(trial: Trial) -> bool:
    """Return whether the generator says that it found no port."""
    limits = () if trial.recording is None else trial.recording.generator.evidence
    return any(one.kind is LimitKind.PORTS for one in limits)


def own_waiting(trial: Trial) -> int:
    """Return the sockets in TIME_WAIT of its own, or its frontend's, connections to one other server.

    In a network of the trial's own they are counted at the window's end. Elsewhere
    at least so many: the kernel counts those of all programs together, of which those that were there before
    the trial, and one for each connection of the generator, are none of the server's.
    """
    if "ports.waiting" in trial.counters:
        return trial.counters["ports.waiting"]
    waiting = trial.counters.get("TimeWaitAtClose", 0) - trial.counters.get("CarriedTimeWait", 0)
    return max(0, waiting - _connects(trial.recording))


def _connects(recording: Recording | None) -> int:
    """Return the generator's connects, with those of the warm-up, of which only the requests are counted."""
    if recording is None or not recording.completed.all:
        return 0
    connections, done = recording.connections, recording.completed.all
    return (connections.opened or 0) * max(connections.requests_sent or 0, done) // done


# Of the valid replies: the rest went over connections that were kept.
_LEAST_CLOSED = 0.9


def connection_metrics(recording: Recording) -> dict[str, Value]:
    """Return by metric name how many connections were opened again and how many got no reply, and the wait.

    *Definition*: run queue: of the generator's thread that waited longest, the time that it was ready to run
    and had no CPU / window and drain.
    """
    absent = missing_reason(recording.engine, "connections")
    reconnects, answered = recording.connections.reconnects, recording.connections.answered
    return {
        "reconnects": absent if reconnects is None else float(reconnects),
        "connections_without_reply": absent if answered is None else float(answered.without_reply),
        "generator_run_queue_percent": _run_queue(recording),
    }


def closes_each(recording: Recording) -> bool:
    """Return whether the server closed a connection after nine of ten valid replies at least.

    *Definition*: connections that were opened in place of ended ones, over valid replies. A failed request
    may have ended one too, unless it did not connect at all, and so counts against it.
    """
    again, failures = recording.connections.reconnects, recording.connections.connect_failures or 0
    if again is None or not recording.completed.ok:
        return False
    lost = max(0, recording.completed.failed - failures)
    return again - lost >= _LEAST_CLOSED * recording.completed.ok


def _run_queue(recording: Recording) -> Value:
    length_ns, waited_ns = recording.window.drained_length_ns, longest_wait_ns(recording.generator.threads)
    if waited_ns is None or length_ns is None:
        return Missing("not recorded by this generator")
    return 100 * waited_ns / length_ns


def longest_wait_ns(threads: Sequence[WorkerThread]) -> int | None:
    """Return the longest time that one of the threads was ready and had no CPU; None: it is not known."""
    return max((one.run_queue_ns for one in threads if one.run_queue_ns is not None), default=None)
