"""One side of a planted fault: what is started, how it is loaded, and what is done to it.

Pure.

>>> PlantedSide("/work?n=200").on(CLOSED).connections
20
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Self

from prony.core.units import SECOND_NS
from prony.model.workload import ClosedLoop, Loop, OpenLoop

CLOSED = ClosedLoop(20)


class NeighbourOf(StrEnum):
    """Whose CPUs a program takes that belongs to nobody."""

    SERVER = "server"
    GENERATOR = "generator"


def closed(connections: int) -> ClosedLoop:
    """Return a closed loop of so many connections."""
    return ClosedLoop(connections)


def open_at(per_s: float, connections: int | None = None) -> OpenLoop:
    """Return an open loop of so many requests a second, over at most so many connections."""
    return OpenLoop(per_s, connections=connections)


@dataclass(frozen=True, slots=True)
class PlantedSide:
    """What differs from a server as the catalogue has it, under a load on one page.

    ``environment``: of the app; ``kept_open``: clients offer to keep their connections. ``cpu_quota`` and
    ``memory_bytes``: limits of the server; ``shares_cpus``: server and generator may use every CPU, for
    faults of several cores. ``sysctl``: settings of the kernel in the trial's network.
    ``neighbour``: the share of a CPU that another program takes. ``on_host``: all meet on the host's network,
    for which one with these settings stands in, with a peer of the app at a fixed port; ``carried``: sockets
    in TIME_WAIT that earlier trials have left there.
    """

    path: str
    app: str = "faulty"
    settings: Mapping[str, int | str] = field(default_factory=dict)
    frontend_settings: Mapping[str, int | str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    load: Loop = CLOSED
    kept_open: bool = True
    warmup_ns: int = SECOND_NS
    cpu_quota: float | None = None
    memory_bytes: int | None = None
    shares_cpus: bool = False
    sysctl: Mapping[str, str] = field(default_factory=dict)
    neighbour: float = 0.0
    neighbour_of: NeighbourOf = NeighbourOf.SERVER
    on_host: bool = False
    carried: int = 0

    def on(self, load: Loop) -> Self:
        """Return it under another load."""
        return replace(self, load=load)

    @property
    def connections(self) -> int | None:
        """The connections of its load; None: as many as are needed."""
        return self.load.connections

    def using(self, **settings: int | str) -> Self:
        """Return it with these settings of the server, beside those that it has."""
        return replace(self, settings={**self.settings, **settings})


@dataclass(frozen=True, slots=True)
class Pair:
    """A fault, and its twin without it. ``server``: another one than the cause's own, where the fault needs
    it.
    """

    healthy: PlantedSide
    faulty: PlantedSide
