"""The findings of the rules for each subject, and those that several subjects share.

Must not know words.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from prony.diagnosis import RULES, Finding

__all__ = ["Found", "Shared", "merged", "shared"]


@dataclass(frozen=True, slots=True)
class Found:
    """A finding about a subject: the first of its kind, and the number of trials that have it.

    A Reading holds them in the order of the rules.
    """

    subject: str
    finding: Finding
    trials: int
    of: int


@dataclass(frozen=True, slots=True)
class Shared:
    """The same finding of one subject or several, over all of their trials. ``found``: of each subject, as
    places in the Reading's findings.
    """

    subjects: tuple[str, ...]
    finding: Finding
    trials: int
    of: int
    found: tuple[int, ...]


def merged(findings: Iterable[tuple[str, Finding]], trials: Mapping[str, int]) -> tuple[Found, ...]:
    """Return the findings about each subject: the first of each rule, and how often it occurs.

    ``trials``: how many each subject has.
    """
    first: dict[tuple[str, str], Finding] = {}
    count: dict[tuple[str, str], int] = {}
    for subject, finding in findings:
        key = (subject, finding.rule)
        first.setdefault(key, finding)
        count[key] = count.get(key, 0) + 1
    order = list(RULES)
    return tuple(
        Found(key[0], first[key], count[key], trials[key[0]])
        for key in sorted(first, key=lambda key: order.index(key[1]))
    )


def shared(findings: Iterable[Found]) -> tuple[Shared, ...]:
    """Return the findings that say the same of several subjects together, in the order of the first."""
    together: dict[object, list[tuple[int, Found]]] = {}
    for place, found in enumerate(findings):
        together.setdefault(found.finding.alike, []).append((place, found))
    return tuple(
        Shared(
            tuple(found.subject for _, found in alike),
            alike[0][1].finding,
            sum(found.trials for _, found in alike),
            sum(found.of for _, found in alike),
            tuple(place for place, _ in alike),
        )
        for alike in together.values()
    )
