"""Whether a trial counts: only this module decides it.

Faults of the subject are data, whatever else happened. After a fault of the generator or of Prony nothing can
count. A disturbance by the machine invalidates the trial, unless the user accepts it as this machine's usual
state. Pure.

*Source* of disturbances: proc_stat(5); the counters are those of docs/reference/evidence.md, Counters of the
machine.

>>> in_words(Fault(FaultKind.OTHER_LOAD, share=0.26))
'other programs used 26% of the CPUs of server and generator'
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from prony.core.errors import FailureStage
from prony.core.units import MILLISECOND_NS, seconds
from prony.figures.missing import Missing, Value
from prony.model.recording import Recording
from prony.model.trial import Failed, Fault, FaultKind, Invalid, Ok, Trial

# Little's law: the engine's integral of requests in flight against its own stamps. They measure the same
# thing, so a larger difference means that one of them is wrong; no smaller one makes a trial invalid.
MAX_LITTLE_RESIDUAL = 0.10
# ... but both are integers of a clock: with next to nothing in flight the ratio says nothing.
MIN_LITTLE_INTEGRAL_NS = 50 * MILLISECOND_NS

FAULT_WORDS: Mapping[FaultKind, str] = MappingProxyType(
    {
        FaultKind.SLEPT: "the machine slept for {} within the window",
        FaultKind.STOLEN_TIME: "the hypervisor gave {} of the CPUs' time to others",
        FaultKind.OTHER_LOAD: "other programs used {} of the CPUs of server and generator",
        FaultKind.SANDBOX: "{}",
        FaultKind.GENERATOR: "the generator: {}",
        FaultKind.NO_RECORDING: "the generator returned no recording",
        FaultKind.INTERRUPTED: "interrupted",
        FaultKind.LITTLES_LAW: "Little's law is off by {}: the generator's own figures disagree",
        FaultKind.PRONY: "a fault in Prony: {}",
    }
)
"""A fault of each kind, with a place for its figure or its text: what an archive keeps of one trial, and what
reports say of several.
"""

_WITH_TEXT = (FaultKind.SANDBOX, FaultKind.GENERATOR, FaultKind.PRONY)


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Facts of a trial beside its figures.

    ``broke``: the fault of sandbox, generator or Prony that ended it; null: none. ``left``: how many of its
    processes could not be killed. ``counts_disturbed``: a trial that the machine disturbed counts, and
    is flagged.
    """

    broke: Fault | None = None
    left: int = 0
    counts_disturbed: bool = False


def judge(trial: Trial, known: Circumstances) -> Trial:
    """Return a trial, whose outcome so far describes only the subject, with final outcome and fault."""
    left = _left(known.left)
    if isinstance(trial.outcome, Failed):
        return replace(trial, outcome=replace(trial.outcome, reason=_joined(trial.outcome.reason, left)))
    broke = known.broke or _generator_fault(trial.recording)
    if left and not broke:
        return replace(trial, outcome=Failed(FailureStage.STOP, left))
    fault = _together(broke, environment_fault(trial), left)
    if fault is None or (not broke and known.counts_disturbed):
        return replace(trial, outcome=Ok(), fault=fault)
    return replace(trial, outcome=Invalid(in_words(fault)), fault=fault)


def in_words(fault: Fault) -> str:
    """Return a fault in words, with its figures and what came with it."""
    said = FAULT_WORDS[fault.kind].format(_figure(fault))
    return said if fault.kind in _WITH_TEXT else _joined(said, fault.text)


def _figure(fault: Fault) -> str:
    match fault.kind:
        case FaultKind.SLEPT:
            return f"{seconds(fault.slept_ns or 0):.1f} s"
        case FaultKind.LITTLES_LAW:
            return f"{fault.share or 0.0:+.0%}"
        case FaultKind.STOLEN_TIME | FaultKind.OTHER_LOAD:
            return f"{fault.share or 0.0:.0%}"
        case _:
            return fault.text or ""


def _generator_fault(recording: Recording | None) -> Fault | None:
    """Return the fault that makes a recording useless, from the recording itself."""
    if recording is None:
        return Fault(FaultKind.NO_RECORDING)
    if recording.window.interrupted:
        return Fault(FaultKind.INTERRUPTED)
    residual = off_little(recording)
    return None if residual is None else Fault(FaultKind.LITTLES_LAW, share=residual)


def off_little(recording: Recording) -> float | None:
    """Return by which share a recording breaks Little's law; None where it holds, or next to nothing was in
    flight.

    *Definition*: the integral of requests in flight over that of the requests' own times, less one.
    *Source*: Little, "A Proof for the Queuing Formula: L = lambda W", Operations Research 9 (1961).
    """
    little = recording.little
    residual = little.residual
    large = (little.in_flight_integral_ns or 0) > MIN_LITTLE_INTEGRAL_NS
    return residual if residual is not None and large and abs(residual) > MAX_LITTLE_RESIDUAL else None


