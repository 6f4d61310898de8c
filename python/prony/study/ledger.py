"""What a study has measured so far, by turn: no trial is run twice, and disturbed ones are repeated."""

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from prony.archive import ArchiveWriter
from prony.figures.validity import disturbed_reach
from prony.model.facts import TrialFacts
from prony.model.observation import Slice
from prony.model.trial import Fault, Outcome, Trial, TrialRole
from prony.plan.order import Key, Turn


@dataclass(frozen=True, slots=True)
class ArchivedTrial:
    """What is remembered of an archived trial; ``length_ns``: how long it took until ``ended_unix_ns``.
    ``is_bounded``: it was disturbed, and its figures are bounds.
    """

    outcome: Outcome
    fault: Fault | None
    is_bounded: bool
    facts: TrialFacts
    length_ns: int
    ended_unix_ns: int
    has_slices: bool = False

    @property
    def is_disturbed(self) -> bool:
        """Whether the environment disturbed it."""
        return self.fault is not None and self.fault.kind.is_of_environment


def entry_of(trial: Trial) -> tuple[Key, ArchivedTrial]:
    """Return a trial's key, and what is remembered of it."""
    key = trial.cell_id, trial.block, trial.position, trial.attempt, trial.role
    is_bounded = disturbed_reach(trial) is not None
    return key, ArchivedTrial(
        trial.outcome,
        trial.fault,
        is_bounded,
        trial.facts,
        length_of(trial),
        trial.ended_unix_ns,
        has_slices=bool(trial.slices),
    )


def length_of(trial: Trial) -> int:
    """Return how long a trial took with its slices, in nanoseconds."""
    return trial.ended_unix_ns - trial.started_unix_ns + length_of_slices(trial.slices)


def length_of_slices(slices: Iterable[Slice]) -> int:
    """Return how long turns in rounds took, in nanoseconds."""
    return sum(one.ended_ns - one.began_ns for one in slices)


@dataclass(slots=True)
class Ledger:
    """The archive as the measuring side sees it: what it holds, and where to add trials. ``more_ns``: what
    this run took beside them.
    """

    writer: ArchiveWriter
    entries: dict[Key, ArchivedTrial] = field(default_factory=dict)
    more_ns: int = 0

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Within the block all time counts as measured: that in which servers start for rounds too."""
        began_ns, before_ns = time.monotonic_ns(), self.measured_ns
        yield
        self.more_ns += max(0, time.monotonic_ns() - began_ns - (self.measured_ns - before_ns))

    def has(self, turn: Turn) -> bool:
        """Return whether the turn's trial is in the archive."""
        return turn.key in self.entries

    def append(self, *trials: Trial) -> None:
        """Archive trials together; when this returns, they are on the disk."""
        self.writer.append_together(trials)
        self.entries |= dict(map(entry_of, trials))

    def append_slices(self, block: int, slices: Mapping[int, Sequence[Slice]]) -> None:
        """Archive what the rounds of a block showed, by cell."""
        self.writer.append_slices(block, slices)
        for cell_id, each in slices.items():
            attempts = [
                key for key in self.entries if (key[0], key[1], key[4]) == (cell_id, block, TrialRole.SUBJECT)
            ]
            if attempts:
                last = max(attempts, key=lambda key: key[3])
                entry = self.entries[last]
                length_ns = entry.length_ns + length_of_slices(each)
                self.entries[last] = replace(entry, has_slices=bool(each), length_ns=length_ns)

    def disturbed(self, turns: Iterable[Turn]) -> tuple[Turn, ...]:
        """Return those of ``turns`` whose trial the environment disturbed."""
        return tuple(turn for turn in turns if self.has(turn) and self.entries[turn.key].is_disturbed)

    def latest(self, turn: Turn) -> ArchivedTrial:
        """Return the last attempt at a turn."""
        cell, block, _, _, role = turn.key
        attempts = [
            (key[3], entry)
            for key, entry in self.entries.items()
            if (key[0], key[1], key[4]) == (cell, block, role)
        ]
        return max(attempts, key=lambda one: one[0])[1]

    def has_after(self, block: int) -> bool:
        """Return whether the archive holds a trial of a later block: then this one was not the last."""
        return any(key[1] > block for key in self.entries)

    def has_slices(self, block: int, cells: Collection[int]) -> bool:
        """Return whether the rounds of these cells in this block have been measured."""
        own = (entry for key, entry in self.entries.items() if key[1] == block and key[0] in cells)
        return any(entry.has_slices for entry in own)

    def has_any(self, block: int) -> bool:
        """Return whether the archive holds a trial of this block."""
        return any(key[1] == block for key in self.entries)

    @property
    def last_ended_ns(self) -> int:
        """When the last trial ended, of this run or an earlier one (Unix time); 0 before the first."""
        return max((entry.ended_unix_ns for entry in self.entries.values()), default=0)

    @property
    def measured_ns(self) -> int:
        """How long all trials took together, including those of earlier runs, and what came with rounds."""
        return self.more_ns + sum(entry.length_ns for entry in self.entries.values())

    @property
    def pilot_ns(self) -> int:
        """How long the pilot's trials of these took."""
        return sum(entry.length_ns for key, entry in self.entries.items() if key[-1] is TrialRole.PILOT)
