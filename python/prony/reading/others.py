"""Which other programs used the CPUs of a study's trials, and what to type once they are closed.

Names and commands are an archive's, and may be anybody's.

>>> command_of(["prony run two.toml; reboot", "prony run $(reboot)\\x1b"])
"prony run 'two.toml;' reboot"
"""

import shlex
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

from prony.core.safe_text import shortened
from prony.diagnosis.machine import LEAST_OTHERS
from prony.figures.missing import Missing
from prony.figures.validity import other_load
from prony.model.facts import OtherProgram
from prony.model.trial import FaultKind, Trial

_NAMED = 3
_LONGEST_NAME, _LONGEST_COMMAND = 32, 10_000


@dataclass(frozen=True, slots=True)
class BesideOthers:
    """A trial: the ``share`` of its CPUs' time that other programs used, the busiest of them, and whether
    that made its figures bounds, or void.
    """

    share: float
    programs: tuple[OtherProgram, ...]
    spoilt: bool


@dataclass(frozen=True, slots=True)
class Disturbers:
    """What other programs did in the trials beside which they used more than 5 % of the CPUs' time."""

    trials: int
    """How many these are; of several attempts the last counts."""
    of: int
    share: float
    """Of the time of the trials' CPUs, the mean over these trials."""
    busiest: tuple[OtherProgram, ...]
    """The busiest first, with the mean of what each used; empty: not known."""
    spoilt: int
    """In how many they used so much that figures are bounds, or void."""
    command: str
    """What to type for the same study in a new archive, without secrets; empty: not known."""


def beside_others(trial: Trial) -> BesideOthers | None:
    """Return what other programs did beside a trial; None where that is not known."""
    share = other_load(trial.counters)
    if isinstance(share, Missing):
        return None
    spoilt = trial.fault is not None and trial.fault.kind is FaultKind.OTHER_LOAD
    return BesideOthers(share, trial.facts.others[:_NAMED], spoilt)


def disturbers_of(trials: Iterable[BesideOthers | None], commands: Iterable[str]) -> Disturbers | None:
    """Return what other programs did; None where there were none. ``commands``: of the runs, the last first.

    *Assumptions*: a program used no more of the trial's CPUs than all others together: where it ran is not
    known.
    """
    known = [one for one in trials if one is not None]
    beside = [one for one in known if one.share > LEAST_OTHERS]
    if not beside:
        return None
    used = defaultdict[str, float](float)
    for one in beside:
        for program in one.programs:
            name = shortened(program.name, _LONGEST_NAME)
            used[name] += min(one.share, max(0.0, program.share)) / len(beside)
    ranked = sorted(used.items(), key=lambda item: -item[1])
    return Disturbers(
        trials=len(beside),
        of=len(known),
        share=fmean(one.share for one in beside),
        busiest=tuple(OtherProgram(*one) for one in ranked[:_NAMED]),
        spoilt=sum(one.spoilt for one in beside),
        command=command_of(commands),
    )


def command_of(commands: Iterable[str]) -> str:
    """Return the first of these that is a command of Prony's; empty: none is. Nothing in it is of a shell."""
    return next(filter(None, map(_harmless, commands)), "")


def _harmless(command: str) -> str:
    if not command.isprintable() or len(command) > _LONGEST_COMMAND:
        return ""
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    return shlex.join(words) if words[:1] == ["prony"] else ""
