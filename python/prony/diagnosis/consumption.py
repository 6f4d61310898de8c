"""How much of each resource a trial used: what a server can be at the limit of.

*Source*: P. J. Denning and J. P. Buzen, "The Operational Analysis of Queueing Network Models", Computing
Surveys 10 (1978): utilisation U = X D, Little's law N = X R.

The most that each resource of a subject allows, from how much of it is used: which limit comes next.

*Definition*: with X valid replies a second and a share U of a resource, its ceiling is X / U.
*Assumptions*: at a higher rate as large a share of requests fails, and each uses as much of it. CPU for a
request falls a little as servers take several requests at a time; what waits elsewhere is in flight too, so
the ceiling of slots is a lower bound. *Source*: Denning and Buzen, Computing Surveys 10 (1978), section 6:
bounds of bottlenecks.

>>> from prony.diagnosis.consumption import Consumption
>>> (bound,) = bounds_of([Consumption(500, 1000.0, 1000.0, 0.5, {Resource.CPU: 0.25})])
>>> bound.per_s, bound.times
(4000.0, 4.0)

The server's connections to others, a pool towards a database for example, and how busy they are.

*Definition*: busy is the time that threads wait for the bytes of one such connection / the time of all of
them. Of an event loop, which waits for all of its connections at once, nothing is known; a thread beside it
shows only its own.
*Source*: netlink, the connections of the trial's network; proc(5), the descriptor for which a thread waits;
Little's law.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import fmean

from prony.core.units import seconds
from prony.diagnosis.evidence import Evidence
from prony.diagnosis.knobs import declared_entry
from prony.diagnosis.time_spent import ThreadState, thread_time, with_idle
from prony.figures.accept_queue import accept_queues, overflows_of, starvation
from prony.figures.missing import Missing
from prony.figures.resources import cpu_share
from prony.figures.summary import Estimate, estimate_mean
from prony.figures.validity import other_load, subject_cpu_ns
from prony.model.facts import HotCode
from prony.model.observation import Sample
from prony.model.recording import Recording

# Of all looks at threads; of those that found one at a connection to others: one alone may be any thread's,
# the share of five has a standard error of less than a half.
_LEAST_LOOKS, _LEAST_WAITED = 20, 5


@dataclass(frozen=True, slots=True)
class Pool:
    """``connections``: how many there were on average; ``busy``: the share of their time in which a thread
    waited for one; ``port``: of the peer that most of them have.
    """

    connections: float
    busy: float
    port: int


def pool_of(evidence: Evidence) -> Pool | None:
    """Return the connections of a trial to others; None: none, or hardly anybody was seen to wait for one."""
    counters, outgoing = evidence.trial.counters, outgoing_of(evidence)
    looks, waited = counters.get("threads.looks", 0), counters.get("threads.downstream", 0)
    if outgoing is None or waited < _LEAST_WAITED or looks < _LEAST_LOOKS or not evidence.length_ns:
        return None
    threads = counters.get("threads.alive_ns", 0) / evidence.length_ns
    busy = min(waited / looks * threads / outgoing.connections, 1.0)
    return Pool(outgoing.connections, busy, outgoing.port)


@dataclass(frozen=True, slots=True)
class OwnConnections:
    """The connections of a trial to others, as means over its looks: all, and those to the ``port`` of the
    peer that has most, ``at_port``. ``waits``: those on which a reply was due, at the peer that had most
    such, at ``waits_port``. ``sent``: messages that they sent for each reply of the server; null: not known.
    """

    connections: float
    port: int
    at_port: float
    waits: float = 0.0
    waits_port: int = 0
    sent: float | None = None


def outgoing_of(evidence: Evidence) -> OwnConnections | None:
    """Return the connections to others; None: none was seen."""
    samples = [one for one in evidence.samples if one.gauges.get("downstream.port")]
    seen = [one.gauges for one in samples if one.gauges.get("downstream.connections")]
    if not seen:
        return None
    at_port = [one.get("downstream.at_port", one["downstream.connections"]) for one in seen]
    return OwnConnections(
        connections=fmean(one["downstream.connections"] for one in seen),
        port=seen[-1]["downstream.port"],
        at_port=fmean(at_port),
        waits=fmean(one.get("downstream.waits", 0) for one in seen),
        waits_port=seen[-1].get("downstream.waits_port", 0),
        sent=_sent_a_reply(evidence, samples),
    )


def opened_by_others(evidence: Evidence) -> int | None:
    """Return how many connections were opened in the trial's network that are not the generator's; None: not
    counted.
    """
    opened, recording = evidence.trial.counters.get("ActiveOpens"), evidence.trial.recording
    if opened is None or recording is None:
        return None
    own = (recording.connections.opened or 0) + (recording.connections.reconnects or 0)
    return max(0, opened - own)


def _sent_a_reply(evidence: Evidence, samples: Sequence[Sample]) -> float | None:
    recording, length_ns = evidence.trial.recording, evidence.length_ns
    span_ns = samples[-1].monotonic_ns - samples[0].monotonic_ns
    if not recording or not length_ns or not span_ns or "downstream.sent" not in samples[0].gauges:
        return None
    sent = samples[-1].gauges["downstream.sent"] - samples[0].gauges["downstream.sent"]
    replies = recording.completed.all * span_ns / length_ns
    return sent / replies if replies else None


# Runtimes in which one process runs one thread of the application's code at a time.
_ONE_CORE_A_PROCESS = ("python", "perl", "javascript", "ruby")

# A generator that is busier reads replies late: what is in flight then lies with it.
_MOST_GENERATOR = 0.7
# Beyond these a server that uses little CPU may not have been given more.
_MOST_READY, _MOST_STALLED, _MOST_OTHERS = 0.2, 0.3, 0.2


class Resource(StrEnum):
    """What a server, or its load, may have no more of. Public: the report's JSON holds these names."""

    CPU = "cpu"
    """The time of the CPUs that the subject has, with its frontend and its services."""
    CORES = "cores"
    """The time of as many cores as its processes can fill, where those are fewer than its CPUs."""
    SLOTS = "slots"
    """Its workers and threads: of Little's N at most as many are worked on."""
    POOL = "pool"
    """The time of its connections to others, a database for example, as many as it has."""
    QUEUE = "queue"
    """The room in the fullest of its listen queues, at its fullest moment."""
    GENERATOR = "generator"
    """The time of the generator's busiest thread."""


