"""D19 to D21: a server that lacks memory, or takes more and more of it; and one that died.

D19: the subject was killed for exceeding its memory limit, or died.

*Source*: kernel, Documentation/admin-guide/cgroup-v2.rst, memory.events: `oom_kill`.

D20: the server waited for memory.

*Source*: kernel, Documentation/accounting/psi.rst, `some` of memory: of the server's group where the kernel
reports it, else of the machine.

D21: the server's memory grew with its requests, all through the window.

*Assumptions*: a pool or a cache that fills grows too, and stops; only a longer run shows which it is, so this
is never certain. *Source*: proc_pid_statm(5), resident size, twice a second; P. K. Sen, "Estimates of the
regression coefficient based on Kendall's tau", JASA 63 (1968): the median of slopes.
"""

import re
from itertools import pairwise

from prony.core.errors import OUT_OF_MEMORY, FailureStage
from prony.core.units import KIB, MIB
from prony.diagnosis.evidence import Confidence, Evidence, Finding, carried_its_rate
from prony.diagnosis.kinds import Advice, Bearing, Consequence, Experiment, Meaning, Symptom, Traits
from prony.diagnosis.shared import CHANGING, MORE_MEMORY, OF_BOTH, OF_THE_LIMIT, QUIET_MACHINE, RAISE_MEMORY
from prony.model.recording import Recording
from prony.model.trial import Failed, Invalid, Ok

OF_SUCCESSES = Consequence(
    "of the successes only", "requests were lost, and its speed describes only the others"
)
KILLED_FOR_MEMORY = Symptom(
    "killed for memory",
    Meaning(Bearing.LIMITS, OF_SUCCESSES, MORE_MEMORY, RAISE_MEMORY),
    "{kills} of its processes were killed for exceeding the memory limit",
    traits=Traits(cause="its memory limit"),
)
"""``kills``: processes."""
ENDED_UNDER_LOAD = Symptom(
    "ended under load",
    Meaning(Bearing.LIMITS, OF_SUCCESSES, MORE_MEMORY),
    "it ended during the load: {reason}",
    traits=Traits(cause="its own end"),
)
"""Name ``reason``: how it ended."""


# No longer than a count of processes: a stranger's archive may hold any digits.
_PROCESSES = re.compile(r"(?<!\d)(\d{1,9}) process(?:es)? of the ", re.ASCII)


def killed(evidence: Evidence) -> list[Finding]:
    """Return a finding when the cgroup counted kills for memory, or the subject died during the load."""
    counters, outcome = evidence.trial.counters, evidence.trial.outcome
    counted = sum(value for name, value in counters.items() if name.endswith(".oom_kills"))
    kills = counted or _before_window(outcome)
    if kills > 0:
        return [Finding(KILLED_FOR_MEMORY, Confidence.CERTAIN, {"kills": kills})]
    if isinstance(outcome, Failed) and outcome.stage == FailureStage.LOAD:
        # Anyone may have sent a SIGKILL without a counted kill: state only the fact.
        names = {"reason": outcome.reason}
        return [Finding(ENDED_UNDER_LOAD, Confidence.POSSIBLE, names=names)]
    return []


def _before_window(outcome: Ok | Failed | Invalid) -> int:
    """Return how many were killed while the subject was warmed up, which no counter of the window has."""
    if not isinstance(outcome, Failed) or not outcome.reason.startswith(OUT_OF_MEMORY):
        return 0
    return sum(int(count) for count in _PROCESSES.findall(outcome.reason))


# --- D20 --------------------------------------------------------------------------------------------------

WAITED_FOR_MEMORY = Symptom(
    "waited for memory",
    Meaning(Bearing.LIMITS_IDLE, OF_THE_LIMIT, MORE_MEMORY, RAISE_MEMORY),
    "it waited for memory in {share:.0%} of the time",
    shared="it waited for memory",
    traits=Traits(cause="memory", steps_back=True),
)
"""``share``: of the window."""
MACHINE_WAITED_FOR_MEMORY = Symptom(
    "machine waited for memory",
    Meaning(Bearing.ADDS, OF_BOTH, QUIET_MACHINE, RAISE_MEMORY),
    "programs on this machine waited for memory in {share:.0%} of the time",
    shared="programs on this machine waited for memory",
    traits=Traits(of_machine=True),
)
"""``share``: of the window; other programs may have waited."""


