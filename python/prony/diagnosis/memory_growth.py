"""D21: the server's memory grew with its requests, all through the window.

*Assumptions*: a pool or a cache that fills grows too, and stops; only a longer run shows which it is, so this
is never certain. *Source*: proc_pid_statm(5), resident size, twice a second; P. K. Sen, "Estimates of the
regression coefficient based on Kendall's tau", JASA 63 (1968): the median of slopes.
"""

from itertools import pairwise

from prony.core.units import KIB, MIB
from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Experiment, Meaning, Symptom
from prony.diagnosis.shared import CHANGING
from prony.model.recording import Recording

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
