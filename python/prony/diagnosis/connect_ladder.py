"""D04: clients waited for a lost request to connect: 1, 3 or 7 s, the steps of its repetition.

Where the kernel counted what it dropped, D01 and D02 say where. Elsewhere, as on the host's network or on the
way, the times of connects show it all the same.
*Source*: tcp(7), tcp_syn_retries; RFC 6298, section 2: the first timeout is 1 s, each next one twice as long.
"""

from prony.core.units import SECOND_NS
from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Bearing, Meaning, Symptom
from prony.diagnosis.shared import CONNECT_WAITS, LONGER_QUEUE
from prony.figures.latency import Times, read_distribution
from prony.model.recording import Distribution

CONNECTS_REPEATED = Symptom(
    "connects repeated",
    Meaning(Bearing.ADDS, CONNECT_WAITS, LONGER_QUEUE),
    "{share:.1%} of {connects:n connect} took {retries}: the first request was lost, and no queue "
    "here counted it",
    shared="connects took {retries}: the first request was lost, and no queue here counted it",
)
"""``share`` of the ``connects`` that took 1, 3 or 7 s."""


_STEPS_S = (1, 3, 7)
# What a connect takes besides, on a busy machine too.
_WIDTH = 0.05
_LEAST_SHARE, _LEAST_CONNECTS = 0.001, 20
_COUNTED = ("ListenOverflows", "ListenDrops", "TCPReqQFullDrop")


def connect_ladder(evidence: Evidence) -> list[Finding]:
    """Return a finding when connects took the times of a repeated request, and no queue counted a drop."""
    recording, counters = evidence.trial.recording, evidence.trial.counters
    times = read_distribution(recording.distributions.connect) if recording else None
    if times is None or times.count < _LEAST_CONNECTS or any(counters.get(name, 0) for name in _COUNTED):
        return []
    share = _share(times)
    if share < _LEAST_SHARE or not counters.get("TCPSynRetrans", 0):
        return []
    return [Finding(CONNECTS_REPEATED, Confidence.LIKELY, {"share": share, "connects": times.count})]


def may_be_a_ladder(found: Distribution | None) -> bool:
    """Return whether this rule could ask for these times: a fifth of what it asks for."""
    times = read_distribution(found)
    return times is not None and times.count > 0 and _share(times) >= _LEAST_SHARE / 5


def _share(times: Times) -> float:
    """Return the share of connects that took one of the steps."""
    if times.histogram is None:
        return 0.0
    edges = [(step * SECOND_NS, round(step * (1 + _WIDTH) * SECOND_NS)) for step in _STEPS_S]
    below = times.histogram.count_below
    return sum(below(last) - below(first) for first, last in edges) / times.count
