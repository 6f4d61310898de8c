"""D08: the server had no descriptor left for another connection, or waits with select(2), which knows 1,024.

*Source*: getrlimit(2), RLIMIT_NOFILE; accept(2), EMFILE; select(2): FD_SETSIZE.
"""

import re

from prony.analysis.resources import window_samples
from prony.diagnosis.clients import went_without
from prony.diagnosis.evidence import Advice, Confidence, Evidence, Finding, Symptom

_NONE_LEFT = re.compile(r"(?i)too many open files|\bEMFILE\b|no file descriptors available")
# Of inotify, which has limits of its own, and of which servers only reload their code.
_OF_WATCHES = re.compile(r"(?i)watch|inotify")
_OF_SELECT = re.compile(r"(?i)file ?descriptor out of range in select|\bFD_SETSIZE\b")
# The last ones are those that a server keeps for itself.
_NEARLY_ALL, _NEARLY_SAID, _REFUTED = 0.95, 0.85, 0.5
_MOST_OF_SELECT = 1024


def descriptors(evidence: Evidence) -> list[Finding]:
    """Return a finding when its log says so, or a process had used 95 % of its own limit.

    Certain: both; where its log says so 85 % are enough, for a look misses the fullest moment. Likely: the
    log, and clients went without. Possible: the log alone, or against what was counted; it has lines from
    before the window too.
    """
    log, counters = evidence.trial.log.text, evidence.trial.counters
    if _OF_SELECT.search(log):
        return [_select(evidence)]
    used, limit = counters.get("descriptors.used"), counters.get("descriptors.limit")
    said = any(_NONE_LEFT.search(line) and not _OF_WATCHES.search(line) for line in log.splitlines())
    share = used / limit if used is not None and limit else None
    if not (said or (share is not None and share >= _NEARLY_ALL)):
        return []
    known = {} if used is None or limit is None else {"used": used, "limit": limit}
    return [
        Finding(
            rule="D08",
            kind=Symptom.DESCRIPTORS_USED_UP,
            confidence=_sure(evidence, share) if said else Confidence.LIKELY,
            numbers=known,
            advice=Advice.RAISE_SERVER_DESCRIPTORS,
        )
    ]


def _sure(evidence: Evidence, share: float | None) -> Confidence:
    """Return how sure it is that the log speaks of the window; ``share``: of the descriptors used."""
    if share is not None and share >= _NEARLY_SAID:
        return Confidence.CERTAIN
    refuted = share is not None and share < _REFUTED
    return Confidence.LIKELY if went_without(evidence.trial) and not refuted else Confidence.POSSIBLE


def _select(evidence: Evidence) -> Finding:
    counts = [one.gauges.get("established.server", 0) for one in window_samples(evidence.trial.samples)]
    signs = max(counts, default=0) >= _NEARLY_SAID * _MOST_OF_SELECT, went_without(evidence.trial)
    sure = {0: Confidence.POSSIBLE, 1: Confidence.LIKELY, 2: Confidence.CERTAIN}[sum(signs)]
    return Finding(
        rule="D08",
        kind=Symptom.SELECT_FULL,
        confidence=sure,
        numbers={"connections": max(counts, default=0)},
        advice=Advice.TAKE_EPOLL,
    )