@dataclass(frozen=True, slots=True)
class Consumption:
    """What one trial used. Rates are per second, ``in_flight`` is the mean number of open requests.

    ``done``: requests that ended in the window, ``failed_per_s``: those of them without a valid reply;
    ``asked_per_s``: those that were due, null in a closed loop.
    ``shares``: of each resource, 0 to 1, where it is known; ``slots``: how many there are.
    ``time``: what its threads did, as shares of their time; empty where that was not watched; ``looks``: how
    often a thread was looked at. ``contended``:
    it was ready to use more CPU, and others had it. ``at_a_time``: how many requests it worked on, by their
    rate and how long one takes that has the server to itself (null: not known): the others waited for these.
    ``page_cpu_ns``: the subject's CPU time for a valid reply, and ``code``: where it went; null: not known.
    """

    done: int
    done_per_s: float
    asked_per_s: float | None
    in_flight: float
    shares: Mapping[Resource, float]
    slots: int | None = None
    time: Mapping[ThreadState, float] = field(default_factory=dict)
    looks: int = 0
    contended: bool = False
    failed_per_s: float = 0.0
    at_a_time: float | None = None
    page_cpu_ns: float | None = None
    code: HotCode | None = None

    @property
    def has_each_alone(self) -> bool:
        """Whether its open requests are known to be as quick as one that is alone."""
        return is_each_alone(self.at_a_time, self.in_flight)

    @property
    def carried_per_s(self) -> float:
        """The valid replies a second: a request that fails is done, and not carried."""
        return self.done_per_s - self.failed_per_s


# Of the requests in flight: the others are on their way.
_HARDLY_WAITING = 0.8


def is_each_alone(at_a_time: float | None, in_flight: float | None) -> bool:
    """Return whether so many of the requests in flight are worked on that none waits for another one."""
    known = at_a_time is not None and in_flight is not None
    return known and (at_a_time or 0.0) >= _HARDLY_WAITING * (in_flight or 0.0)


