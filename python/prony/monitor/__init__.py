"""What is watched while a load runs: the subject's processes, the machine, the kernel's counters.

Must not know plans or archives.

>>> sorted(MONITORS)
['kernel', 'processes']
"""

from collections.abc import Mapping

from prony.monitor.kernel import KernelCounters
from prony.monitor.processes import ProcessMonitor

__all__ = ["MONITORS", "KernelCounters", "ProcessMonitor"]

MONITORS: Mapping[str, type[KernelCounters] | type[ProcessMonitor]] = {
    "kernel": KernelCounters,
    "processes": ProcessMonitor,
}
