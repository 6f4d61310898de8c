"""What the machine did besides the subject and the generator. Must not know who did it.

>>> [metric.name for metric in MACHINE][3:]
['machine_steal_percent', 'other_load_percent']
"""

from prony.metrics.metric import Better, Metric, Unit
from prony.metrics.sources import PROC, STAT

MACHINE = (
    Metric(
        "machine_cpu_percent",
        Unit.PERCENT,
        Better.NEITHER,
        "CPU of the machine",
        "busy time of all CPUs between the first and the last sample of the window / time "
        "between; 100 = one core",
        STAT,
    ),
    Metric(
        "machine_cpu_ratio",
        Unit.RATIO,
        Better.NEITHER,
        "CPU of the machine, share of all its CPUs",
        "busy time of all CPUs between the first and the last sample of the window / the time of all CPUs",
        STAT,
    ),
    Metric(
        "machine_memory_ratio",
        Unit.RATIO,
        Better.NEITHER,
        "memory of the machine in use, share of all of it",
        "mean over the window's samples of 1 - available / all memory",
        "proc_meminfo(5), MemTotal and MemAvailable",
    ),
    Metric(
        "machine_steal_percent",
        Unit.PERCENT,
        Better.LOWER,
        "CPU stolen from the machine",
        "time that the hypervisor gave to other guests, as a share of all CPUs' time in the window; 100 = "
        "all of it",
        STAT,
    ),
    Metric(
        "other_load_percent",
        Unit.PERCENT,
        Better.LOWER,
        "other load on the trial's CPUs",
        "time of the server's and the generator's CPUs that was used by programs other than the subject, the "
        "generator and Prony, as a share of all those CPUs' time in the window; 100 = all of it; accurate to "
        "about 3",
        f"{STAT}; {PROC}",
    ),
)
