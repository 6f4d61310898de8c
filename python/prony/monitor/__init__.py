"""What is watched while a load runs: the subject's processes, the machine, and what the kernel counts.

Must not know plans or archives.

>>> sorted(MONITORS)
['environment', 'groups', 'kernel', 'processes']
"""

from collections.abc import Mapping

from prony.monitor.environment import EnvironmentCounters
from prony.monitor.groups import GroupCounters
from prony.monitor.kernel import KernelCounters
from prony.monitor.processes import ProcessMonitor

__all__ = ["MONITORS", "EnvironmentCounters", "GroupCounters", "KernelCounters", "ProcessMonitor"]

_Kind = type[EnvironmentCounters] | type[GroupCounters] | type[KernelCounters] | type[ProcessMonitor]

MONITORS: Mapping[str, _Kind] = {
    "environment": EnvironmentCounters,
    "groups": GroupCounters,
    "kernel": KernelCounters,
    "processes": ProcessMonitor,
}
