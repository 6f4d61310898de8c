"""Whether a close look at a subject, in a trial of its own, agrees with what is said to limit it. Pure.

*Definition*: of all threads of the server, the time on a CPU, the time ready after another one took it, and
the time of waiting, as shares of their sum; and as cores, over the window. What only CPUs explain is
confirmed where they were used, what waits where they were not.
*Source*: perf_event_open(2), PERF_RECORD_SWITCH; docs/reference/evidence.md, Counters of a close look.

>>> Agreement("confirms it").name
'CONFIRMS'
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from prony.diagnosis.cpu_time import ONE_CORE_FULL
from prony.diagnosis.evidence import Evidence
from prony.diagnosis.kinds import Closely, Symptom
from prony.model.facts import CloseView
from prony.model.observation import ThreadSchedule
from prony.model.trial import Ok

_BUSY, _IDLE = 0.9, 0.7
_A_CORE, _LESS_THAN_A_CORE = 0.85, 0.6
_HELD, _FREE = 0.8, 0.5
# In cores: ready and without one.
_TAKEN, _HARDLY_TAKEN = 0.2, 0.1
_MOST_THREADS = 5
# Beyond this the records that were lost may say anything.
_MOST_UNKNOWN = 0.1

_STATES = ("running", "preempted", "blocked", "unknown")


class Agreement(StrEnum):
    """What a close look says of a diagnosis. Public: the report's JSON holds these names."""

    CONFIRMS = "confirms it"
    CONTRADICTS = "speaks against it"
    SILENT = "says nothing of it"


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What a close look saw."""

    agreement: Agreement
    running: float | None = None
    """`running`, `preempted`, `blocked` and `unknown`: shares of the threads' time, null where their switches
    could not be watched.
    """
    preempted: float | None = None
    blocked: float | None = None
    unknown: float | None = None
    running_cores: float | None = None
    """`running_cores` and `preempted_cores`: of the window."""
    preempted_cores: float | None = None
    fullest_cores: float | None = None
    """Of the process that ran most."""
    held: float | None = None
    """The share of looks at which CPython's lock was held; null: nobody looked."""
    threads: int = 0
    lost: int = 0
    """Records that the kernel had no room for."""
    busiest: tuple[ThreadSchedule, ...] = ()
    """The threads that ran most, of so many `threads`."""
    missing: tuple[str, ...] = ()
    """Why something could not be seen."""


def confirmation_of(evidence: Evidence, cause: Symptom | None, *, cpu_bound: bool) -> Confirmation | None:
    """Return what a close look says of a subject that is limited by ``cause``, or by its CPU; None: there was
    none.
    """
    trial = evidence.trial
    close = trial.facts.close
    if close is None:
        return None
    seen = _seen(evidence, close) if isinstance(trial.outcome, Ok) else _unseen("the trial does not count")
    placement = trial.placement
    cpus = len(placement.server_cpus) if placement is not None else 0
    return replace(seen, agreement=agreement_of(seen, cause, cpus, cpu_bound=cpu_bound))


def _seen(evidence: Evidence, close: CloseView) -> Confirmation:
    counters, missing = evidence.trial.counters, evidence.trial.missing
    recording = evidence.trial.recording
    length_ns = (recording.window.length_ns or 0) if recording else 0
    reasons = tuple(missing[name] for name in ("switches.threads", "gil.looks") if name in missing)
    looks = counters.get("gil.looks", 0)
    held = counters.get("gil.held", 0) / looks if looks else None
    sums = {name: counters.get(f"switches.{name}_ns", 0) for name in _STATES}
    total_ns = sum(sums.values())
    if total_ns <= 0 or not length_ns:
        return Confirmation(Agreement.SILENT, held=held, missing=reasons)
    return Confirmation(
        Agreement.SILENT,
        running=sums["running"] / total_ns,
        preempted=sums["preempted"] / total_ns,
        blocked=sums["blocked"] / total_ns,
        unknown=sums["unknown"] / total_ns,
        running_cores=sums["running"] / length_ns,
        preempted_cores=sums["preempted"] / length_ns,
        fullest_cores=_fullest_ns(close) / length_ns,
        held=held,
        threads=counters.get("switches.threads", 0),
        lost=counters.get("switches.lost", 0),
        busiest=close.threads[:_MOST_THREADS],
        missing=reasons,
    )


def _unseen(reason: str) -> Confirmation:
    return Confirmation(Agreement.SILENT, missing=(reason,))


def _fullest_ns(close: CloseView) -> int:
    by_process: dict[int, int] = {}
    for one in close.threads:
        by_process[one.pid] = by_process.get(one.pid, 0) + one.running_ns
    return max(by_process.values(), default=0)


def agreement_of(
    seen: Confirmation, cause: Symptom | None, cpus: int, *, cpu_bound: bool = False
) -> Agreement:
    """Return what was seen says of a cause, or of full CPUs, of a server with so many ``cpus``."""
    if cause is ONE_CORE_FULL and seen.held is not None:
        return _between(seen.held, _FREE, _HELD)
    running, preempted = seen.running_cores, seen.preempted_cores
    if running is None or preempted is None or (seen.unknown or 0.0) > _MOST_UNKNOWN or not cpus:
        return Agreement.SILENT
    if cpu_bound:
        return _between(running / cpus, _IDLE, _BUSY)
    return _of_cause(cause, running, preempted, seen.fullest_cores or 0.0, cpus)


def _of_cause(
    cause: Symptom | None, running: float, preempted: float, fullest: float, cpus: int
) -> Agreement:
    """Return what cores that ran, and that were wanted in vain, say of a cause."""
    closely = None if cause is None else cause.traits.closely
    if closely is Closely.WAITS:
        idle = running <= _IDLE * cpus and preempted <= _TAKEN
        return _answer(idle, running >= _BUSY * cpus or preempted > running)
    if closely is Closely.ONE_CORE:
        return _between(fullest, _LESS_THAN_A_CORE, _A_CORE)
    if closely is Closely.OTHERS:
        return _between(preempted, _HARDLY_TAKEN, _TAKEN)
    return Agreement.SILENT


def _between(value: float, least: float, most: float) -> Agreement:
    return _answer(value >= most, value < least)


def _answer(confirms: bool, contradicts: bool) -> Agreement:
    if confirms == contradicts:
        return Agreement.SILENT
    return Agreement.CONFIRMS if confirms else Agreement.CONTRADICTS
