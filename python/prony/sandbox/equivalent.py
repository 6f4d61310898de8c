"""Placements that differ only in the numbers of their CPUs: each trial gets a random one.

The choice of cores changes a server's figures (caches, interrupts, neighbours), but nobody wants to test it.
Pure: the caller passes topology and random generator.

>>> cpus = tuple(Cpu(number, number) for number in range(4))
>>> found = {equivalent(Placement((0, 1), (2, 3)), cpus, Random(seed)).server_cpus for seed in range(99)}
>>> len(found)
6
"""

from collections.abc import Mapping, Sequence
from random import Random

from prony.host.cpus import Cpu
from prony.model.sandbox import Placement


def equivalent(placement: Placement, cpus: Sequence[Cpu], random: Random) -> Placement:
    """Return ``placement`` with its cores replaced at random by others of their kind.

    *Definition*: all orders of the cores of one kind with the same number of hardware threads are equally
    likely, including idle cores; a core is moved as a whole.
    *Assumptions*: with two cores, or one whose threads are split, nothing is randomised: the first core often
    handles most interrupts and so differs from the second; the server keeps it.
    """
    cores = _cores(cpus)
    if placement.shared or len(cores) <= 2:
        return placement
    moved = _moved(cores, random)
    return Placement(
        tuple(sorted(moved[cpu] for cpu in placement.server_cpus)),
        tuple(sorted(moved[cpu] for cpu in placement.generator_cpus)),
    )


_Core = tuple[int, ...]


def _cores(cpus: Sequence[Cpu]) -> dict[_Core, tuple[str, int]]:
    """Return the CPUs of each core, with what decides whether it is interchangeable: kind and threads."""
    numbers: dict[int, list[int]] = {}
    kinds: dict[int, str] = {}
    for cpu in sorted(cpus, key=lambda cpu: cpu.number):
        numbers.setdefault(cpu.core, []).append(cpu.number)
        kinds.setdefault(cpu.core, cpu.kind)
    return {tuple(own): (kinds[core], len(own)) for core, own in numbers.items()}


def _moved(cores: Mapping[_Core, tuple[str, int]], random: Random) -> dict[int, int]:
    """Return the replacement of each CPU."""
    moved: dict[int, int] = {}
    for kind in sorted(set(cores.values())):
        alike = sorted(core for core, own in cores.items() if own == kind)
        for core, other in zip(alike, random.sample(alike, len(alike)), strict=True):
            moved |= dict(zip(core, other, strict=True))
    return moved
