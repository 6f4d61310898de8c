"""A missing value with its reason: never a zero, never NaN."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Missing:
    """No value, and why. ``infinite``: it is known to exceed every bound, since requests failed."""

    reason: str
    infinite: bool = False


Value = float | Missing
