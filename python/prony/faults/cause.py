"""A cause that is planted: what must be named, how it hurts, on which servers, how severely.

Pure. Must not know how a plant is measured or judged.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from prony.diagnosis import Symptom
from prony.faults.servers import CALIBRATED_ON, SERVERS, PlantedServer
from prony.faults.setup import Pair
from prony.units import SECOND_NS

__all__ = ["Harm", "PlanPart", "Plant", "PlantedCause"]


class Harm(StrEnum):
    """What a fault makes worse: against its twin in the same block, each plant must."""

    RATE = "valid replies a second"
    TAIL = "the 99th percentile of the latency"
    FAILED = "the share of failed requests"
    CPU = "CPU time for a request"
    MEMORY = "growth of memory"


class PlanPart(StrEnum):
    """What a plant is for. Thresholds may be set by what is calibrated on, and only the rest is reported."""

    CALIBRATION = "calibration"
    HELD_OUT = "held out"
    MUSEUM = "museum"
    DOUBLE = "two faults at once"


@dataclass(frozen=True, slots=True)
class PlantedCause:
    """A cause: its ``name``, in words ``title``, the ``rule`` that is to find it, and the kinds of findings
    that name it. ``levels``: how severe, the first for calibration. ``pair`` makes of a server and a level
    the fault and its twin. ``window_ns``: how long each trial is; ``of``: the part of the
    plan that all of it belongs to, null: by server and level.
    """

    name: str
    title: str
    rule: str
    named: frozenset[Symptom]
    harm: Harm
    servers: tuple[str, ...]
    levels: Mapping[str, int]
    pair: Callable[[PlantedServer, int], Pair]
    window_ns: int = 6 * SECOND_NS
    of: PlanPart | None = None

    def plants(self) -> "Iterator[Plant]":
        """Yield the plants of this cause, server by server."""
        for server in self.servers:
            for level in self.levels:
                yield Plant(self, SERVERS[server], level)


@dataclass(frozen=True, slots=True)
class Plant:
    """One fault of a kind, on one server, at one severity."""

    cause: PlantedCause
    server: PlantedServer
    level: str

    @property
    def name(self) -> str:
        """Its name, also that of its archive: cause, server and severity."""
        return f"{self.cause.name}-{self.server.name.replace('@', '-behind-')}-{self.level}"

    @property
    def part(self) -> PlanPart:
        """What it is for: a severity or a server that is not calibrated on makes it held out."""
        if self.cause.of is not None:
            return self.cause.of
        first = next(iter(self.cause.levels))
        on_known = self.level == first and self.server.name in CALIBRATED_ON
        return PlanPart.CALIBRATION if on_known else PlanPart.HELD_OUT

    @property
    def pair(self) -> Pair:
        """The fault and its twin."""
        return self.cause.pair(self.server, self.cause.levels[self.level])
