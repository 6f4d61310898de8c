"""D18 and D32: work that is not alike: for the workers of a server, and for servers that are compared.

D18: one worker had most of the work while another had little: its connections stick to it.

Workers that share a listening socket take what they can when they wake, and keep those connections for good.
Where they wait more than they work, their CPUs show nothing, but whose the connections are does.
*Source*: granian issues 544 and 849; gunicorn, `reuse_port`; proc_pid_stat(5), CPU time by process.

D32: subjects that are compared do not send the same: who sends fewer bytes has less to do.

The only rule that needs more than one trial: the mean sizes of all subjects' replies under one load. It is no
limit of a subject, but a part of a difference between two. *Source*: RFC 9110, 6.3 and 8: a server chooses
which header fields it sends.

>>> unequal_work(100.0, {"b": 105.0}) is None
True
>>> unequal_work(100.0, {"b": 105.0, "c": 250.0}).names
{'other': 'c'}
"""

from collections.abc import Mapping, Sequence

from prony.diagnosis.consumption import Resource, consumption_of
from prony.diagnosis.evidence import Confidence, Evidence, Finding, carried_its_rate, each_had_a_core
from prony.diagnosis.kinds import Advice, Bearing, Closely, Consequence, Experiment, Meaning, Symptom, Traits
from prony.diagnosis.knobs import Turned
from prony.figures.resources import window_length_ns
from prony.model.observation import Sample
from prony.model.recording import Recording
from prony.model.workload import ClosedLoop

OF_THE_FULLEST = Consequence(
    "of the fullest worker", "throughput and the tail of the latency are those of one worker"
)
EVEN_CONNECTIONS = Experiment(
    "a connection for each request", "measure with a connection for each request; its workers are alike"
)
SPREAD_CONNECTIONS = Advice(
    "spread connections over workers",
    "give each worker a listening socket of its own (SO_REUSEPORT), more workers, or a proxy in front "
    "that spreads requests",
    turned=(Turned.OWN_SOCKETS, Turned.PROCESSES),
)
UNEVEN_WORKERS = Symptom(
    "uneven workers",
    Meaning(Bearing.LIMITS_IDLE, OF_THE_FULLEST, EVEN_CONNECTIONS, SPREAD_CONNECTIONS),
    "of its {workers:n worker} one used {most_cores:.0%} of a core, another {least_cores:.0%}: "
    "connections stick to few of them",
    shared="one worker had most of the work: connections stick to few of them",
    traits=Traits(cause="its fullest worker"),
)
"""``workers``, of which the busiest used ``most_cores``, and the least busy ``least_cores``."""
UNEVEN_CONNECTIONS = Symptom(
    "uneven connections",
    Meaning(Bearing.LIMITS_IDLE, OF_THE_FULLEST, EVEN_CONNECTIONS, SPREAD_CONNECTIONS),
    "of its {workers:n worker} one had {most:n connection}, another {least}, each works on {slots} at"
    " once: connections stick to few of them",
    shared="one worker had more connections than it works on at once, another fewer: connections stick to "
    "few of them",
    traits=Traits(cause="its fullest worker", closely=Closely.WAITS),
)
"""``workers``, of which one had ``most`` connections and one ``least``; each works on ``slots``."""


# In cores: the busiest has hardly room for more, and the least busy much.
_BUSY = 0.8
_MOST_OF_IT = 0.5
# Over the mean of all workers; of the CPUs' time.
_UNEVEN, _MOST_CPU = 1.5, 0.7


def uneven_workers(evidence: Evidence) -> list[Finding]:
    """Return a finding when the busiest worker filled a core, and another did at most half as much; or when
    one had more kept connections than it works on at once, and another fewer, though all of them would find
    room if they were spread; and requests waited for each other.
    """
    recording = evidence.trial.recording
    if recording is None or not evidence.is_ok or carried_its_rate(recording):
        return []
    return _by_cpu(evidence, recording) or _by_connections(evidence)


def is_uneven(window: Sequence[Sample]) -> bool:
    """Return whether the busiest worker filled a core, and another did at most half as much."""
    used = sorted(_cores(window))
    return len(used) > 1 and used[-1] >= _BUSY and used[0] <= _MOST_OF_IT * used[-1]