def _together(broke: Fault | None, around: Fault | None, left: str | None) -> Fault | None:
    """Return one fault for all: the machine's comes first, since another attempt may be spared it."""
    if broke is None or around is None or broke.kind.is_of_environment:
        fault, also = broke or around, left
    else:
        fault, also = around, _joined(in_words(broke), left)
    return replace(fault, text=_joined(fault.text, also)) if fault and also else fault


def _left(count: int) -> str | None:
    """Return what the processes that could not be killed are; None: there is none."""
    if not count:
        return None
    processes = "process that" if count == 1 else "processes that"
    return f"it left {count} {processes} could not be killed and may still run"


def _joined(*words: str | None) -> str:
    return "; ".join(filter(None, words))


# --- disturbances of a trial by its machine ---------------------------------------------------------------


# Only a disturbance that pairing cannot remove makes Prony discard and repeat a trial. The margin is a few
# per cent, and a study's blocks average over smaller disturbances: those are reported, not repeated.

# A CPU that the hypervisor takes away stops everything on it, in the middle of a request.
_MOST_STEAL = 0.10

# Other programs share the CPUs with the trial. A smaller share may be an error of the kernel's accounts: it
# counts a CPU's time by the process that it finds there at each tick, and a process's time by its clock. On
# two CPUs the two accounts differ by up to 3 % of their time.
MOST_OTHER_LOAD = 0.20

# A server that had next to nothing of its CPUs shows nothing.
_MOST_BOUNDED = 0.95

# Clocks are not read at the same moment.
_ASLEEP_NS = 100 * MILLISECOND_NS


def steal_share(counters: Mapping[str, int]) -> float | Missing:
    """Return the share of the trial's CPUs' time that the hypervisor gave to others."""
    total_ns = _total_ns(counters)
    if not total_ns:
        return Missing("the CPUs' time in the window is not known")
    return counters["cpus.steal_ns"] / total_ns


def other_load(counters: Mapping[str, int]) -> float | Missing:
    """Return the share of the trial's CPUs' time that neither the subject nor what it asks nor Prony nor its
    generator used.

    *Definition*: (b - s - a - p) / T, at least 0. b is the busy time without interrupts of the server's and
    the generator's CPUs, s the CPU time of the subject (of its processes, or as its control groups count it,
    the larger), a that of the programs that it asks, p that of Prony and the generator, T all time of those
    CPUs.
    *Assumptions*: what Prony does on other CPUs, and network work that is billed to a process, make it too
    small; a subject without control groups whose processes ignore their children's end makes it too large.
    Good to some 3 % of T.
    """
    total_ns = _total_ns(counters)
    needed = ("cpus.busy_ns", "subject.cpu_ns", "prony.cpu_ns")
    if not total_ns or any(name not in counters for name in needed):
        return Missing("the CPUs' time in the window is not known")
    subject_ns = max(counters["subject.cpu_ns"], _groups_cpu_ns(counters))
    ours_ns = subject_ns + _asked_ns(counters, "cpu_ns") + counters["prony.cpu_ns"]
    return max(0.0, (counters["cpus.busy_ns"] - ours_ns) / total_ns)


def counted_apart(trial: Trial) -> bool:
    """Return whether what ran on CPUs that the generator has alone was counted, and none of it is the
    subject's: no process of it was seen to have left its own.
    """
    return "generator_cpus.busy_ns" in trial.counters and not trial.facts.strays


def load_beside_generator(trial: Trial) -> float:
    """Return the part of ``other_load`` that ran on CPUs that the generator has alone; 0 where it has none,
    or where that was not counted apart.

    *Definition*: (g - p) / T, at least 0, and at most all of it: g is the busy time of those CPUs, p and T as
    there.
    """
    counters, others = trial.counters, other_load(trial.counters)
    if isinstance(others, Missing) or not counted_apart(trial):
        return 0.0
    alone_ns = counters["generator_cpus.busy_ns"] - counters["prony.cpu_ns"]
    return min(others, max(0.0, alone_ns / _total_ns(counters)))


def subject_cpu_ns(counters: Mapping[str, int]) -> int:
    """Return the subject's CPU time in the window, including processes that ended; 0: not known.

    *Definition*: as its control groups count it; without them that of its processes and of the children that
    they waited for.

    >>> subject_cpu_ns({"cgroup.server.cpu_ns": 2, "cgroup.frontend.cpu_ns": 3, "subject.cpu_ns": 4})
    5
    >>> subject_cpu_ns({"subject.cpu_ns": 4})
    4
    """
    return _groups_cpu_ns(counters) or counters.get("subject.cpu_ns", 0)


SERVICE_ROLES = ("database", "cache", "service")
"""Of what a server asks: of a study's own services, and of programs of this machine."""


