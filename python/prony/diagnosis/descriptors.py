"""D08: the server had no descriptor left for another connection, or waits with select(2), which knows 1,024.

*Source*: getrlimit(2), RLIMIT_NOFILE; accept(2), EMFILE; select(2): FD_SETSIZE.
"""

import re

from prony.analysis.resources import window_samples
from prony.diagnosis.evidence import Advice, Confidence, Evidence, Finding, Symptom

__all__ = ["descriptors"]

_NONE_LEFT = re.compile(r"(?i)too many open files|\bEMFILE\b|no file descriptors available")
_OF_SELECT = re.compile(r"(?i)file ?descriptor out of range in select|\bFD_SETSIZE\b")
# The last ones are those that a server keeps for itself.
_NEARLY_ALL = 0.95


def descriptors(evidence: Evidence) -> list[Finding]:
    """Return a finding when its log says so, or a process had used 95 % of its own limit.

    Certain: its log says so.
    """
    log, counters = evidence.trial.log.text, evidence.trial.counters
    if _OF_SELECT.search(log):
        return [_select(evidence)]
    used, limit = counters.get("descriptors.used"), counters.get("descriptors.limit")
    said = _NONE_LEFT.search(log) is not None
    full = used is not None and limit is not None and used >= _NEARLY_ALL * limit
    if not (said or full):
        return []
    known = {} if used is None or limit is None else {"used": used, "limit": limit}
    return [
        Finding(
            rule="D08",
            kind=Symptom.DESCRIPTORS_USED_UP,
            confidence=Confidence.CERTAIN if said else Confidence.LIKELY,
            numbers=known,
            advice=Advice.RAISE_SERVER_DESCRIPTORS,
        )
    ]


def _select(evidence: Evidence) -> Finding:
    counts = [one.gauges.get("established.server", 0) for one in window_samples(evidence.trial.samples)]
    return Finding(
        rule="D08",
        kind=Symptom.SELECT_FULL,
        confidence=Confidence.CERTAIN,
        numbers={"connections": max(counts, default=0)},
        advice=Advice.TAKE_EPOLL,
    )
