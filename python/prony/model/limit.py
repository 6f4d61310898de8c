"""Why a generator, and not the server, may have set the figures of a trial: a kind, and its number.

>>> Limit(LimitKind.BUSY, share=0.95).numbers
{'share': 0.95}
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from prony.model.shapes import OPTIONAL, ShapeError

__all__ = ["Limit", "LimitKind"]


class LimitKind(StrEnum):
    """What of the generator was the limit."""

    BUSY = "busy"
    """A thread worked for so large a ``share`` of the window."""
    KEPT_WAITING = "kept_waiting"
    """Others had the CPU of a thread for so large a ``share`` of the window."""
    LATE = "late"
    """One request in a hundred went out more than ``lag_ns`` late."""
    OTHER = "other"
    """What its ``reason`` says: a generator has another limit than these."""


@dataclass(frozen=True, slots=True)
class Limit:
    """What limited a generator. *Units*: ``share`` 0 to 1, ``lag_ns`` nanoseconds; null where the kind has
    none.
    """

    kind: LimitKind
    share: float | None = None
    lag_ns: int | None = None
    reason: str = field(default="", metadata=OPTIONAL)

    def __post_init__(self) -> None:
        needed = {LimitKind.BUSY: "share", LimitKind.KEPT_WAITING: "share", LimitKind.LATE: "lag_ns"}
        name = needed.get(self.kind)
        if name is not None and getattr(self, name) is None:
            raise ShapeError(f"a number, as the kind is {self.kind}", None, name)

    @property
    def numbers(self) -> Mapping[str, float]:
        """The numbers that the kind has, by name."""
        known = {"share": self.share, "lag_ns": self.lag_ns}
        return {name: value for name, value in known.items() if value is not None}
