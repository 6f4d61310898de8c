"""The figures of all rounds."""

from collections import Counter
from dataclasses import dataclass, field

from killing.archives import Kept

_PHASES = ("before the archive", "between its start and its end", "after the last trial")


@dataclass(slots=True)
class Tally:
    """What the rounds have found so far. ``longest_s``: until nothing ran any more."""

    title: str
    rounds: Counter[tuple[str, str]] = field(default_factory=Counter)
    said: int = 0
    archived: int = 0
    resumed: int = 0
    longest_s: float = 0.0
    breaches: list[str] = field(default_factory=list)

    def count(self, kind: str, archived: Kept | None, said: int) -> None:
        """Add a round: what was killed, what the archive holds, how many trials were said to be done."""
        phase = _PHASES[1 + archived.is_finished] if archived else _PHASES[0]
        self.rounds[kind, phase] += 1
        self.said += said
        self.archived += archived.trials if archived else 0

    def text(self) -> str:
        """Return the table and the figures below it."""
        kinds = dict.fromkeys(kind for kind, _ in sorted(self.rounds))
        head = f"{'killed':22}" + "".join(f"{phase:>31}" for phase in _PHASES)
        rows = [f"{kind:22}" + "".join(f"{self.rounds[kind, one]:31}" for one in _PHASES) for kind in kinds]
        return "\n".join(
            [
                self.title,
                head,
                *rows,
                f"trials said to be done: {self.said}; in the archives: {self.archived}",
                f"longest until nothing was left: {self.longest_s:.2f} s",
                f"continued to the end of the same plan: {self.resumed}",
                f"rounds: {self.rounds.total()}; breaches: {len(self.breaches)}",
            ]
        )
