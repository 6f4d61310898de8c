"""The causes behind figures: one rule per file, from Evidence to findings. Pure.

This list of rules is the only one. Must not know reports.
"""

from collections.abc import Mapping
from types import MappingProxyType

from prony.diagnosis.clipped_backlog import clipped_backlog
from prony.diagnosis.dropped_connects import dropped_connects
from prony.diagnosis.evidence import Advice, Affected, Confidence, Evidence, Finding, Rule, Symptom
from prony.diagnosis.generator_limited import generator_limited
from prony.diagnosis.growing_pool import growing_pool
from prony.diagnosis.heat import heat
from prony.diagnosis.killed import killed
from prony.diagnosis.listen_queue import listen_queue
from prony.diagnosis.memory_pressure import memory_pressure
from prony.diagnosis.network_limit import network_limit
from prony.diagnosis.one_core import one_core
from prony.diagnosis.other_programs import other_programs
from prony.diagnosis.restarted import restarted
from prony.diagnosis.shared_cpus import shared_cpus
from prony.diagnosis.starvation import starved
from prony.diagnosis.stolen_time import stolen_time
from prony.diagnosis.throttled import throttled

__all__ = [
    "RULES",
    "Advice",
    "Affected",
    "Confidence",
    "Evidence",
    "Finding",
    "Rule",
    "Symptom",
    "diagnose",
]

RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "D23": generator_limited,
        "D24": shared_cpus,
        "D19": killed,
        "D22": restarted,
        "D14": throttled,
        "D01": listen_queue,
        "D03": clipped_backlog,
        "D02": dropped_connects,
        "D10": starved,
        "D25": network_limit,
        "D26": stolen_time,
        "D27": heat,
        "D28": other_programs,
        "D20": memory_pressure,
        "D37": growing_pool,
        "D13": one_core,
    }
)
"""In the order in which reports show their findings: first faults of the bench, then death, limits,
queues, the machine, and last resources that the server did not use.
"""


def diagnose(evidence: Evidence) -> list[Finding]:
    """Return the findings of all rules in one trial."""
    return [finding for rule in RULES.values() for finding in rule(evidence)]
