"""What becomes of a load that loses a generator. Pure.

>>> OnLoss("partial").value
'partial'
"""

from enum import StrEnum


class OnLoss(StrEnum):
    """Nothing, or the account of the others."""

    INVALID = "invalid"
    PARTIAL = "partial"
