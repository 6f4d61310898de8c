"""One measurement of one cell: the order of events.

*start the sandbox -> wait until ready -> verify the contract -> start monitors -> load (warm-up, then the
window, on the same connections) -> stop monitors -> collect the log -> stop -> judge validity*. Every failure
becomes the trial's Outcome, with its evidence; only an interruption is raised.
"""

import os
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from prony.core.errors import OUT_OF_MEMORY, EngineError, FailureStage, PronyError, SubjectError
from prony.core.units import format_bytes
from prony.engine.generator import Engine
from prony.figures.hot_code import busy_processes
from prony.figures.validity import Circumstances, judge
from prony.model.exchange import Contract
from prony.model.facts import CloseLook, CloseView, TrialEvent, TrialFacts
from prony.model.json_codec import Json, decode
from prony.model.launch import Launch
from prony.model.observation import LogTail, Phase, Sample, ThreadUsage
from prony.model.plan import Cell
from prony.model.recording import Recording
from prony.model.sandbox import Placement
from prony.model.trial import Failed, Fault, FaultKind, Ok, Trial, TrialRole
from prony.plan.order import Position
from prony.sandbox import Sandbox
from prony.sandbox.cgroup.scope import ForeignGroups
from prony.sandbox.cgroup.types import Counters
from prony.sandbox.choice import memory_bytes
from prony.sandbox.linux import in_network
from prony.sandbox.pipe import StopReport
from prony.sandbox.remains import carried_over, read_sockets
from prony.sandbox.subject import RunningSubject
from prony.sandbox.watch.kernel import (
    GroupCounters,
    KernelCounters,
    LimitCounters,
    oom_kills,
    read_port_range,
)
from prony.sandbox.watch.listeners import ListenerGauges, WaitingPorts, Watched, WorkerConnections
from prony.sandbox.watch.machine import EnvironmentCounters, frequency_gauge, memory_gauge
from prony.sandbox.watch.native import CompiledSource
from prony.sandbox.watch.others import OtherPrograms
from prony.sandbox.watch.partners import DownstreamGauges, KnownPrograms, Partners
from prony.sandbox.watch.processes import Gauges, ProcessMonitor, WindowCounters
from prony.sandbox.watch.sock_diag import SockDiag
from prony.sandbox.watch.stacks import LockCounters, PythonStacks
from prony.sandbox.watch.waits import SwitchCounters, ThreadCounters
from prony.study.after_window import alone, profiled

# Of the others nobody asks why they carry no more.
_DIAGNOSED = (TrialRole.SUBJECT, TrialRole.CONFIRMATION)


@dataclass(frozen=True, slots=True)
class Task:
    """Everything that one trial needs, resolved.

    ``counts_disturbed``: even if the machine disturbs it, it counts, and is flagged. ``looks``: what the
    subject is looked at for closely, which disturbs it. ``is_watched``: monitors run meanwhile. ``known``:
    what earlier trials of the study found that their subjects ask.
    """

    cell: Cell
    position: Position
    launch: Launch
    contract: Contract
    sandbox: Sandbox
    engine: Engine
    placement: Placement
    nuisances: Mapping[str, str]
    counts_disturbed: bool = True
    looks: tuple[CloseLook, ...] = ()
    is_watched: bool = True
    known: KnownPrograms = field(default_factory=KnownPrograms)


@dataclass(frozen=True, slots=True)
class Stay:
    """A trial, how long its subject took to be ready, and how it ended; null: it did not come so far."""

    trial: Trial
    ready_ns: int | None
    stopped: StopReport | None


@dataclass(slots=True)
class _Evidence:
    """What has been collected so far; a trial that ends early keeps it."""

    recording: Recording | None = None
    samples: tuple[Sample, ...] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    threads: tuple[ThreadUsage, ...] = ()
    log: LogTail = LogTail("")
    events: list[TrialEvent] = field(default_factory=list)
    facts: TrialFacts = TrialFacts()
    broke: Fault | None = None
    ready_ns: int | None = None
    stopped: StopReport | None = None


