"""Waiting for other programs: a burst is waited for, and a machine that is never quiet costs little."""

from prony.machine.activity import Activity
from prony.model.workload import ClosedLoop, DurationStop, Workload
from prony.study.bench import Patience

SECOND = 1_000_000_000
BUSY, QUIET = Activity({"busy": 0.6}, {"cc1": 0.9}, 0), Activity({"busy": 0.05}, {}, 0)
LOAD = Workload(ClosedLoop(1), DurationStop(30 * SECOND))


class Listener:
    def __init__(self):
        self.said = []

    def paused(self, left_s, words):
        self.said.append((left_s, words))


def looks(*seen):
    """Return a look that sees these one after the other, the last for ever, and what it was asked."""
    left, asked = list(seen), []

    def look(length_s):
        asked.append(length_s)
        return left.pop(0) if len(left) > 1 else left[0]

    return look, asked


def test_on_a_quiet_machine_it_looks_once():
    (look, asked), listener = looks(QUIET), Listener()
    patience = Patience(look=look)
    assert patience.wait(LOAD, listener)
    assert (asked, listener.said, patience.left_s) == ([0.25], [], 60.0)
    assert patience.in_vain("prony run two.toml") is None


def test_a_burst_is_waited_for_and_named():
    (look, asked), listener = looks(BUSY, BUSY, QUIET), Listener()
    patience = Patience(look=look)
    patience.wait(LOAD, listener)
    assert asked == [0.25, 1.0, 1.0]
    assert listener.said[0] == (10.0, "the next trial (cc1 uses 90 % of a CPU)")
    assert patience.left_s == 58.0


def test_a_machine_that_is_never_quiet_costs_ten_seconds_a_trial_and_sixty_in_all():
    (look, asked), listener = looks(BUSY), Listener()
    patience = Patience(look=look)
    waited = []
    for _ in range(8):
        before = len(asked)
        patience.wait(LOAD, listener)
        waited.append(sum(asked[before:]))
    # Each trial is looked at, also once nothing is left to wait.
    assert waited == [10.25] * 6 + [0.25] * 2
    assert patience.in_vain("prony run two.toml") == (
        "other programs took the CPUs (cc1): close them, and for exact figures type: `prony run two.toml`"
    )
    assert patience.in_vain("").endswith("for exact figures type the command again")


def test_no_trial_is_waited_for_longer_than_it_takes():
    look, asked = looks(BUSY)
    Patience(look=look).wait(Workload(ClosedLoop(1), DurationStop(SECOND // 2)), Listener())
    assert asked == [0.25, 0.5]
