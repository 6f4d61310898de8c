"""What becomes of a load that loses a generator. Pure.

>>> OnLoss("partial").value
'partial'
"""

from enum import StrEnum

__all__ = ["OnLoss"]


class OnLoss(StrEnum):
    """Nothing, or the account of the others."""

    INVALID = "invalid"
    PARTIAL = "partial"