def run_trial(task: Task, on_event: Callable[[Json], None]) -> Stay:
    """Run one trial and return it, whatever its outcome.

    *Errors*: errors of a subject, the engine or the sandbox are not raised, they become the outcome;
    KeyboardInterrupt is raised after everything is stopped.
    """
    started = time.time_ns()
    evidence = _Evidence()
    outcome = _measure(task, evidence, on_event)
    trial = Trial(
        cell_id=task.cell.id,
        block=task.position.block,
        position=task.position.position,
        attempt=task.position.attempt,
        role=task.position.role,
        outcome=outcome,
        started_unix_ns=started,
        ended_unix_ns=time.time_ns(),
        command=task.launch.command,
        placement=task.placement,
        nuisances=task.nuisances,
        recording=evidence.recording,
        samples=evidence.samples,
        counters=evidence.counters,
        missing=evidence.missing,
        log=evidence.log,
        events=tuple(evidence.events),
        threads=evidence.threads,
        facts=evidence.facts,
    )
    left = evidence.stopped.left if evidence.stopped else 0
    judged = judge(trial, Circumstances(evidence.broke, left, task.counts_disturbed))
    return Stay(judged, evidence.ready_ns, evidence.stopped)


def _measure(task: Task, evidence: _Evidence, on_event: Callable[[Json], None]) -> Ok | Failed:
    """Return what the subject did; what else went wrong is evidence."""
    try:
        with task.sandbox.start(task.launch, task.placement) as subject:
            try:
                return _on_running(task, subject, evidence, on_event)
            finally:
                evidence.log = subject.log()
                evidence.stopped = subject.stop()
    except SubjectError as error:
        evidence.log = evidence.log if evidence.log.text else LogTail(error.log)
        return Failed(error.stage, error.message)
    except EngineError as error:
        evidence.broke = Fault(FaultKind.GENERATOR, text=error.message)
    except PronyError as error:
        evidence.broke = Fault(FaultKind.SANDBOX, text=error.message)
    except Exception as error:
        evidence.log = LogTail(f"{evidence.log.text}\n{traceback.format_exc()}")
        evidence.broke = Fault(FaultKind.PRONY, text=f"{type(error).__name__}: {error}")
    return Ok()


def _on_running(
    task: Task, subject: RunningSubject, evidence: _Evidence, on_event: Callable[[Json], None]
) -> Ok | Failed:
    if subject.seat.network_namespace is None:
        # What earlier trials left, read before this trial opens its own sockets.
        evidence.counters = carried_over(subject.address.port, read_sockets()).as_counters()
    groups = _Groups(subject)
    try:
        evidence.ready_ns = subject.wait_until_ready(task.cell.workload.request)
        broken = subject.verify(task.contract)
    except SubjectError as error:
        killed = _out_of_memory(task, groups)
        raise SubjectError(killed, stage=error.stage, log=error.log) if killed else error from None
    if broken is not None:
        return Failed(FailureStage.CONTRACT, _out_of_memory(task, groups) or broken)
    if task.is_watched:
        _load(task, subject, groups, evidence, on_event)
    else:
        evidence.recording = task.engine.run(task.cell.workload, subject.address, subject.seat, on_event)
    killed = _out_of_memory(task, groups)
    if killed is not None:
        return Failed(FailureStage.LOAD, killed)
    died = subject.exit_reason()
    if died is not None:
        return Failed(FailureStage.LOAD, f"{died} under load")
    if task.is_watched and task.position.role in _DIAGNOSED and evidence.recording is not None:
        _look_afterwards(task, subject, evidence, evidence.recording)
    return Ok()


def _look_afterwards(task: Task, subject: RunningSubject, evidence: _Evidence, loaded: Recording) -> None:
    """Ask alone, and in the first block of each cell find out which code uses its CPU."""
    found = alone(task.engine, task.cell, loaded, (subject.address, subject.seat))
    evidence.counters = {**evidence.counters, **found}
    if task.position.role is TrialRole.SUBJECT and task.position.block == 0:
        busy = busy_processes(evidence.samples, len(task.placement.server_cpus))
        threads = [one for one in evidence.threads if one.pid in busy]
        code = profiled(task.engine, task.cell, loaded, subject, threads)
        evidence.facts = replace(evidence.facts, code=code)


