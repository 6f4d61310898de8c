"""The progress of a study, on standard error: live on a terminal, a line for each event elsewhere.

It must cost little, because it runs on the generator's CPUs.
"""

import time
from collections import deque
from collections.abc import Collection
from typing import Self

from prony.catalog.install.prepare import EnvironmentProgress
from prony.cli.load_progress import LiveLine, progress_bar
from prony.core.units import format_count, format_rate
from prony.figures.account import Tally, rates_of, tally
from prony.figures.validity import disturbed_reach
from prony.model.json_codec import Json
from prony.model.plan import Cell
from prony.model.trial import Failed, Invalid, Ok, Trial, TrialRole
from prony.study import StudyListener

_BAR_WIDTH = 24


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(max(0.0, seconds)), 60)
    return f"{minutes}:{rest:02d}"


class StudyProgress(StudyListener):
    """The progress of a study: environments, then trials: the running one, those left, the time left. Of so
    many first blocks each trial's line stays (``shown_blocks``).
    """

    def __init__(self, trials: int, estimate_s: float, shown_blocks: int = 0) -> None:
        self._line = LiveLine()
        self._trials = trials
        self._shown_blocks = shown_blocks
        self._done = 0
        self._lengths: deque[float] = deque(maxlen=40)
        self._estimate_s = estimate_s
        self._began = time.monotonic()
        self._running = ""
        self._block, self._with_rounds, self._rounds_s = 0, frozenset[int](), 0.0

    def __enter__(self) -> Self:
        self._line.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._line.__exit__()

    def notice(self, text: str) -> None:
        """Print a line that stays."""
        self._line.note(text)

    def environment(self, progress: EnvironmentProgress) -> None:
        """Show the progress of an environment's build."""
        if progress.why:
            self.notice(f"{progress.key} is built again: {progress.why}")
        if progress.unmaintained:
            old = f"CPython {progress.unmaintained} and packages of its time"
            self.notice(f"{progress.key}: {old} have known weaknesses that nobody corrects")
        if progress.state in ("ready", "failed") and progress.seconds >= 1:
            self.notice(f"  {progress.key}: {progress.state} after {progress.seconds:.0f} s")
        else:
            self._line.show(f"preparing {progress.key}: {progress.state}")

    def planned(self, trials: int) -> None:
        """Set the number of trials."""
        self._trials = trials

    def paused(self, left_s: float, words: str) -> None:
        """Show how long the pause still is."""
        self._line.show(f"pause before {words}: {_clock(left_s)} left")

    def rounds_planned(self, blocks: Collection[int], seconds: float) -> None:
        """Set which blocks have rounds, and how long those of one take."""
        self._with_rounds, self._rounds_s = frozenset(blocks), seconds

    def round_started(self, block: int, number: int, rounds: int) -> None:
        """Show the round; without a live line, print a line for the first."""
        self._block = block
        if number == 0:
            self._began = time.monotonic()
            if not self._line.is_live:
                words = f"block {block + 1}: {rounds} rounds of short windows"
                self.notice(f"  {words}  ({_clock(self._left_s())} to go)")
        self._running = f"block {block + 1}  round {number + 1}/{rounds} of short windows"
        self._line.show(self._status(""))

    def trial_started(self, cell: Cell, block: int, blocks: int) -> None:
        """Show the running trial."""
        self._began, self._block = time.monotonic(), max(self._block, block)
        of = f"/{blocks}" if block < blocks else ""
        where = f"block {block + 1}{of}" if blocks else "look"
        self._running = f"{where}  {cell.subject.name}  {cell.describe_load()}"
        self._line.show(self._status(""))

    def trial_event(self, cell: Cell, event: Json) -> None:
        """Show the progress of the load."""
        if event["event"] == "progress":
            counts = (
                f"{event['phase']}  {format_count(event['ok'])} ok  {format_count(event['failed'])} failed"
            )
            self._line.show(self._status(counts))
        del cell

    def trial_ended(self, cell: Cell, trial: Trial) -> None:
        """Count the trial; without a live line, print a line for it."""
        self._done += 1
        # The estimate did not include what the machine disturbed, what was not warm at the first look, and
        # blocks for which rounds alone did not suffice.
        self._trials += trial.attempt > 0 or (trial.role is TrialRole.PILOT and trial.position > 0)
        self._trials = max(self._trials, self._done)
        self._lengths.append(time.monotonic() - self._began)
        what = f"{cell.subject.name}  {cell.describe_load()}: {_outcome(trial)}"
        line = f"  [{self._done}/{self._trials}] {what}"
        is_first = trial.block < self._shown_blocks
        if is_first or not self._line.is_live or not isinstance(trial.outcome, Ok):
            self.notice(f"{line}  ({_clock(self._left_s())} to go)")

    def _left_s(self) -> float:
        each = sum(self._lengths) / len(self._lengths) if self._lengths else self._estimate_s
        rounds = sum(block >= self._block for block in self._with_rounds)
        return (self._trials - self._done) * each + rounds * self._rounds_s

    def _status(self, counts: str) -> str:
        to_go = _clock(self._left_s() - (time.monotonic() - self._began))
        # A study that continues may have nothing left but repeats, which are not planned.
        done = f"{progress_bar(self._done / max(1, self._trials), _BAR_WIDTH)} {self._done}/{self._trials}"
        return f"{done}  {to_go} to go  {self._running}  {counts}"


def _outcome(trial: Trial) -> str:
    match trial.outcome:
        case Ok():
            return f"ok, {_rate(trial)}{_counts(trial)}"
        case Failed(stage, reason):
            return f"failed at {stage}: {reason}"
        case Invalid(reason):
            return f"a bound, {_counts(trial)}: {reason}" if disturbed_reach(trial) else f"invalid: {reason}"


def _rate(trial: Trial) -> str:
    rate = rates_of(trial.recording)["ok_per_s"] if trial.recording else None
    return "" if rate is None else f"{format_rate(rate)}, "


def _counts(trial: Trial) -> str:
    found = tally(trial.recording.account) if trial.recording else Tally()
    failed = f", {format_count(found.lost)} failed" if found.lost else ""
    return f"{format_count(found.ok)} answered{failed}"
