"""D29: memory changed its form within the window: huge pages came or went, or pages went to another node.

Trials of one subject then differ by what the kernel happened to do. The kernel counts for the whole machine,
so this is never more than possible.
*Source*: kernel, Documentation/admin-guide/mm/transhuge.rst; proc_vmstat(5).
"""

from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Experiment, Meaning, Symptom
from prony.diagnosis.shared import OF_BOTH

PINNED_MEMORY = Experiment(
    "pinned memory", "measure with huge pages by madvise, on one memory node; trials are alike"
)
PIN_MEMORY = Advice(
    "pin memory", "set transparent_hugepage to madvise, and bind the server to one memory node"
)
PAGES_MOVED = Symptom(
    "memory changed its form",
    Meaning(Bearing.ADDS, OF_BOTH, PINNED_MEMORY, PIN_MEMORY),
    "memory of this machine changed its form within the window: {huge_pages:n huge page} came or "
    "went, {migrated:n page} went to another node",
    shared="memory of this machine changed its form within the window",
)
"""``huge_pages`` that came or went, ``migrated`` pages that went to another node, on the machine."""


# 32 MiB of huge pages, 8 MiB of pages of 4 KiB: a server's memory, and not a few pages of a daemon.
_HUGE_PAGES, _MIGRATED = 16, 2048


def moved_pages(evidence: Evidence) -> list[Finding]:
    """Return a finding when as much memory changed its form as a server has."""
    counters = evidence.trial.counters
    huge, migrated = counters.get("machine.huge_pages", 0), counters.get("machine.migrated_pages", 0)
    if evidence.trial.recording is None or (huge < _HUGE_PAGES and migrated < _MIGRATED):
        return []
    return [Finding(PAGES_MOVED, Confidence.POSSIBLE, {"huge_pages": huge, "migrated": migrated})]