def _by_cpu(evidence: Evidence, recording: Recording) -> list[Finding]:
    window = evidence.samples
    used = sorted(_cores(window))
    if not is_uneven(window) or each_had_a_core(recording, sum(used)):
        return []
    numbers = {"workers": len(used), "most_cores": used[-1], "least_cores": used[0]}
    return [Finding(UNEVEN_WORKERS, Confidence.LIKELY, numbers)]


def _by_connections(evidence: Evidence) -> list[Finding]:
    counters, each = evidence.trial.counters, _slots_of_each(evidence)
    workers, held = counters.get("workers.watched", 0), counters.get("workers.connections", 0)
    if each is None or workers < 2 or not held or not _keeps_connections(evidence):
        return []
    most, least = counters["workers.connections_most"], counters["workers.connections_least"]
    usage = consumption_of(evidence)
    if usage is None or usage.shares.get(Resource.CPU, 1.0) > _MOST_CPU:
        return []
    if not (least < each < most and _UNEVEN * held / workers <= most and held <= each * workers):
        return []
    numbers = {"workers": workers, "most": most, "least": least, "slots": each}
    return [Finding(UNEVEN_CONNECTIONS, Confidence.LIKELY, numbers)]


def has_idle_slots(evidence: Evidence) -> bool:
    """Return whether a worker had fewer kept connections than it works on: not all slots were busy."""
    least, each = evidence.trial.counters.get("workers.connections_least"), _slots_of_each(evidence)
    return least is not None and each is not None and _keeps_connections(evidence) and least < each


def _slots_of_each(evidence: Evidence) -> int | None:
    """Return how many requests one worker works on at once; None where that is not fixed."""
    facts = evidence.facts.of_server
    return facts.slots // facts.processes if facts.slots and facts.processes else None


def _keeps_connections(evidence: Evidence) -> bool:
    """Return whether each connection stays, and has a request nearly all the time."""
    load = evidence.cell.workload
    return isinstance(load.loop, ClosedLoop) and load.request.keep_alive


def _cores(window: Sequence[Sample]) -> list[float]:
    """Return the cores that each worker used, of those that were there at both edges."""
    if len(window) < 2:
        return []
    length_ns = window_length_ns(window)
    first, last = (
        {row.identity: row.cpu_ns for row in one.processes if row.role == "worker"}
        for one in (window[0], window[-1])
    )
    return [(last[one] - first[one]) / length_ns for one in first.keys() & last.keys()] if length_ns else []


# --- D32 --------------------------------------------------------------------------------------------------

OF_OTHER_WORK = Consequence(
    "of other work too", "a part of a difference in speed may be of the work, not of the server"
)
SAME_REPLIES = Experiment(
    "the same replies", "measure replies of one size; what then differs is the server's"
)
SEND_THE_SAME = Advice(
    "send the same", "let all send the same page and header fields, or say it beside the figures"
)
UNEQUAL_WORK = Symptom(
    "unequal work",
    Meaning(Bearing.ADDS, OF_OTHER_WORK, SAME_REPLIES, SEND_THE_SAME),
    "its replies have {own_bytes:bytes}, heads included, and those of {other} {other_bytes:bytes}",
)
"""``own_bytes`` of its replies, heads included, and ``other_bytes`` of those of the subject named
    ``other``."""


ALIKE = 1.1
"""Up to such a ratio of their sizes replies are of one size: `Date` and `Server` fields differ by so much."""


def unequal_work(own_bytes: float, others: Mapping[str, float]) -> Finding | None:
    """Return a finding about a subject whose replies are a tenth larger or smaller than another's; None: none
    is. ``others``: mean bytes of their replies, heads included, by name; that which differs most is named.

    Likely: the sizes are counted, but not how much of a difference in speed they explain.
    """
    if not others or own_bytes <= 0 or min(others.values()) <= 0:
        return None
    name = max(others, key=lambda other: (_apart(own_bytes, others[other]), other))
    if _apart(own_bytes, others[name]) <= ALIKE:
        return None
    return Finding(
        UNEQUAL_WORK,
        Confidence.LIKELY,
        {"own_bytes": own_bytes, "other_bytes": others[name]},
        {"other": name},
        rule="D32",
    )


def _apart(one: float, another: float) -> float:
    return max(one, another) / min(one, another)
