"""D07: the firewall's table of connections was full, so that packets of new ones were dropped.

Only where something tracks connections: address translation of containers, a firewall with states.
*Source*: kernel, Documentation/networking/nf_conntrack-sysctl.rst; net/netfilter/nf_conntrack_core.c.
"""

from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Experiment, Meaning, Symptom, Traits
from prony.diagnosis.shared import CONNECT_WAITS

LARGER_TABLE = Experiment(
    "a larger table", "measure with twice the table, or untracked packets; none is dropped"
)
RAISE_TRACKING = Advice(
    "raise the table of connections", "raise net.netfilter.nf_conntrack_max, or leave its packets untracked"
)
TRACKING_FULL = Symptom(
    "table of connections full",
    Meaning(Bearing.LIMITS, CONNECT_WAITS, LARGER_TABLE, RAISE_TRACKING),
    "the kernel's table of tracked connections was full ({entries}{most: of}): it dropped {dropped:n packet}",
    traits=Traits(cause="the kernel's table of connections", turned_away="dropped"),
)
"""``dropped`` packets; ``entries`` of ``most`` in the end, if known."""


_NEARLY_FULL = 0.95


def tracking_full(evidence: Evidence) -> list[Finding]:
    """Return a finding when packets were dropped for want of room in the table, or it is nearly full."""
    counters = evidence.trial.counters
    entries, dropped = counters.get("conntrack.entries", 0), counters.get("conntrack.dropped", 0)
    most = counters.get("conntrack.most", 0)
    full = most > 0 and entries >= _NEARLY_FULL * most
    if not (dropped > 0 or full):
        return []
    sure = Confidence.LIKELY if evidence.is_on_host or not (dropped > 0 and full) else Confidence.CERTAIN
    return [
        Finding(
            TRACKING_FULL,
            sure if dropped > 0 else Confidence.POSSIBLE,
            {"dropped": dropped, "entries": entries} | ({"most": most} if most else {}),
        )
    ]
