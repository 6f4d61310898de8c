"""The findings of the rules for each subject, and those that several subjects share."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from prony.diagnosis.conclusion import typical
from prony.diagnosis.evidence import Finding
from prony.diagnosis.rules import RULES
from prony.model.json_codec import INLINE, at
from prony.model.shown import INTERNAL


@dataclass(frozen=True, slots=True)
class SubjectFinding:
    """A finding about a subject: the typical one of its rule, and the number of trials that have it.

    The results hold them in the order of the rules.
    """

    subject: str
    finding: Finding = field(metadata=INLINE)
    trials: int
    """In how many of its trials it was."""
    of: int


@dataclass(frozen=True, slots=True)
class SharedFinding:
    """The same finding of one subject or several, over all of their trials."""

    subjects: tuple[str, ...]
    finding: Finding = field(metadata=INTERNAL)
    trials: int
    """In how many of their trials it was."""
    of: int
    found: tuple[int, ...] = field(metadata=at("findings"))
    """Of each subject, as places in the results' findings."""


def merged(trials: Iterable[tuple[str, Sequence[Finding]]]) -> tuple[SubjectFinding, ...]:
    """Return the findings about each subject: the typical one of each rule, and in how many trials it occurs.

    ``trials``: of each its subject, and what was found in it.
    """
    by_subject: dict[str, list[Sequence[Finding]]] = {}
    for subject, found in trials:
        by_subject.setdefault(subject, []).append(found)
    every = (
        (subject, of, typical([[one for one in found if one.rule == rule] for found in of]))
        for rule in RULES
        for subject, of in by_subject.items()
    )
    return tuple(
        SubjectFinding(subject, one.finding, one.trials, len(of))
        for subject, of, one in every
        if one is not None
    )


def shared(findings: Iterable[SubjectFinding]) -> tuple[SharedFinding, ...]:
    """Return the findings that say the same of several subjects together, in the order of the first."""
    together: dict[object, list[tuple[int, SubjectFinding]]] = {}
    for place, found in enumerate(findings):
        together.setdefault(found.finding.alike, []).append((place, found))
    return tuple(
        SharedFinding(
            tuple(found.subject for _, found in alike),
            alike[0][1].finding,
            sum(found.trials for _, found in alike),
            sum(found.of for _, found in alike),
            tuple(place for place, _ in alike),
        )
        for alike in together.values()
    )
