"""D41: more was asked than the server can do: its queue grew all the time.

In an open loop a server that is too slow does not slow its clients. Throughput is then its limit, and latency
grows for as long as the load lasts.
*Source*: queueing theory: without a steady state where arrivals exceed the rate of service.
"""

from itertools import accumulate

from prony.core.units import seconds
from prony.diagnosis.evidence import Confidence, Evidence, Finding, slow_share
from prony.diagnosis.kinds import Advice, Bearing, Consequence, Experiment, Meaning, Symptom
from prony.model.recording import Recording, Second

OF_A_QUEUE = Consequence(
    "of a queue that grows", "latency is the age of a queue that grows: the longer the load, the higher"
)
LOWER_RATE = Experiment(
    "a lower rate", "measure at a lower rate, or with --find-rate; latency no longer grows"
)
ASK_FOR_LESS = Advice("ask for less", "ask for a rate that it can do, or compare throughput in a closed loop")
OVERLOADED = Symptom(
    "more was asked than it can do",
    Meaning(Bearing.ADDS, OF_A_QUEUE, LOWER_RATE, ASK_FOR_LESS),
    "{asked_per_s:rate} were asked for, and it did {done_per_s:rate}: the queue grew to {owed:n request}",
    shared="more was asked for than it can do: its queue grew all the time",
)
"""``asked_per_s``, ``done_per_s``, and how many requests it ``owed`` at the end."""


# What the window still owes at its end, of all that was due: a stall at the end leaves less, or comes at
# once.
_LEAST_OWED = 0.03
_LEAST_REQUESTS = 10
# A queue that grows evenly has half of its length in the middle of the window; one that pages of some length
# keep open has all of it there.
_LEAST_IN_THE_MIDDLE, _MOST_IN_THE_MIDDLE = 0.25, 0.75
_LEAST_SECONDS = 2
_MOST_SLOW = 0.05


def overload(evidence: Evidence) -> list[Finding]:
    """Return a finding when an open loop's unanswered requests grew over the whole window.

    Likely: they were many and did not grow, but requests timed out, which may be all that kept them from it;
    or stages raised the rate, or one of twenty pages took so much of the window, that a steady server may
    have left as many open.
    """
    recording = evidence.trial.recording
    if recording is None or not recording.is_open or not evidence.is_ok:
        return []
    owed, length_ns = _owed(recording), recording.window.length_ns
    if length_ns is None or not _is_long(owed, recording.account.scheduled):
        return []
    grew, lost = _grew(owed), recording.account.count("timed_out")
    if not grew and lost < _LEAST_OWED * recording.account.scheduled:
        return []
    length_s, sure = seconds(length_ns), grew and not _may_be_steady(evidence, recording)
    numbers = {
        "asked_per_s": recording.account.scheduled / length_s,
        "done_per_s": recording.completed.all / length_s,
        "owed": owed[-1],
    }
    return [Finding(OVERLOADED, Confidence.CERTAIN if sure else Confidence.LIKELY, numbers)]


def _owed(recording: Recording) -> list[int]:
    """Return at the end of each whole second of the window how many requests were due and had not ended."""
    whole = round(seconds(recording.window.length_ns or 0))
    own = [one for one in recording.series if one.second < whole]
    return list(accumulate(map(_added, own)))


def _added(one: Second) -> int:
    return one.scheduled - one.ok - one.failed


def _is_long(owed: list[int], due: int) -> bool:
    """Return whether the queue was long at the end, and had been in the middle."""
    if len(owed) < _LEAST_SECONDS or due <= 0:
        return False
    last = owed[-1]
    return last >= max(_LEAST_OWED * due, _LEAST_REQUESTS) and _middle(owed) >= _LEAST_IN_THE_MIDDLE * last


def _grew(owed: list[int]) -> bool:
    """Return whether it went on to grow from the middle to the end."""
    return _middle(owed) <= _MOST_IN_THE_MIDDLE * owed[-1]


def _middle(owed: list[int]) -> int:
    return owed[len(owed) // 2 - 1]


def _may_be_steady(evidence: Evidence, recording: Recording) -> bool:
    return bool(evidence.cell.workload.loop.stages) or slow_share(recording, with_open=True) > _MOST_SLOW
