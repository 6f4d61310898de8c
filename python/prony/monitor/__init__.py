"""What Prony watches while a load runs: the subject's processes, the machine, and the kernel's counters.

Must not know plans or archives.

>>> sorted(MONITORS)
['environment', 'frequency', 'groups', 'kernel', 'listeners', 'processes']
"""

from collections.abc import Mapping

from prony.monitor.base import Gauges, Monitor, WindowCounters
from prony.monitor.environment import EnvironmentCounters
from prony.monitor.frequency import FrequencyGauge
from prony.monitor.groups import GroupCounters
from prony.monitor.kernel import KernelCounters
from prony.monitor.listeners import ListenerGauges
from prony.monitor.processes import ProcessMonitor

__all__ = [
    "MONITORS",
    "EnvironmentCounters",
    "FrequencyGauge",
    "GroupCounters",
    "KernelCounters",
    "ListenerGauges",
    "ProcessMonitor",
]

MONITORS: Mapping[str, type[Gauges] | type[WindowCounters] | type[Monitor]] = {
    "environment": EnvironmentCounters,
    "frequency": FrequencyGauge,
    "groups": GroupCounters,
    "kernel": KernelCounters,
    "listeners": ListenerGauges,
    "processes": ProcessMonitor,
}
