"""Whether something can be measured on a machine.

>>> Availability.lacking("wrk").is_here, READY.is_here
(False, True)
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class AvailabilityKind(StrEnum):
    """What is left to do: nothing, what Prony does itself, or what only the machine's owner can do."""

    READY = "ready"
    INSTALLABLE = "installable"
    LACKING = "lacking"


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a server or a generator can be measured; ``lacks``: missing packages and programs."""

    kind: AvailabilityKind
    lacks: tuple[str, ...] = ()

    @property
    def is_here(self) -> bool:
        """Whether the machine has all that Prony does not install itself."""
        return self.kind is not AvailabilityKind.LACKING

    @classmethod
    def lacking(cls, *names: str) -> "Availability":
        """Return that of what lacks these."""
        return cls(AvailabilityKind.LACKING, names)

    @classmethod
    def together(cls, parts: Iterable["Availability"]) -> "Availability":
        """Return that of what is made of ``parts``: what is missing of any, else the least ready."""
        found = tuple(parts)
        missing = tuple(dict.fromkeys(name for one in found for name in one.lacks))
        if missing:
            return cls.lacking(*missing)
        return READY if all(one == READY for one in found) else INSTALLABLE


READY = Availability(AvailabilityKind.READY)
INSTALLABLE = Availability(AvailabilityKind.INSTALLABLE)
