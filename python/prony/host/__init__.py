"""This machine: its CPUs, its other facts, and whether it is fit to measure.

Reads, never changes. Must not know subjects or plans.

>>> len(available_cpus()) >= 1
True
"""

from prony.host.checks import HostCheck
from prony.host.claim import claim_machine
from prony.host.cpus import Cpu, available_cpus
from prony.host.environment import visible_environment
from prony.host.fingerprint import fingerprint
from prony.host.kernel_log import kernel_log_kept
from prony.host.preflight import Demand, preflight, unfit

__all__ = [
    "Cpu",
    "Demand",
    "HostCheck",
    "available_cpus",
    "claim_machine",
    "fingerprint",
    "kernel_log_kept",
    "preflight",
    "unfit",
    "visible_environment",
]