def consumption_of(evidence: Evidence) -> Consumption | None:
    """Return what a trial used; None without a load, or a window."""
    recording, length_ns = evidence.trial.recording, evidence.length_ns
    if recording is None or length_ns is None or not recording.completed.all:
        return None
    length_s = seconds(length_ns)
    in_flight = (recording.little.within_window_ns or 0) / length_ns
    return Consumption(
        done=recording.completed.all,
        done_per_s=recording.completed.all / length_s,
        asked_per_s=recording.account.scheduled / length_s if recording.is_open else None,
        in_flight=in_flight,
        shares=_shares(evidence, recording, length_ns, in_flight),
        slots=evidence.facts.of_server.slots,
        time=_time(evidence.trial.counters, length_ns, in_flight),
        looks=evidence.trial.counters.get("threads.looks", 0),
        contended=_contended(evidence, length_ns),
        failed_per_s=recording.completed.failed / length_s,
        at_a_time=_at_a_time(evidence, recording, length_s),
        page_cpu_ns=_page_cpu_ns(evidence, recording),
        code=evidence.trial.facts.code,
    )


def _page_cpu_ns(evidence: Evidence, recording: Recording) -> float | None:
    used_ns = subject_cpu_ns(evidence.trial.counters)
    return used_ns / recording.completed.ok if used_ns and recording.completed.ok else None


def _at_a_time(evidence: Evidence, recording: Recording, length_s: float) -> float | None:
    """*Source*: Little's law, with the time of a request that waits for no other one."""
    alone_ns = evidence.trial.counters.get("alone.service_ns")
    return None if alone_ns is None else recording.completed.ok / length_s * seconds(alone_ns)


def _time(counters: Mapping[str, int], length_ns: int, in_flight: float) -> dict[ThreadState, float]:
    """Return what its threads did; who was idle is known where their number is."""
    shares, alive_ns = thread_time(counters), counters.get("threads.alive_ns", 0)
    return with_idle(shares, in_flight * length_ns / alive_ns) if alive_ns else shares


def _shares(
    evidence: Evidence, recording: Recording, length_ns: int, in_flight: float
) -> dict[Resource, float]:
    slots, cpu = evidence.facts.of_server.slots, _cpu_cores(evidence, length_ns)
    cpus, fillable = capacity_of(evidence), _fillable(evidence)
    queues = accept_queues(evidence.samples).values()
    generator, pool = _generator(recording, length_ns), pool_of(evidence)
    waits = _unaccepted(evidence) or (generator or 0.0) > _MOST_GENERATOR
    found = {
        Resource.CPU: cpu / cpus if cpu is not None and cpus else None,
        Resource.CORES: cpu / fillable if cpu is not None and fillable and fillable < (cpus or 0) else None,
        Resource.SLOTS: in_flight / slots if slots and in_flight and not waits else None,
        Resource.POOL: pool.busy if pool else None,
        Resource.QUEUE: max((one.longest / (one.limit + 1) for one in queues), default=None),
        Resource.GENERATOR: generator,
    }
    return {resource: min(share, 1.0) for resource, share in found.items() if share is not None}


def _unaccepted(evidence: Evidence) -> bool:
    """Return whether clients waited for a queue: such requests are in flight, and nobody works on them."""
    return overflows_of(evidence.trial) > 0 or starvation(evidence.trial.recording) is not None


def _contended(evidence: Evidence, length_ns: int) -> bool:
    """Return whether a fifth of its slots waited for a CPU; before that was watched, whether its group did
    for long, or other programs ran for long.
    """
    counters = evidence.trial.counters
    ready_ns, stalled_ns = counters.get("threads.queue_ns"), counters.get("cgroup.server.cpu_stalled_ns")
    if ready_ns is not None:
        return ready_ns / length_ns > _MOST_READY * (evidence.facts.of_server.slots or 1)
    if stalled_ns is not None:
        return stalled_ns / length_ns > _MOST_STALLED
    others = other_load(counters)
    return not isinstance(others, Missing) and others > _MOST_OTHERS


