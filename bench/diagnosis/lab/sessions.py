"""The sessions of a campaign: what was measured when, on which machine; and which of it counts. Pure.

*Definition*: a plant is measured whole in one session, and counts from one: of those that planted what the
plan says now, the one with the most pairs that nothing disturbed, of equals the first. What the rules named
plays no part in it. It is known where each side has as many undisturbed trials as are asked for.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lab.cause import Plant
from lab.kept import Kept


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """When a session began (Unix time), the version of Prony, and which machine it was: facts by name, in
    words.

    ``machine_key``: equal for machines whose figures may be compared.
    """

    began_unix_s: int
    prony: str
    machine_key: str
    machine: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Session:
    """The trials of one session. ``facts`` null: not kept."""

    facts: SessionFacts | None
    trials: tuple[Kept, ...]


def trials_that_count(
    sessions: Sequence[Session], plants: Iterable[Plant]
) -> tuple[tuple[Kept, ...], tuple[str, ...]]:
    """Return the trials that count, and the names of plants of which all trials are of an earlier form."""
    found: list[Kept] = []
    outdated: list[str] = []
    by_session = [_by_plant(one.trials) for one in sessions]
    for plant in plants:
        every = [each[plant.name] for each in by_session if plant.name in each]
        current = [trials for trials in every if all(one.planted in ("", plant.digest) for one in trials)]
        if current:
            found += max(current, key=_undisturbed_pairs)
        elif every:
            outdated.append(plant.name)
    return tuple(found), tuple(outdated)


def is_known(plant: Plant, trials: Iterable[Kept], blocks: int) -> bool:
    """Return whether both sides of a plant have as many undisturbed trials as there are ``blocks``."""
    return _undisturbed_pairs([one for one in trials if one.plant == plant.name]) >= blocks


def spread_out(plants: Sequence[Plant]) -> tuple[Plant, ...]:
    """Return plants so that a campaign that is broken off has some of every cause: one of each cause in turn,
    and last those that are not held out.
    """
    by_cause: dict[str, list[Plant]] = {}
    for plant in plants:
        by_cause.setdefault(plant.cause.name, []).append(plant)
    ranked = [
        (plant.is_calibrated_on, rank, place, plant)
        for place, each in enumerate(by_cause.values())
        for rank, plant in enumerate(sorted(each, key=lambda one: one.is_calibrated_on))
    ]
    return tuple(plant for *_, plant in sorted(ranked, key=lambda one: one[:3]))


def _by_plant(trials: Iterable[Kept]) -> dict[str, list[Kept]]:
    found: dict[str, list[Kept]] = {}
    for one in trials:
        found.setdefault(one.plant, []).append(one)
    return found


def _undisturbed_pairs(trials: Iterable[Kept]) -> int:
    trials = tuple(trials)
    blocks = [
        {one.block for one in trials if one.healthy is healthy and not one.disturbed}
        for healthy in (True, False)
    ]
    return len(blocks[0] & blocks[1])
