"""What limits a subject under a load, in one value: the first of its findings that does, else its CPU, else
nothing yet, else unknown. Pure.

Unknown is better than wrong: a cause must have been seen in more than half of the trials, and one that only
idle CPUs explain is none where the CPUs are full.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from statistics import fmean, median

from prony.diagnosis.confirmation import Confirmation, confirmation_of
from prony.diagnosis.connections import CLOSED_BEYOND, STARVED, STARVED_BY_SLOTS
from prony.diagnosis.consumption import Bound, Consumption, Resource, bounds_of, is_each_alone
from prony.diagnosis.cpu_time import ONE_CORE_FULL, ONE_THREAD_FULL
from prony.diagnosis.evidence import Affected, Confidence, Evidence, Finding
from prony.diagnosis.few_at_a_time import (
    PEER_COMPUTES,
    PEER_CONNECTS,
    PEER_FULL,
    WAITS_WITHIN,
    has_few,
    is_few,
)
from prony.diagnosis.kinds import Bearing, Symptom
from prony.diagnosis.listen_queue import BACKLOG_CLIPPED, QUEUE_OVERFLOWED, SOME_QUEUE_OVERFLOWED
from prony.diagnosis.overload import OVERLOADED
from prony.diagnosis.rules import PRECEDENCE
from prony.diagnosis.shared import FULL_CPU, LONGER_QUEUE
from prony.diagnosis.time_spent import PageCode, ThreadState, page_code
from prony.diagnosis.used_up import TRACKING_FULL
from prony.diagnosis.waiting import DOWNSTREAM_BUSY, LEAST_BUSY_POOL
from prony.figures.account import KEPT_RATE, QUALIFIED_ERROR_RATIO
from prony.model.shown import shown

# Of the CPUs' time: beyond doubt.
_CERTAINLY_FULL = 0.97
# With this much it can carry little more, whatever else there is: a sixth at most.
_NEARLY_FULL = 0.85
# Of workers and threads: so many are busy where a closed loop has as many connections; the rest of their time
# a request is on its way.
_FULL_SLOTS = 0.95
_HALF_A_REQUEST = 0.5
_MOST_TRIALS = 0.5
_LONG_QUEUE_S = 1.0
# Asked over given: advised is twice the queue; what one that is longer by less would change is not known.
_LEAST_CUT = 2.0
_STARVED = (STARVED, STARVED_BY_SLOTS)
# What says the same: a queue that was perhaps another's; a partner that computes, or has more questions.
_ALIKE = {
    QUEUE_OVERFLOWED: SOME_QUEUE_OVERFLOWED,
    PEER_COMPUTES: PEER_FULL,
    PEER_FULL: PEER_COMPUTES,
    PEER_CONNECTS: PEER_COMPUTES,
}


class DiagnosisKind(StrEnum):
    """What is known of a subject's limit. Public: the report's JSON holds these names."""

    CAUSE = "limited by a cause"
    CPU = "limited by its CPU"
    NOT_AT_LIMIT = "not at its limit"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Observed:
    """The findings in one trial, and what it used; null: it had no load, or does not count."""

    findings: tuple[Finding, ...]
    usage: Consumption | None


@dataclass(frozen=True, slots=True)
class Frequent:
    """A finding, as ``typical`` chooses it among its trials, and how many trials have it."""

    finding: Finding
    trials: int


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What limits one subject under one load, over its trials. Means and medians over the trials; null: not
    known.
    """

    kind: DiagnosisKind
    confidence: Confidence
    trials: int
    """Over how many."""
    cause: Frequent | None = None
    """Of the kind CAUSE."""
    beside: tuple[Frequent, ...] = ()
    """The other findings."""
    done_per_s: float | None = None
    """What it carried, by its valid replies."""
    asked_per_s: float | None = None
    """What was due in an open loop, `in_flight`: how many requests were open at a time, of which it works on
    `slots`.
    """
    in_flight: float | None = None
    slots: int | None = None
    at_a_time: float | None = None
    """How many of them it worked on, where that is known: by how long one takes alone."""
    page_cpu_ns: float | None = None
    """Its CPU time for a valid reply."""
    code: PageCode | None = None
    """Where that went, of a subject at the limit of its CPU."""
    shares: Mapping[Resource, float] = field(default_factory=dict)
    """What was used of each resource."""
    bounds: tuple[Bound, ...] = ()
    """What each allows, the nearest first."""
    ruled_out: tuple[Resource, ...] = ()
    """Those that were no limit."""
    time: Mapping[ThreadState, float] = field(default_factory=dict)
    """What its threads did, by so many `looks` in all."""
    looks: int = 0
    confirmation: Confirmation | None = None
    """What a close look says of it, in a trial of its own; null without one."""

    @property
    def cause_kind(self) -> Symptom | None:
        """The kind of its cause; None without one."""
        return None if self.cause is None else self.cause.finding.kind

    @property
    def has_each_alone(self) -> bool:
        """Whether its open requests are known to be as quick as one that is alone: more can be open."""
        return is_each_alone(self.at_a_time, self.in_flight)

    @property
    def has_slot_for_each(self) -> bool:
        """Whether a closed loop's connections keep all workers and threads busy, and are no more than these:
        which of the two limits it, this load cannot show.
        """
        if self.asked_per_s is not None or self.slots is None or self.in_flight is None:
            return False
        full = self.shares.get(Resource.SLOTS, 0.0) >= _FULL_SLOTS
        return full and self.in_flight < self.slots + _HALF_A_REQUEST

    @property
    def has_few(self) -> bool:
        """Whether its open requests are known to wait for one another, and for no worker or thread."""
        return is_few(self.at_a_time, self.in_flight, self.slots)

    @property
    def is_unknown(self) -> bool:
        """Whether nothing says what limits it."""
        return self.kind is DiagnosisKind.UNKNOWN

    @property
    def fills_cpu(self) -> bool:
        """Whether its CPUs are full, whatever else limits it."""
        return self.shares.get(Resource.CPU, 0.0) >= FULL_CPU

    @shown
    def overloaded(self) -> bool:
        """Whether more was asked than it can do."""
        return any(one.finding.kind is OVERLOADED for one in self.beside)