_MOST, _MOSTLY = 0.05, 0.5


def memory_pressure(evidence: Evidence) -> list[Finding]:
    """Return a finding when tasks waited for memory in over 5 % of the window.

    Certain: in half of it. Possible: an open loop got all that it asked for, or the waits of the whole
    machine alone are known.
    """
    counters, length_ns = evidence.trial.counters, evidence.sampled_ns
    own = counters.get("cgroup.server.memory_stalled_ns")
    stalled_ns = counters.get("pressure.memory_some_ns", 0) if own is None else own
    if length_ns <= 0 or stalled_ns / length_ns <= _MOST:
        return []
    share = stalled_ns / length_ns
    numbers = {"share": share}
    sure = Confidence.POSSIBLE if own is None else _sure(evidence, share)
    return [Finding(MACHINE_WAITED_FOR_MEMORY if own is None else WAITED_FOR_MEMORY, sure, numbers)]


def _sure(evidence: Evidence, share: float) -> Confidence:
    if carried_its_rate(evidence.trial.recording):
        return Confidence.POSSIBLE
    return Confidence.CERTAIN if share >= _MOSTLY else Confidence.LIKELY


# --- D21 --------------------------------------------------------------------------------------------------

LONGER_RUN = Experiment("a longer run", "measure for ten times as long; a leak goes on, a cache stops")
FIND_LEAK = Advice(
    "find the leak", "measure for longer; if it goes on, look for what its app keeps of each request"
)
MEMORY_GREW = Symptom(
    "memory grew",
    Meaning(Bearing.ADDS, CHANGING, LONGER_RUN, FIND_LEAK),
    "its memory grew by {grown_bytes:bytes} from {first_bytes:bytes} on, {per_request_bytes:bytes} a "
    "request, all through the window",
    shared="its memory grew with its requests, all through the window",
)
"""``grown_bytes`` from ``first_bytes`` on, ``per_request_bytes``."""


_SERVING = ("server", "worker")
_LEAST_SAMPLES = 4
_LEAST_BYTES, _LEAST_SHARE = 6 * MIB, 0.03
# Allocators take memory in steps; a leak of less for a request is none in a window of seconds.
_LEAST_PER_REQUEST = 4 * KIB
# Of the steps from sample to sample, those that grow; and of the growth, what the second half still adds,
# over that half's share of the requests.
_MOST_STEPS, _LATE_SHARE = 0.7, 0.6


def memory_growth(evidence: Evidence) -> list[Finding]:
    """Return a finding when resident memory grew evenly, by 6 MiB, 3 % and 4 KiB a request at least."""
    recording, window = evidence.trial.recording, evidence.samples
    if recording is None or not evidence.is_ok or len(window) < _LEAST_SAMPLES:
        return []
    sizes = [sum(row.rss_bytes for row in one.processes if row.role in _SERVING) for one in window]
    counts = {sum(row.role in _SERVING for row in one.processes) for one in window}
    done = recording.completed.all
    grown = sizes[-1] - sizes[0]
    least = max(_LEAST_BYTES, _LEAST_SHARE * sizes[0], _LEAST_PER_REQUEST * done)
    if len(counts) > 1 or not done or grown < least or not _evenly(sizes, _late_requests(recording)):
        return []
    numbers = {"grown_bytes": grown, "first_bytes": sizes[0], "per_request_bytes": grown / done}
    return [Finding(MEMORY_GREW, Confidence.LIKELY, numbers)]


def _late_requests(recording: Recording) -> float:
    """Return the share of the requests that ended in the second half of the window; a half where nobody
    says.
    """
    counts = [one.ok + one.failed for one in recording.series]
    total = sum(counts)
    return sum(counts[len(counts) // 2 :]) / total if len(counts) > 1 and total else 0.5


def _evenly(sizes: list[int], late_requests: float) -> bool:
    steps = [later - earlier for earlier, later in pairwise(sizes)]
    late = sizes[-1] - sizes[len(sizes) // 2]
    rising = sum(step > 0 for step in steps) >= _MOST_STEPS * len(steps)
    return rising and late >= _LATE_SHARE * late_requests * (sizes[-1] - sizes[0])
