"""D23 and D39: faults of the generator, which make figures of the server bounds, or none at all.

D23: the generator, not the server, may have limited the figures.

*Source*: the engine's own verdict (docs/reference/engine-wire.md, Generator).

D39: the generator's own figures contradict each other, so that they cannot all be true.

Such a trial does not count (`figures.validity`); what its server did is then not known.
*Source*: Little's law, as there: requests in flight are their rate times the time of each.
"""

from prony.diagnosis.evidence import ENDED, Affected, Confidence, Evidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Consequence, Experiment, Meaning, Symptom, Traits
from prony.figures.account import keeps_rate
from prony.figures.validity import off_little
from prony.model.limit import Limit, Limited, LimitKind
from prony.model.recording import Recording

AT_LEAST = Consequence("the server is at least so good", "the server is at least as good as shown")
STRONGER_GENERATOR = Experiment(
    "a stronger generator", "give the generator more threads and CPUs; the figures improve"
)
LEAVE_CPUS_TO_GENERATOR = Advice(
    "leave CPUs to the generator",
    "keep other programs off the generator's CPUs, give it more CPUs, or lower the load",
)
RAISE_CONNECTIONS = Advice(
    "raise the generator's connections", "allow the generator more connections, or lower the rate"
)
RAISE_PORTS = Advice(
    "raise the range of ports", "widen net.ipv4.ip_local_port_range, or keep connections open"
)
RAISE_DESCRIPTORS = Advice("raise the limit of descriptors", "raise the generator's limit of open files")
RAISE_GENERATOR_QUOTA = Advice(
    "raise the generator's quota", "raise the quota of CPU that holds the generator"
)
USE_FEWER_CONNECTIONS = Advice("fewer connections", "use fewer connections, or raise net.ipv4.tcp_mem")
PACE_PRECISELY = Advice("pace precisely", "use --pacing precise, and give the generator CPUs of its own")
ADD_GENERATOR_THREADS = Advice(
    "add threads to the generator", "give the generator more threads and CPUs, or lower the load"
)


def _limit(name: str, kind: LimitKind, advice: Advice) -> Symptom:
    """Return the kind of finding that says what the generator's own limit of this kind says."""
    meaning = Meaning(Bearing.LIMITS, AT_LEAST, STRONGER_GENERATOR, advice)
    return Symptom(name, meaning, traits=Traits(limit=kind, cause="the generator"))


GENERATOR_AT_LIMIT = _limit("generator's limit of requests in flight", LimitKind.IN_FLIGHT, RAISE_CONNECTIONS)
"""``connections``: the limit; ``at_ns``: when it was reached, from the opening."""
GENERATOR_WITHOUT_PORTS = _limit("generator without ports", LimitKind.PORTS, RAISE_PORTS)
"""``requests`` that found none."""
GENERATOR_WITHOUT_DESCRIPTORS = _limit(
    "generator without descriptors", LimitKind.DESCRIPTORS, RAISE_DESCRIPTORS
)
"""As before."""
GENERATOR_WITHOUT_BUFFERS = _limit("generator without buffers", LimitKind.BUFFERS, USE_FEWER_CONNECTIONS)
"""As before."""
GENERATOR_THROTTLED = _limit("generator throttled", LimitKind.THROTTLED, RAISE_GENERATOR_QUOTA)
"""``share``: of the window, in which a quota stopped one of its threads."""
GENERATOR_NEAR_CEILING = _limit("generator near its ceiling", LimitKind.NEAR_CEILING, ADD_GENERATOR_THREADS)
"""``share``: of ``ceiling_per_s``, what it can reach on this machine."""
GENERATOR_MISSED_RATE = _limit("generator missed the rate", LimitKind.RATE_MISSED, ADD_GENERATOR_THREADS)
"""``share``: of what was due; ``sent_per_s``."""
GENERATOR_BUSY = _limit("generator busy", LimitKind.BUSY, ADD_GENERATOR_THREADS)
"""``share``: of the window, of its busiest thread."""
GENERATOR_KEPT_WAITING = _limit("generator kept waiting", LimitKind.KEPT_WAITING, LEAVE_CPUS_TO_GENERATOR)
"""``share``: of the window, in which others had the CPU of one of its threads; ``wait_ns`` at a time;
``late_share``: of the replies, those that it took only then."""
GENERATOR_LATE = _limit("generator late", LimitKind.LATE, PACE_PRECISELY)
"""``lag_ns``: the send lag at ``percentile``; ``share``: of the latency there.
Name ``reason``: the generator's own words, when they match no known kind."""
OF_GENERATOR = (
    *(GENERATOR_AT_LIMIT, GENERATOR_WITHOUT_PORTS, GENERATOR_WITHOUT_DESCRIPTORS, GENERATOR_WITHOUT_BUFFERS),
    *(GENERATOR_THROTTLED, GENERATOR_NEAR_CEILING, GENERATOR_MISSED_RATE, GENERATOR_BUSY),
    *(GENERATOR_KEPT_WAITING, GENERATOR_LATE),
)
"""What is plain first."""
_FOUND = {one.traits.limit: one for one in OF_GENERATOR}
_OF_ITS_CPU = frozenset(
    (LimitKind.BUSY, LimitKind.KEPT_WAITING, LimitKind.LATE, LimitKind.NEAR_CEILING, LimitKind.RATE_MISSED)
)
# Of the requests that ended.
_MOST_SENT_AWAY = 0.5