def conclude(trials: Sequence[Observed]) -> Diagnosis | None:
    """Return what limits a subject; None where no trial has a load, and no finding says why."""
    usages = [one.usage for one in trials if one.usage is not None]
    found = tuple(_frequent(trials))
    shares = _medians(usages)
    cause = next(_causes(found, trials, usages, shares), None)
    if cause is None and not usages:
        return None
    kind, confidence = _judged(cause, found, usages, shares)
    asked = [one.asked_per_s for one in usages if one.asked_per_s is not None]
    page_cpu_ns = _mean([one.page_cpu_ns for one in usages if one.page_cpu_ns is not None])
    return Diagnosis(
        kind=kind,
        confidence=confidence,
        trials=len(trials),
        cause=cause,
        beside=tuple(one for one in found if one is not cause),
        done_per_s=fmean(one.carried_per_s for one in usages) if usages else None,
        asked_per_s=_mean(asked),
        in_flight=fmean(one.in_flight for one in usages) if usages else None,
        slots=usages[0].slots if usages else None,
        at_a_time=_mean([one.at_a_time for one in usages if one.at_a_time is not None]),
        page_cpu_ns=page_cpu_ns,
        code=next((page_code(one.code, page_cpu_ns) for one in usages if one.code), None),
        shares=shares,
        bounds=bounds_of(usages),
        ruled_out=tuple(_ruled_out(found, shares, usages)),
        time=_mean_time([one.time for one in usages if one.time]),
        looks=sum(one.looks for one in usages),
    )


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def confirmed(found: Diagnosis, close: Evidence) -> Diagnosis:
    """Return a diagnosis with what a close look says of it."""
    cpu_bound = found.kind is DiagnosisKind.CPU
    return replace(found, confirmation=confirmation_of(close, found.cause_kind, cpu_bound=cpu_bound))


def _frequent(trials: Sequence[Observed]) -> Iterator[Frequent]:
    """Yield each kind of finding once, by precedence."""
    for kind in PRECEDENCE:
        found = typical([[each for each in one.findings if each.kind is kind] for one in trials])
        if found is not None:
            yield found


