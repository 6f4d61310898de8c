"""A missing value with its reason: never a zero, never NaN."""

from dataclasses import dataclass, field

from prony.model.json_codec import at
from prony.model.shown import INTERNAL


@dataclass(frozen=True, slots=True)
class Missing:
    """No value, and why."""

    reason: str = field(metadata=at("missing"))
    infinite: bool = field(default=False, metadata=INTERNAL)
    """It is known to exceed every bound, since requests failed."""


Value = float | Missing
