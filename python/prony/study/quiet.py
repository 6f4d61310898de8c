"""Waits a little before a trial while other programs take the CPUs: a burst ends, and some never do."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from prony.analysis.environment_faults import MOST_OTHER_LOAD
from prony.host.facts.activity import Activity, watch_machine
from prony.model.workload import DurationStop, Workload
from prony.study.base import StudyListener
from prony.units import seconds

_WINDOW_S = 1.0
_MOST_OF_TRIAL_S = 10.0
_MOST_OF_STUDY_S = 60.0
_NAMED = 3


@dataclass(slots=True)
class Patience:
    """How long a study still waits for quiet, all trials together. ``look``: watches the machine so long.
    ``busiest``: the programs for which it waited in vain, by name, with how often.
    """

    left_s: float = _MOST_OF_STUDY_S
    look: Callable[[float], Activity] = watch_machine
    busiest: Counter[str] = field(default_factory=Counter)

    def wait(self, load: Workload, listener: StudyListener) -> bool:
        """Return whether other programs leave the CPUs alone, after as long as waiting is worth: 10 s, what
        the trial itself takes, and what is left for the study.
        """
        most_s = min(_MOST_OF_TRIAL_S, _length_s(load), self.left_s)
        waited_s, seen = 0.0, self.look(_WINDOW_S / 4)
        while _is_busy(seen) and waited_s < most_s:
            listener.paused(most_s - waited_s, f"the next trial ({_names(seen)})")
            window_s = min(_WINDOW_S, most_s - waited_s)
            seen = self.look(window_s)
            waited_s += window_s
        self.left_s -= waited_s
        if _is_busy(seen):
            self.busiest.update(seen.busiest)
        return not _is_busy(seen)

    def in_vain(self) -> str | None:
        """Return which programs took the CPUs, and what to do about it; null: none did."""
        if not self.busiest:
            return None
        names = ", ".join(name for name, _ in self.busiest.most_common(_NAMED))
        return (
            f"other programs took the CPUs ({names}): end them, and type the command again for exact figures"
        )


def _length_s(load: Workload) -> float:
    """Return how long a load takes; of one with a number of requests, that is not known."""
    stop = load.stop
    return seconds(load.warmup_ns + stop.duration_ns) if isinstance(stop, DurationStop) else _MOST_OF_TRIAL_S


def _is_busy(seen: Activity) -> bool:
    return seen.cpu.get("busy", 0.0) > MOST_OTHER_LOAD


def _names(seen: Activity) -> str:
    """Return who takes the CPUs, such as ``chromium uses 31 % of a CPU``."""
    each = [f"{name} uses {100 * share:.0f} % of a CPU" for name, share in seen.busiest.items()]
    return ", ".join(each[:1]) or "short-lived programs run"
