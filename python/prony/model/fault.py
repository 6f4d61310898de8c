"""What spoils a trial that is not the subject's doing. Must not know how it is found, nor its words.

>>> Fault(FaultKind.OTHER_LOAD, share=0.26).kind.is_of_environment
True
"""

from dataclasses import dataclass
from enum import StrEnum


class FaultKind(StrEnum):
    """Where a fault lies. Public: archives hold these names."""

    SLEPT = "slept"
    STOLEN_TIME = "stolen-time"
    OTHER_LOAD = "other-load"
    SANDBOX = "sandbox"
    GENERATOR = "generator"
    NO_RECORDING = "no-recording"
    INTERRUPTED = "interrupted"
    LITTLES_LAW = "littles-law"
    PRONY = "prony"

    @property
    def is_of_environment(self) -> bool:
        """Whether the machine around the trial did it: another attempt may be spared."""
        return self in (FaultKind.SLEPT, FaultKind.STOLEN_TIME, FaultKind.OTHER_LOAD, FaultKind.SANDBOX)


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault with its figures; null: its kind has none.

    ``slept_ns``: how long the machine slept within the window. ``share``: of stolen time and other load, of
    all time of the trial's CPUs (0 to 1); of Little's law, the residual over what was expected (-1 to 1 and
    more). ``text``: what was said by the part that failed; of kinds without such, what came with the fault.
    """

    kind: FaultKind
    slept_ns: int | None = None
    share: float | None = None
    text: str | None = None
