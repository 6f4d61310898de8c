"""Which CPUs the server gets, and which the generator.

Pure: the topology is passed in. Must not know how processes are placed.

>>> place((Cpu(0, 0), Cpu(1, 1)))
Placement(server_cpus=(0,), generator_cpus=(1,), shared=False)
"""

from collections.abc import Sequence
from itertools import groupby

from prony.errors import HostError
from prony.host import Cpu
from prony.model import Placement

__all__ = ["place"]


def place(available: Sequence[Cpu], share: bool = False, engine_threads: int = 1) -> Placement:
    """Return a placement that gives each side whole cores: half of them to the server, rounded up.

    One core is split between its hardware threads when it is all there is. ``share``: both sides may use
    every CPU. The generator never gets fewer CPUs than ``engine_threads`` while the server keeps one core.

    *Errors*: HostError when there is one CPU and it may not be shared.
    """
    ordered = sorted(available, key=lambda cpu: (cpu.core, cpu.number))
    if share or len(ordered) < 2:
        return _shared(ordered, share)
    cores = [tuple(cpu.number for cpu in group) for _, group in groupby(ordered, key=lambda cpu: cpu.core)]
    cores = sorted(cores) if len(cores) > 1 else [(number,) for number in cores[0]]
    server = _cores_of_server(cores, engine_threads)
    return Placement(_numbers(cores[:server]), _numbers(cores[server:]))


def _shared(cpus: Sequence[Cpu], share: bool) -> Placement:
    if not share:
        raise HostError(
            f"Prony may use {len(cpus)} CPU; server and generator need one each, or they measure each other",
            hint="give it two CPUs, or accept the disturbance with `--share-cpus`",
        )
    numbers = tuple(sorted(cpu.number for cpu in cpus))
    return Placement(numbers, numbers, shared=True)


def _cores_of_server(cores: Sequence[tuple[int, ...]], engine_threads: int) -> int:
    server = (len(cores) + 1) // 2
    while server > 1 and sum(len(core) for core in cores[server:]) < engine_threads:
        server -= 1
    return server


def _numbers(cores: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(sorted(number for core in cores for number in core))
