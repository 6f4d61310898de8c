"""What a rule looks at, and what it says."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from prony.model import Cell, SubjectRecord, Trial

__all__ = ["Confidence", "Evidence", "Finding", "Rule"]


class Confidence(StrEnum):
    """How sure a finding is."""

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One trial, the cell it measured, and its subject as it was resolved (null: not recorded)."""

    cell: Cell
    trial: Trial
    subject: SubjectRecord | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule found: a sentence, the numbers it rests on, and what to change, if anything.

    ``shared``: the sentence without what is of this trial alone, for several subjects that have the same
    finding; null where the sentence is nothing without it.
    """

    rule: str
    confidence: Confidence
    sentence: str
    numbers: Mapping[str, float] = field(default_factory=dict)
    advice: str | None = None
    shared: str | None = None


Rule = Callable[[Evidence], list[Finding]]
"""A rule returns no finding when it has nothing to say, or not the numbers to say it."""
