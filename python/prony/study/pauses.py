"""The pauses between the sessions of a study.

A pause counts from the last trial, so that a study that was killed in one waits only for what is left of it.
Must not know how a block is run.
"""

import time
from collections.abc import Callable

from prony.model.plan import Plan
from prony.study.base import StudyListener
from prony.study.ledger import Ledger
from prony.units import format_duration, seconds

# How often the time that is left is shown.
_STEP_S = 0.25


def with_pauses(
    plan: Plan, ledger: Ledger, listener: StudyListener, run_block: Callable[[int], None]
) -> Callable[[int], None]:
    """Return ``run_block`` with a pause before the first block of each session but the first."""

    def run(block: int) -> None:
        is_first = block % plan.session_blocks == 0
        if block and is_first and plan.design.sessions > 1 and not ledger.has_any(block):
            _pause(plan, block, ledger, listener)
        run_block(block)

    return run


def _pause(plan: Plan, block: int, ledger: Ledger, listener: StudyListener) -> None:
    words = f"session {block // plan.session_blocks + 1} of {plan.design.sessions}"
    pause_ns = plan.design.pause_ns
    # A clock that was set back makes it no longer than asked, and one that is set meanwhile changes nothing.
    left_ns = min(pause_ns, ledger.last_ended_ns + pause_ns - time.time_ns())
    if left_ns <= 0:
        return
    until_s = time.monotonic() + seconds(left_ns)
    at = time.strftime("%H:%M:%S", time.localtime(time.time() + seconds(left_ns)))
    listener.notice(
        f"pause of {format_duration(left_ns)} before {words}, until {at}; Ctrl-C keeps all results"
    )
    while (left_s := until_s - time.monotonic()) > 0:
        listener.paused(left_s, words)
        time.sleep(min(_STEP_S, left_s))