def part_cpu_ns(counters: Mapping[str, int]) -> dict[str, int]:
    """Return CPU time by kind of part, as `subject_cpu_ns` in all: `server`, `frontend`, `service`. Without
    control groups what has left the tree of each started process is missing.

    >>> part_cpu_ns({"cgroup.server.cpu_ns": 2, "cgroup.server-2.cpu_ns": 3, "cgroup.postgresql.cpu_ns": 4})
    {'server': 5, 'service': 4}
    """
    groups = _by_part(counters, "cgroup")
    found: dict[str, int] = {}
    for name, value in (groups or _by_part(counters, "subject")).items():
        first = name.partition("-")[0]
        kind = first if first in ("server", "frontend") else "service"
        found[kind] = found.get(kind, 0) + value
    return found


def asked_cpu_ns(counters: Mapping[str, int], role: str = "") -> int:
    """Return the CPU time that programs which the subject asks used for it, without what they always use.

    >>> asked_cpu_ns({"asked.database.cpu_ns": 7, "asked.database.idle_ns": 2, "asked.cache.cpu_ns": 1})
    6
    """
    return _asked_ns(counters, "cpu_ns", role) - _asked_ns(counters, "idle_ns", role)


def asked_roles(counters: Mapping[str, int]) -> tuple[str, ...]:
    """Return the roles of the programs that the subject asks.

    >>> asked_roles({"asked.database.cpu_ns": 7, "subject.cpu_ns": 1})
    ('database',)
    """
    return tuple(name.split(".")[1] for name in counters if _is_asked(name, "cpu_ns"))


def _asked_ns(counters: Mapping[str, int], what: str, role: str = "") -> int:
    return sum(value for name, value in counters.items() if _is_asked(name, what, role))


def _is_asked(name: str, what: str, role: str = "") -> bool:
    return name.startswith(f"asked.{role}") and name.endswith(f".{what}")


def _groups_cpu_ns(counters: Mapping[str, int]) -> int:
    return sum(_by_part(counters, "cgroup").values())


def _by_part(counters: Mapping[str, int], counted: str) -> dict[str, int]:
    parts = ((name.split("."), value) for name, value in counters.items())
    return {words[1]: value for words, value in parts if words[::2] == [counted, "cpu_ns"]}


def environment_fault(trial: Trial) -> Fault | None:
    """Return the disturbance that invalidates a trial; None: none is known.

    >>> from prony.model.trial import Ok, TrialRole
    >>> asleep = {"machine.suspended_ns": 3_000_000_000}
    >>> environment_fault(Trial(1, 0, 0, 0, TrialRole.SUBJECT, Ok(), 0, 0, counters=asleep)).slept_ns
    3000000000
    """
    asleep_ns = trial.counters.get("machine.suspended_ns", 0)
    if asleep_ns > _ASLEEP_NS:
        return Fault(FaultKind.SLEPT, slept_ns=asleep_ns)
    steal, other = steal_share(trial.counters), other_load(trial.counters)
    if not isinstance(steal, Missing) and steal > _MOST_STEAL:
        return Fault(FaultKind.STOLEN_TIME, share=steal)
    if not isinstance(other, Missing) and other > MOST_OTHER_LOAD:
        return Fault(FaultKind.OTHER_LOAD, share=other)
    return None


def disturbed_reach(trial: Trial) -> float | None:
    """Return the factor by which a trial's throughput may have been higher without the disturbance that made
    it invalid; None where that is not known, or there was none.

    *Definition*: 1 / (1 - s), s the share of the server's CPUs' time that others may have had: all of what
    other programs used beside the generator's own CPUs, or of what the hypervisor took, over the time of the
    server's CPUs. Null from 95 % on.
    *Assumptions*: what others did to caches and clocks is less than that.
    """
    fault, placed = trial.fault, trial.placement
    if fault is None or fault.text or fault.share is None or placed is None or not placed.server_cpus:
        return None
    if fault.kind is FaultKind.OTHER_LOAD:
        share = fault.share - load_beside_generator(trial)
    elif fault.kind is FaultKind.STOLEN_TIME:
        share = fault.share
    else:
        return None
    every = len({*placed.server_cpus, *placed.generator_cpus})
    of_server = max(0.0, share) * every / len(placed.server_cpus)
    return 1 / (1 - of_server) if of_server < _MOST_BOUNDED else None


def environment_metrics(trial: Trial) -> dict[str, Value]:
    """Return the machine's disturbances in the trial's window, by metric name."""
    other = other_load(trial.counters)
    return {"other_load_percent": other if isinstance(other, Missing) else 100 * other}


def _total_ns(counters: Mapping[str, int]) -> int:
    names = ("busy", "interrupts", "idle", "steal")
    if any(f"cpus.{name}_ns" not in counters for name in names):
        return 0
    return sum(counters[f"cpus.{name}_ns"] for name in names)