class _Groups:
    """The control groups of a subject: its sandbox's, else those that somebody else has put it into."""

    def __init__(self, subject: RunningSubject) -> None:
        self._subject, self._foreign = subject, ForeignGroups(subject.pids)

    def counters(self) -> Mapping[str, Counters]:
        """Return the kernel's counters of each group; nothing without groups."""
        return self._subject.counters() or self._foreign.counters()

    def kills(self) -> Mapping[str, int]:
        """Return how many processes the kernel has killed because memory ran out, by part of the subject."""
        return oom_kills(self._subject.counters()) if self.are_own else self._foreign.kills()

    @property
    def are_own(self) -> bool:
        """Whether the sandbox made them."""
        return bool(self._subject.counters())


def _out_of_memory(task: Task, groups: _Groups) -> str | None:
    """Return which of its processes the kernel killed because memory ran out, in words; None: none."""
    killed = groups.kills()
    if not killed:
        return None
    limit = task.cell.sandbox.memory_bytes
    own = f": no limit was asked for, and Prony's own ceiling is {format_bytes(memory_bytes())}"
    at = own if limit is None else f" at its limit of {format_bytes(limit)}"
    at = at if groups.are_own else " at the limit of a control group that is not Prony's"
    parts = (f"{count} process{'es' if count != 1 else ''} of the {name}" for name, count in killed.items())
    return f"{OUT_OF_MEMORY}{', '.join(parts)}{at}"


def _load(
    task: Task,
    subject: RunningSubject,
    groups: _Groups,
    evidence: _Evidence,
    on_event: Callable[[Json], None],
) -> None:
    mains = {subject.pids[one.name]: one.roles for one in (task.launch, *task.launch.processes)}
    listeners = _listeners(task, subject)
    asked = _asked(task, subject)
    others = _downstream(task, subject, asked)
    frequency = frequency_gauge(task.placement.server_cpus)
    programs = _other_programs(task, subject, asked)
    gauges: tuple[Gauges, ...] = (listeners, frequency, memory_gauge(), others, programs)
    beside = asked.beside if asked else tuple
    source = CompiledSource(subject.tree_pid)
    processes = ProcessMonitor(source, mains, task.placement, gauges, beside)
    threads = ThreadCounters(processes.serving, task.placement.generator_cpus, others.inodes)
    ports = partial(in_network, subject.seat.network_namespace, read_port_range)
    close = _close_looks(task, processes)
    spread = _spread(task, subject, processes)
    limits = LimitCounters(processes.serving, ports)
    waiting = _waiting_ports(task, subject)
    counters = (
        *_counters(task, subject, groups),
        limits,
        spread,
        threads,
        *close,
        *([asked] if asked else []),
    )
    if asked:
        asked.prepare()

    def on_engine_event(event: Json) -> None:
        match event["event"]:
            case "window_open":
                for each in (*counters, *waiting):
                    each.open_window()
                processes.open_window()
                evidence.events.append(decode(TrialEvent, event, "event"))
            case "window_close":
                for each in counters:
                    each.close_window()
                processes.close_window()
                evidence.facts = replace(evidence.facts, strays=len(subject.strays(task.placement)))
                # What lasts for a minute can be read last: 100,000 sockets take half a second.
                for late in waiting:
                    late.close_window()
                evidence.events.append(decode(TrialEvent, event, "event"))
        on_event(event)

    with processes:
        processes.enter(Phase.WARMUP)
        try:
            evidence.recording = task.engine.run(
                task.cell.workload, subject.address, subject.seat, on_engine_event
            )
        finally:
            processes.stop()
            for look in close:
                look.close()
            evidence.samples = processes.samples()
            evidence.threads = processes.threads()
            deltas, evidence.missing = _deltas((*counters, *waiting))
            evidence.counters = {**evidence.counters, **deltas}
            evidence.facts = replace(
                evidence.facts,
                listeners=tuple(listeners.usage()),
                close=_close_view(task.cell.id, close),
                asked=asked.programs() if asked else (),
                others=programs.programs(),
            )
            for each in gauges:
                evidence.missing |= each.missing()
                each.close()


