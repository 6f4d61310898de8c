"""What is watched while a load runs: the subject's processes, the machine, and what the kernel counts.

Must not know plans or archives.

>>> sorted(MONITORS)
['groups', 'kernel', 'processes']
"""

from collections.abc import Mapping

from prony.monitor.groups import GroupCounters
from prony.monitor.kernel import KernelCounters
from prony.monitor.processes import ProcessMonitor

__all__ = ["MONITORS", "GroupCounters", "KernelCounters", "ProcessMonitor"]

MONITORS: Mapping[str, type[GroupCounters] | type[KernelCounters] | type[ProcessMonitor]] = {
    "groups": GroupCounters,
    "kernel": KernelCounters,
    "processes": ProcessMonitor,
}
