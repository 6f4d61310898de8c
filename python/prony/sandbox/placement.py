"""Which CPUs the server gets, and which the generator gets.

Pure: the topology is passed in.

The choice of cores changes a server's figures (caches, interrupts, neighbours), but nobody wants to test it.
Pure: the caller passes topology and random generator.

>>> place((Cpu(0, 0), Cpu(1, 1)))
Placement(server_cpus=(0,), generator_cpus=(1,), shared=False)

>>> cpus = tuple(Cpu(number, number) for number in range(4))
>>> found = {equivalent(Placement((0, 1), (2, 3)), cpus, Random(seed)).server_cpus for seed in range(99)}
>>> len(found)
6
"""

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from random import Random

from prony.core.errors import HostError
from prony.machine.cpus import Cpu
from prony.model.sandbox import Placement, SandboxChoice


def place_in(sandbox: SandboxChoice, available: Sequence[Cpu], engine_threads: int = 1) -> Placement:
    """Return the placement for a sandbox: a CPU limit also bounds how many CPUs the server gets. One that
    takes the load from other machines may use each CPU.

    >>> place_in(SandboxChoice(listen="192.0.2.1"), (Cpu(0, 0), Cpu(1, 1))).server_cpus
    (0, 1)

    >>> place_in(SandboxChoice(cpu_quota=1.5), tuple(Cpu(n, n) for n in range(8))).server_cpus
    (0, 1)

    *Errors*: as `place`.
    """
    quota = sandbox.cpu_quota
    most = None if quota is None else math.ceil(quota)
    is_shared = sandbox.share_cpus or sandbox.listen is not None
    return place(available, is_shared, engine_threads, most)


def place(
    available: Sequence[Cpu], share: bool = False, engine_threads: int = 1, most: int | None = None
) -> Placement:
    """Return a placement that gives each side whole cores: half of them to the server, rounded up.

    A single core is split between its hardware threads. ``share``: the server may use every CPU, and
    the generator the last ``engine_threads`` of them. Else it gets at least so many as long as the server
    keeps one core. ``most``: the largest number of CPUs for the server, each on a core of its own as far as
    there are cores; the rest of these cores stays idle.

    *Errors*: HostError when there is one CPU and it may not be shared.
    """
    ordered = sorted(available, key=lambda cpu: (cpu.core, cpu.number))
    if share or len(ordered) < 2:
        return _shared(ordered, share, engine_threads)
    cores = [tuple(cpu.number for cpu in group) for _, group in groupby(ordered, key=lambda cpu: cpu.core)]
    cores = sorted(cores) if len(cores) > 1 else [(number,) for number in cores[0]]
    server = _cores_of_server(cores, engine_threads)
    return Placement(_spread(cores[:server], most), _numbers(cores[server:]))


def _shared(cpus: Sequence[Cpu], share: bool, engine_threads: int) -> Placement:
    if not share:
        raise HostError(
            f"Prony may use {len(cpus)} CPU; server and generator need one each, or they disturb each other",
            hint="give Prony two CPUs, or accept the disturbance with `--share-cpus`",
        )
    numbers = tuple(sorted(cpu.number for cpu in cpus))
    return Placement(numbers, numbers[-engine_threads:], shared=True)


def _cores_of_server(cores: Sequence[tuple[int, ...]], engine_threads: int) -> int:
    server = (len(cores) + 1) // 2
    while server > 1 and sum(len(core) for core in cores[server:]) < engine_threads:
        server -= 1
    return server


def _spread(cores: Sequence[tuple[int, ...]], most: int | None) -> tuple[int, ...]:
    """Return at most this many CPUs of these cores: the first of each core, then the second of each."""
    ranked = sorted((rank, cpu) for core in cores for rank, cpu in enumerate(core))
    return tuple(sorted(cpu for _, cpu in ranked[:most]))


def _numbers(cores: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(sorted(number for core in cores for number in core))


# --- placements that differ only in the numbers of their CPUs ---------------------------------------------


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