def typical(trials: Sequence[Sequence[Finding]]) -> Frequent | None:
    """Return the finding that stands for those of one kind in several trials, and how many trials have it;
    None: none has.

    *Definition*: of each trial the strongest counts: the surest, and of these the one with the largest
    numbers. The strongest that more than half of all trials reach stands for them, with the numbers of its
    own trial: the median where all have it. Where fewer have it, the median of those that do.
    """
    own = sorted((max(found, key=_strength) for found in trials if found), key=_strength, reverse=True)
    if not own:
        return None
    of = len(trials) if len(own) > _MOST_TRIALS * len(trials) else len(own)
    return Frequent(own[of // 2], len(own))


def _strength(finding: Finding) -> tuple[int, tuple[float, ...]]:
    return -list(Confidence).index(finding.confidence), tuple(finding.numbers.values())


def _medians(usages: Sequence[Consumption]) -> dict[Resource, float]:
    known = {
        resource: [one.shares[resource] for one in usages if resource in one.shares] for resource in Resource
    }
    return {resource: median(each) for resource, each in known.items() if each}


def _mean_time(times: Sequence[Mapping[ThreadState, float]]) -> dict[ThreadState, float]:
    """Return the mean share of each state over the trials, the greatest first."""
    states = {state for one in times for state in one}
    found = {state: fmean(one.get(state, 0.0) for one in times) for state in states}
    return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


# --- the kind ---------------------------------------------------------------------------------------------


def _causes(
    found: Sequence[Frequent],
    trials: Sequence[Observed],
    usages: Sequence[Consumption],
    shares: Mapping[Resource, float],
) -> Iterator[Frequent]:
    """Yield the findings that limit the subject, by precedence.

    A generator is only suspect where the server has no more to give: where its CPUs are full, or the core
    that it can use, another cause is certain, or its requests wait for one another. So are a quota, waits for
    memory, and workers that are replaced, where another cause is certain.
    """
    busy = shares.get(Resource.CPU, 0.0)
    full = busy >= FULL_CPU
    limiting = list(_limiting(found, trials, usages, full=full))
    certain = any(_is_certain(one) and one.finding.affected is None for one in limiting)
    # A generator that is late by a little explains neither requests that wait for one another within the
    # server, nor a core that is full, nor connections that are closed: opening them again keeps it busy.
    of_server = (*WAITS_WITHIN, ONE_THREAD_FULL, ONE_CORE_FULL, CLOSED_BEYOND)
    within = any(one.finding.kind in of_server for one in limiting)
    for one in limiting:
        of_generator, steps_back = one.finding.affected is not None, one.finding.kind.traits.steps_back
        suspect = (of_generator and (full or certain or within)) or (steps_back and certain)
        # A server whose CPUs are this full can carry hardly more from any generator.
        refuted = of_generator and busy >= _CERTAINLY_FULL
        if (_is_certain(one) and not refuted) or not suspect:
            yield one


def _is_certain(one: Frequent) -> bool:
    return one.finding.confidence is Confidence.CERTAIN


def _limiting(
    found: Sequence[Frequent], trials: Sequence[Observed], usages: Sequence[Consumption], *, full: bool
) -> Iterator[Frequent]:
    """Yield the findings that were seen often enough, and mattered, by precedence.

    What only idle CPUs explain limits no server that carries all that is asked for, unless it is certain.
    """
    often = [
        one
        for one in found
        if one.finding.kind.traits.once or _seen_in(one, trials) > _MOST_TRIALS * len(trials)
    ]
    sure = [one for one in often if one.finding.confidence is not Confidence.POSSIBLE]
    carries, locked_out = bool(usages) and all(map(_kept, usages)), _locked_out(sure)
    overloaded = any(one.finding.kind is OVERLOADED for one in found)
    for one in sure:
        bearing, finding = one.finding.kind.meaning.bearing, one.finding
        idle = bearing is Bearing.LIMITS_IDLE
        if bearing is Bearing.ADDS or (idle and (full or (carries and not _is_certain(one)))):
            continue
        if finding.affected is Affected.LATENCY:
            continue
        of_queue = _of_queue(finding, found)
        if _matters(of_queue, usages, overloaded=overloaded) or _keeps_out(finding, locked_out):
            yield one


def _seen_in(one: Frequent, trials: Sequence[Observed]) -> int:
    """Return in how many trials it was seen, or what says the same less plainly or from its other side."""
    kinds = {one.finding.kind, _ALIKE.get(one.finding.kind)}
    return sum(any(found.kind in kinds for found in trial.findings) for trial in trials)


def _locked_out(found: Sequence[Frequent]) -> float:
    """Return how many connections had no reply, where some starved."""
    numbers = (one.finding.numbers for one in found if one.finding.kind in _STARVED)
    return max((one.get("connections", 0) - one.get("served", 0) for one in numbers), default=0)


def _keeps_out(finding: Finding, locked_out: float) -> bool:
    """Return whether a table that was full for certain dropped as much as connections had no reply: each is
    kept out for long, however many requests the others have.
    """
    full = finding.kind is TRACKING_FULL and finding.confidence is Confidence.CERTAIN
    return full and 0 < locked_out <= finding.numbers["dropped"]


def _of_queue(finding: Finding, found: Sequence[Frequent]) -> Finding:
    """Return the overflows of the very queue that the kernel cut short by much: they say whether that
    mattered.
    """
    asked, given = finding.numbers.get("asked", 0), finding.numbers.get("given", 0)
    if finding.kind is not BACKLOG_CLIPPED or asked < _LEAST_CUT * given:
        return finding
    overflowed = (one.finding for one in found if one.finding.kind is QUEUE_OVERFLOWED)
    own = (one for one in overflowed if one.numbers.get("limit") == given and "process" not in one.names)
    return next(own, finding)


def _matters(finding: Finding, usages: Sequence[Consumption], *, overloaded: bool) -> bool:
    """Return whether a disturbance was large, and a full queue or table met enough requests, to move a
    figure; a queue that the kernel cut short by little, or that never overflowed, met none.
    """
    traits = finding.kind.traits
    if traits.least_share is not None:
        return finding.numbers["share"] >= traits.least_share
    if finding.kind is BACKLOG_CLIPPED:
        return False
    if not traits.turned_away or not usages:
        return True
    if overloaded and finding.numbers.get("limit", 0) >= _LONG_QUEUE_S * fmean(
        one.done_per_s for one in usages
    ):
        # A queue that holds a second's work is full because more is asked than it can do.
        return False
    if finding.numbers.get("without_reply"):
        return True
    return finding.numbers[traits.turned_away] >= QUALIFIED_ERROR_RATIO * fmean(one.done for one in usages)


def _judged(
    cause: Frequent | None,
    found: Sequence[Frequent],
    usages: Sequence[Consumption],
    shares: Mapping[Resource, float],
) -> tuple[DiagnosisKind, Confidence]:
    if cause is not None:
        # What was sure in half of the trials at most has the others from what says it less plainly.
        rarely = _is_certain(cause) and cause.trials <= _MOST_TRIALS * len(usages)
        return DiagnosisKind.CAUSE, Confidence.LIKELY if rarely else cause.finding.confidence
    busy = shares.get(Resource.CPU, 0.0)
    if busy >= FULL_CPU:
        sure = Confidence.CERTAIN if busy >= _CERTAINLY_FULL else Confidence.LIKELY
        return DiagnosisKind.CPU, sure
    overloaded = any(one.finding.kind is OVERLOADED for one in found)
    if not overloaded and all(map(_kept, usages)):
        return DiagnosisKind.NOT_AT_LIMIT, Confidence.CERTAIN
    if busy >= _NEARLY_FULL:
        return DiagnosisKind.CPU, Confidence.LIKELY
    slots = shares.get(Resource.SLOTS)
    has_room = slots is not None and not any(map(has_few, usages))
    free = slots is None or slots < _FULL_SLOTS
    if all(map(_answers, usages)) and free and (has_room or all(one.has_each_alone for one in usages)):
        # Fewer connections than slots, or as quick as one alone: each waits for its own reply only.
        return DiagnosisKind.NOT_AT_LIMIT, Confidence.LIKELY
    return DiagnosisKind.UNKNOWN, Confidence.POSSIBLE


def _kept(usage: Consumption) -> bool:
    return usage.asked_per_s is not None and usage.carried_per_s >= KEPT_RATE * usage.asked_per_s


def _answers(usage: Consumption) -> bool:
    """Return whether a closed loop's requests are answered as they should be."""
    return usage.asked_per_s is None and usage.carried_per_s >= KEPT_RATE * usage.done_per_s


def _ruled_out(
    found: Sequence[Frequent], shares: Mapping[Resource, float], usages: Sequence[Consumption]
) -> Iterator[Resource]:
    """Yield the resources that were not used up, nor wanted in vain."""
    contended = any(one.contended for one in usages)
    # Without fixed slots event loops may wait for connections to others, which no thread shows.
    loops = any(one.slots is None for one in usages)
    seen = {
        **dict.fromkeys((Resource.CPU, Resource.CORES), contended),
        Resource.GENERATOR: any(one.finding.affected is not None for one in found),
        Resource.POOL: loops or any(one.finding.kind in (DOWNSTREAM_BUSY, *WAITS_WITHIN) for one in found),
        Resource.QUEUE: any(one.finding.kind.meaning.experiment is LONGER_QUEUE for one in found),
    }
    most = {
        **dict.fromkeys((Resource.CPU, Resource.CORES), _NEARLY_FULL),
        Resource.POOL: LEAST_BUSY_POOL,
        Resource.SLOTS: _FULL_SLOTS,
    }
    for resource, share in shares.items():
        if not seen.get(resource, False) and share < most.get(resource, 1.0):
            yield resource