def generator_limited(evidence: Evidence) -> list[Finding]:
    """Return a finding when the engine says that it was the limit, in a trial that ran its window: the
    strongest evidence that it has.
    """
    recording = evidence.trial.recording
    if recording is None or not evidence.is_ok:
        return []
    found = recording.generator.verdict.strongest
    if found is None:
        return []
    return [
        Finding(_FOUND[found.kind], _sure(found, recording), found.numbers, affected=_affected(recording))
    ]


def _sure(found: Limit, recording: Recording) -> Confidence:
    """Return how sure it is that the generator was the limit: one that a server keeps busy with connections
    that it refuses or ends is busy with what another cause does; and one that sent all that was asked for, if
    late, kept nothing from the server.
    """
    if found.level is not Limited.YES:
        return Confidence.LIKELY
    sent_away = sum(recording.account.others.get(name) or 0 for name in ENDED)
    by_failures = sent_away > _MOST_SENT_AWAY * recording.completed.all
    doubtful = found.kind in _OF_ITS_CPU and (by_failures or keeps_rate(recording))
    return Confidence.LIKELY if doubtful else Confidence.CERTAIN


def _affected(recording: Recording) -> Affected:
    return Affected.LATENCY if keeps_rate(recording) else Affected.ALL


# --- D39 --------------------------------------------------------------------------------------------------

OF_NOTHING = Consequence("of nothing", "none of its figures counts")
OTHER_GENERATOR = Experiment(
    "another generator", "measure with another generator; its figures agree with each other"
)
CROSS_CHECK = Advice(
    "another generator beside it", "measure with another generator beside it (--cross-check), and report it"
)
FIGURES_CONTRADICT = Symptom(
    "figures that contradict each other",
    Meaning(Bearing.LIMITS, OF_NOTHING, OTHER_GENERATOR, CROSS_CHECK),
    "requests in flight differ by {off:.0%} from rate times latency (Little's law): the generator's "
    "figures cannot all be true",
    shared="requests in flight are not rate times latency (Little's law): the generator's figures cannot all"
    " be true",
    traits=Traits(cause="a generator whose figures contradict each other", of_machine=True),
)
"""``off``: by which share requests in flight differ from rate times latency."""


def littles_law(evidence: Evidence) -> list[Finding]:
    """Return a finding when requests in flight differ from rate times latency by more than a tenth."""
    recording = evidence.trial.recording
    residual = None if recording is None else off_little(recording)
    if residual is None:
        return []
    return [Finding(FIGURES_CONTRADICT, Confidence.CERTAIN, {"off": abs(residual)})]
