"""On which servers each cause is planted, by kind, and why a kind of server cannot have it. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lab.cause import PlantedCause
from lab.servers import CALIBRATED_ON, SERVERS, ServerKind


@dataclass(frozen=True, slots=True)
class Coverage:
    """A cause, the names of the servers on which it is planted, by kind, and why not on the other kinds.

    ``calibrated_on``: those servers by whose trials of the first severity thresholds may be set.
    """

    cause: PlantedCause
    servers: Mapping[ServerKind, tuple[str, ...]]
    calibrated_on: frozenset[str]

    @property
    def cannot(self) -> Mapping[ServerKind, str]:
        """Why kinds of servers have no plant of it."""
        return self.cause.cannot


def coverage_of(causes: Iterable[PlantedCause]) -> tuple[Coverage, ...]:
    """Return where each cause of the campaign is planted; the museum's cases have servers of their own."""
    return tuple(_of(cause) for cause in causes if cause.of is None)


def _of(cause: PlantedCause) -> Coverage:
    by_kind = {
        kind: tuple(name for name in cause.servers if SERVERS[name].kind is kind) for kind in ServerKind
    }
    used = {kind: names for kind, names in by_kind.items() if names}
    return Coverage(cause, used, CALIBRATED_ON.intersection(cause.servers))