def _counters(task: Task, subject: RunningSubject, groups: _Groups) -> tuple[WindowCounters, ...]:
    cpus = {*task.placement.server_cpus, *task.placement.generator_cpus}
    alone = {*task.placement.generator_cpus} - {*task.placement.server_cpus}
    return (
        KernelCounters(subject.network_pid),
        GroupCounters(groups.counters),
        EnvironmentCounters(cpus, os.getpid(), subject.tree_pid, alone, subject.pids),
    )


def _spread(task: Task, subject: RunningSubject, processes: ProcessMonitor) -> WorkerConnections:
    network = subject.seat.network_namespace
    return WorkerConnections(processes.workers, task.launch.address, lambda: in_network(network, SockDiag))


def _close_looks(task: Task, processes: ProcessMonitor) -> tuple[SwitchCounters | LockCounters, ...]:
    """Return what looks closely at the subject, where that is asked for."""
    placed = task.placement
    found: list[SwitchCounters | LockCounters] = []
    for look in task.looks:
        match look:
            case CloseLook.SWITCHES:
                cpus = placed.server_cpus
                found.append(SwitchCounters(processes.serving, cpus, placed.generator_cpus))
            case CloseLook.GIL:
                found.append(LockCounters(PythonStacks(processes.serving, "--gil")))
    return tuple(found)


def _close_view(cell_id: int, close: tuple[SwitchCounters | LockCounters, ...]) -> CloseView | None:
    """Return what single threads did, where somebody looked."""
    if not close:
        return None
    threads = (one.schedules() for one in close if isinstance(one, SwitchCounters))
    return CloseView(cell_id, next(threads, ()))


def _listeners(task: Task, subject: RunningSubject) -> ListenerGauges:
    addresses = {one.name: one.address for one in task.launch.processes}
    network = subject.seat.network_namespace
    # In a network of its own everything that listens belongs to the subject: the generator never listens.
    watched = Watched.ADDRESSES if network is None else Watched.NETWORK
    return ListenerGauges(addresses, lambda: in_network(network, SockDiag), watched)


def _entrances(task: Task) -> set[int]:
    """Return the ports at which the subject listens for the generator, and behind its frontend."""
    return {one.address.port for one in (task.launch.frontend or task.launch, task.launch)}


def _asked(task: Task, subject: RunningSubject) -> Partners | None:
    """Return what finds the programs that the subject asks; None in a network of its own, which has none."""
    if subject.seat.network_namespace is not None:
        return None
    return Partners(subject.tree_pid, _entrances(task), task.known)


def _downstream(task: Task, subject: RunningSubject, asked: Partners | None) -> DownstreamGauges:
    """Return what reads the server's own connections; on the host's network others have some too."""
    network = subject.seat.network_namespace
    own = asked.connections if asked else None
    return DownstreamGauges(_entrances(task), lambda: in_network(network, SockDiag), own)


def _other_programs(task: Task, subject: RunningSubject, asked: Partners | None) -> OtherPrograms:
    def ours() -> tuple[int, ...]:
        return (os.getpid(), subject.tree_pid, *(asked.roots() if asked else ()))

    return OtherPrograms(ours, len({*task.placement.server_cpus, *task.placement.generator_cpus}))


def _waiting_ports(task: Task, subject: RunningSubject) -> tuple[WaitingPorts, ...]:
    """Return what reads the ports that its own closed connections keep; none on the host's network."""
    network = subject.seat.network_namespace
    if network is None:
        return ()
    entrance = task.launch.frontend or task.launch
    behind = task.launch.address.port if task.launch.frontend else None
    return (WaitingPorts(entrance.address.port, behind, lambda: in_network(network, SockDiag)),)


def _deltas(counters: Iterable[WindowCounters]) -> tuple[dict[str, int], dict[str, str]]:
    found: dict[str, int] = {}
    missing: dict[str, str] = {}
    for one in counters:
        counted, not_counted = one.deltas()
        found |= counted
        missing |= not_counted
    return found, missing
