"""Why a figure is what it is: one rule per file, from Evidence to findings. Pure.

Rules are listed here, and nowhere else. Must not know reports.
"""

from collections.abc import Mapping
from types import MappingProxyType

from prony.diagnosis.evidence import Confidence, Evidence, Finding, Rule
from prony.diagnosis.generator_limited import generator_limited
from prony.diagnosis.killed import killed
from prony.diagnosis.listen_queue import listen_queue
from prony.diagnosis.starvation import starved
from prony.diagnosis.throttled import throttled

__all__ = ["RULES", "Confidence", "Evidence", "Finding", "Rule", "diagnose"]

RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "D23": generator_limited,
        "D19": killed,
        "D14": throttled,
        "D01": listen_queue,
        "D10": starved,
    }
)
"""In the order in which their findings are told: the bench's own fault first, then death, limits, queues."""


def diagnose(evidence: Evidence) -> list[Finding]:
    """Return what all rules find in one trial."""
    return [finding for rule in RULES.values() for finding in rule(evidence)]
