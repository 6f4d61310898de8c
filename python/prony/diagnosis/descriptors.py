"""D08: the server had no descriptor left for another connection, or waits with select(2), which knows 1,024.

*Source*: getrlimit(2), RLIMIT_NOFILE; accept(2), EMFILE; select(2): FD_SETSIZE.
"""

import re

from prony.diagnosis.clients import went_without
from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Experiment, Meaning, Symptom, Traits
from prony.diagnosis.shared import FEWER_CONNECTIONS, OF_THE_SERVED

MORE_DESCRIPTORS = Experiment(
    "more descriptors", "measure with twice the limit; all connections are answered"
)
RAISE_SERVER_DESCRIPTORS = Advice(
    "raise the server's limit of descriptors", "raise its limit of open files (LimitNOFILE, ulimit -n)"
)
TAKE_EPOLL = Advice(
    "take another event loop", "take an event loop on epoll, or more processes with fewer connections each"
)
DESCRIPTORS_USED_UP = Symptom(
    "descriptors used up",
    Meaning(Bearing.LIMITS, OF_THE_SERVED, MORE_DESCRIPTORS, RAISE_SERVER_DESCRIPTORS),
    "it has no file descriptor left{limit: of}",
    traits=Traits(cause="its limit of open files"),
)
"""``used`` of ``limit`` open files, of the process that is nearest to its own."""
SELECT_FULL = Symptom(
    "select() full",
    Meaning(Bearing.LIMITS, OF_THE_SERVED, FEWER_CONNECTIONS, TAKE_EPOLL),
    "it waits for connections with select(), which knows {select_most} descriptors, and "
    "{connections:n connection} were open",
    traits=Traits(cause="select()"),
)
"""``connections`` at its address at most; select(2) knows 1,024 descriptors."""


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
    return [Finding(DESCRIPTORS_USED_UP, _sure(evidence, share) if said else Confidence.LIKELY, known)]


def _sure(evidence: Evidence, share: float | None) -> Confidence:
    """Return how sure it is that the log speaks of the window; ``share``: of the descriptors used."""
    if share is not None and share >= _NEARLY_SAID:
        return Confidence.CERTAIN
    refuted = share is not None and share < _REFUTED
    return Confidence.LIKELY if went_without(evidence.trial) and not refuted else Confidence.POSSIBLE


def _select(evidence: Evidence) -> Finding:
    counts = [one.gauges.get("established.server", 0) for one in evidence.samples]
    signs = max(counts, default=0) >= _NEARLY_SAID * _MOST_OF_SELECT, went_without(evidence.trial)
    sure = {0: Confidence.POSSIBLE, 1: Confidence.LIKELY, 2: Confidence.CERTAIN}[sum(signs)]
    return Finding(SELECT_FULL, sure, {"connections": max(counts, default=0)})
