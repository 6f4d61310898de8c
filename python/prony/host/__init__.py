"""This machine: its CPUs, what it is, and whether it is fit to measure.

Reads, never changes. Must not know subjects or plans.

>>> len(available_cpus()) >= 1
True
"""

from prony.host.cpus import Cpu, available_cpus

__all__ = ["Cpu", "available_cpus"]
