"""This machine: its CPUs, what it is, and whether it is fit to measure.

Reads, never changes. Must not know subjects or plans.

>>> len(available_cpus()) >= 1
True
"""

from prony.host.claim import claim_machine
from prony.host.cpus import Cpu, available_cpus
from prony.host.environment import visible_environment
from prony.host.fingerprint import fingerprint
from prony.host.preflight import HostCheck, preflight

__all__ = [
    "Cpu",
    "HostCheck",
    "available_cpus",
    "claim_machine",
    "fingerprint",
    "preflight",
    "visible_environment",
]
