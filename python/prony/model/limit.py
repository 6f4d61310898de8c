"""Whether a generator, and not the server, set the figures of a trial: how sure that is, and the evidence.

>>> Limit(LimitKind.BUSY, share=0.95).numbers
{'share': 0.95}
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum

from prony.model.json_codec import OPTIONAL, ShapeError


class Limited(StrEnum):
    """Whether the generator set the figures."""

    NO = "no"
    """Nothing says so."""
    SUSPECT = "suspect"
    """It may have moved them."""
    YES = "yes"
    """It did."""


class LimitKind(StrEnum):
    """What of the generator was the limit, with the numbers that the kind has."""

    IN_FLIGHT = "in_flight"
    """The most requests in flight, ``connections``, were reached ``at_ns`` after the window's opening."""
    PORTS = "ports"
    """So many ``requests`` found no free port on this side."""
    DESCRIPTORS = "descriptors"
    """So many ``requests`` found no free descriptor."""
    BUFFERS = "buffers"
    """So many ``requests`` found no memory in the kernel."""
    THROTTLED = "throttled"
    """A quota of CPU stopped a thread for so large a ``share`` of the window."""
    BUSY = "busy"
    """A thread worked for so large a ``share`` of the window."""
    KEPT_WAITING = "kept_waiting"
    """Others had the CPU of a thread for so large a ``share`` of the window, ``wait_ns`` at a time;
    ``late_share`` of the replies: those that it took only then."""
    LATE = "late"
    """The send lag at this ``percentile``, ``lag_ns``, is so large a ``share`` of the latency there."""
    NEAR_CEILING = "near_ceiling"
    """The throughput is so large a ``share`` of what it can reach on this machine, ``ceiling_per_s``."""
    RATE_MISSED = "rate_missed"
    """Of what was due, so large a ``share`` was not sent in the window; ``sent_per_s`` was."""


_NEEDED: Mapping[LimitKind, tuple[str, ...]] = {
    LimitKind.IN_FLIGHT: ("connections", "at_ns"),
    LimitKind.PORTS: ("requests",),
    LimitKind.DESCRIPTORS: ("requests",),
    LimitKind.BUFFERS: ("requests",),
    LimitKind.THROTTLED: ("share",),
    LimitKind.BUSY: ("share",),
    LimitKind.KEPT_WAITING: ("share",),
    LimitKind.LATE: ("lag_ns",),
    LimitKind.NEAR_CEILING: ("share", "ceiling_per_s"),
    LimitKind.RATE_MISSED: ("share", "sent_per_s"),
}


@dataclass(frozen=True, slots=True)
class Limit:
    """One piece of evidence that a generator was the limit. *Units*: shares 0 to 1, times nanoseconds, rates
    per second; null where the kind has none.
    """

    kind: LimitKind
    level: Limited = Limited.SUSPECT
    share: float | None = field(default=None, metadata=OPTIONAL)
    lag_ns: int | None = field(default=None, metadata=OPTIONAL)
    wait_ns: int | None = field(default=None, metadata=OPTIONAL)
    late_share: float | None = field(default=None, metadata=OPTIONAL)
    percentile: float | None = field(default=None, metadata=OPTIONAL)
    requests: int | None = field(default=None, metadata=OPTIONAL)
    connections: int | None = field(default=None, metadata=OPTIONAL)
    at_ns: int | None = field(default=None, metadata=OPTIONAL)
    sent_per_s: float | None = field(default=None, metadata=OPTIONAL)
    ceiling_per_s: float | None = field(default=None, metadata=OPTIONAL)

    def __post_init__(self) -> None:
        for name in _NEEDED[self.kind]:
            if getattr(self, name) is None:
                raise ShapeError(f"a number, as the kind is {self.kind}", None, name)

    @property
    def numbers(self) -> Mapping[str, float]:
        """The numbers that the kind has, by name."""
        known = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in _NO_NUMBERS}
        return {name: value for name, value in known.items() if value is not None}


_NO_NUMBERS = frozenset(("kind", "level"))


@dataclass(frozen=True, slots=True)
class GeneratorVerdict:
    """Whether a generator set the figures, and all that says so, the strongest first."""

    limited: Limited = Limited.NO
    evidence: tuple[Limit, ...] = ()

    @property
    def strongest(self) -> Limit | None:
        """What says it most clearly; None where nothing does."""
        return self.evidence[0] if self.evidence else None
