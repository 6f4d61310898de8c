"""A cause that is planted: what must be named, how it hurts, on which servers, how severely.

Pure.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from enum import Enum, StrEnum

from lab.servers import CALIBRATED_ON, RULES_CHANGED_FOR, SERVERS, PlantedServer, ServerKind
from lab.setup import Pair
from prony.core.units import SECOND_NS
from prony.diagnosis.kinds import Symptom


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
    plan that all of it belongs to, null: by server and level. ``cannot``: why it is planted on no server of a
    kind.
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
    cannot: Mapping[ServerKind, str] = field(default_factory=dict)

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
        """What it is for: a severity or a server that is not calibrated on makes it held out, unless a rule
        was changed for what it showed.
        """
        if self.cause.of is not None:
            return self.cause.of
        if self.name in RULES_CHANGED_FOR:
            return PlanPart.CALIBRATION
        first = next(iter(self.cause.levels))
        on_known = self.level == first and self.server.name in CALIBRATED_ON
        return PlanPart.CALIBRATION if on_known else PlanPart.HELD_OUT

    @property
    def is_calibrated_on(self) -> bool:
        """Whether thresholds may be set by it."""
        return self.part is PlanPart.CALIBRATION

    @property
    def pair(self) -> Pair:
        """The fault and its twin."""
        return self.cause.pair(self.server, self.cause.levels[self.level])

    @property
    def digest(self) -> str:
        """Twelve letters that change when what is planted does: then earlier evidence is of another fault.

        Fields that have their usual value are left out, so that a new field changes nothing.
        """
        what = [self.server.name, self.cause.window_ns, _in_full(self.pair)]
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:12]


def _in_full(value: object) -> object:
    """Return a value as JSON has it, without what is usual."""
    match value:
        case Enum():
            return value.value
        case Mapping():
            return {str(name): _in_full(one) for name, one in value.items()}
        case tuple() | list():
            return [_in_full(one) for one in value]
        case _ if is_dataclass(value) and not isinstance(value, type):
            own = {one.name: getattr(value, one.name) for one in fields(value) if not _is_usual(value, one)}
            return {"of": type(value).__name__, **{name: _in_full(one) for name, one in own.items()}}
        case _:
            return value


def _is_usual(value: object, one: "Field[object]") -> bool:
    usual = one.default if one.default_factory is MISSING else one.default_factory()
    return bool(getattr(value, one.name) == usual)