def _cpu_cores(evidence: Evidence, length_ns: int) -> float | None:
    """Return the cores that the subject used; on shared CPUs with those of Prony and the generator.

    The kernel's groups also count processes that came and went between two samples.
    """
    counters, placement = evidence.trial.counters, evidence.trial.placement
    used_ns = subject_cpu_ns(counters)
    if not used_ns:
        sampled = cpu_share(evidence.samples)
        return None if isinstance(sampled, Missing) else sampled
    shared_ns = counters.get("prony.cpu_ns", 0) if placement and placement.shared else 0
    return (used_ns + shared_ns) / length_ns


def capacity_of(evidence: Evidence) -> float | None:
    """Return how many CPUs' time the subject has: those of its set, or its quota if that is less."""
    placement = evidence.trial.placement
    if placement is None or not placement.server_cpus:
        return None
    quota, cpus = evidence.cell.sandbox.cpu_quota, len(placement.server_cpus)
    return cpus if quota is None else min(cpus, quota)


def fills_one_core(evidence: Evidence) -> bool:
    """Return whether a process of the server runs one thread of the application's code at a time."""
    return declared_entry(evidence.facts, "server").get("language") in _ONE_CORE_A_PROCESS


def _fillable(evidence: Evidence) -> int | None:
    """Return how many cores its processes can fill; None where threads run at once, or others run beside."""
    facts = evidence.facts
    alone = facts.frontend is None and not facts.services
    return facts.declared.processes if alone and fills_one_core(evidence) else None


def _generator(recording: Recording, length_ns: int) -> float | None:
    """Return how busy its busiest thread was; what it spins while it waits is no work."""
    threads = recording.generator.threads
    return max(
        ((one.user_ns + one.system_ns - one.spin_ns) / length_ns for one in threads),
        default=None,
    )


# A smaller share of a window of seconds is a few ticks of the kernel's clock.
_LEAST_SHARE = 0.02
# Slots that are busy with the CPU are no limit of their own; what is in flight also waits elsewhere.
_OWN_LIMIT = 0.67
_BOUNDING = (Resource.CORES, Resource.CPU, Resource.SLOTS, Resource.POOL, Resource.GENERATOR)


@dataclass(frozen=True, slots=True)
class Bound:
    """The requests per second that a resource allows, as a mean over the trials."""

    resource: Resource
    per_s: float
    low: float | None
    """`low` and `high`: its 95 % interval, null for one trial."""
    high: float | None
    times: float
    """Over what was carried, with the interval `times_low` to `times_high`, null for one trial."""
    times_low: float | None = None
    times_high: float | None = None


def bounds_of(usages: Sequence[Consumption]) -> tuple[Bound, ...]:
    """Return the bound of each resource whose use is known in every trial, the nearest first."""
    found = {resource: _ceiling(usages, resource) for resource in _BOUNDING}
    known = {resource: one for resource, one in found.items() if one is not None}
    cpu, slots = known.get(Resource.CPU), known.get(Resource.SLOTS)
    if cpu is not None and slots is not None and slots.mean > _OWN_LIMIT * cpu.mean:
        del known[Resource.SLOTS]
    carried = fmean(one.carried_per_s for one in usages) if usages else 0.0
    bounds = (
        Bound(resource, one.mean, one.low, one.high, one.mean / carried, *_times(one, carried))
        for resource, one in known.items()
    )
    return tuple(sorted(bounds, key=lambda one: one.per_s))


def _times(found: Estimate, carried: float) -> tuple[float | None, float | None]:
    """Return between which multiples of what was carried a limit is; None of one trial."""
    if found.low is None or found.high is None:
        return None, None
    # A limit that was not passed is not below what was carried.
    return max(found.low / carried, 1.0), found.high / carried


def _ceiling(usages: Sequence[Consumption], resource: Resource) -> Estimate | None:
    shares = [one.shares.get(resource, 0.0) for one in usages]
    if not shares or min(shares) < _LEAST_SHARE or not any(one.carried_per_s for one in usages):
        return None
    return estimate_mean([one.carried_per_s / share for one, share in zip(usages, shares, strict=True)])
