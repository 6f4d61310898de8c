"""A close look: what it sees, and whether it agrees with what was named."""

from dataclasses import replace

import pytest

from diagnosis.test_conclusion import concluded, loaded
from diagnosis.test_rules import CELL
from golden import build
from prony.diagnosis.conclusion import confirmed
from prony.diagnosis.confirmation import Agreement, Confirmation, agreement_of
from prony.diagnosis.cpu_time import ONE_CORE_FULL, ONE_THREAD_FULL
from prony.diagnosis.evidence import Evidence
from prony.diagnosis.machine import OTHERS_RAN
from prony.diagnosis.waiting import SLOTS_BUSY
from prony.model.facts import CloseView
from prony.model.observation import ThreadSchedule
from prony.model.trial import Failed
from prony.report.document import Notes, Paragraph
from prony.report.why import confirmation_blocks

SECOND = build.SECOND


def thread(running_s, preempted_s=0.0, blocked_s=0.0, pid=1, tid=1):
    times = (round(one * SECOND) for one in (running_s, preempted_s, blocked_s))
    return ThreadSchedule(pid, tid, "loop", *times, 0, 3, 4)


def look(*threads, **counters):
    """A trial of one second in which each of these threads was watched."""
    trial = loaded()
    names = ("running", "preempted", "blocked", "unknown")
    sums = {f"switches.{name}_ns": sum(getattr(one, f"{name}_ns") for one in threads) for name in names}
    watched = sums | {"switches.threads": len(threads), "switches.lost": 0} if threads else {}
    named = {name.replace("__", "."): value for name, value in counters.items()}
    return replace(
        trial,
        counters=trial.counters | watched | named,
        facts=replace(trial.facts, close=CloseView(1, threads)),
    )


def seen(trial, diagnosis=None):
    return confirmed(diagnosis or concluded(loaded()), Evidence(CELL, trial)).confirmation


def words(found):
    blocks = list(confirmation_blocks(found, ""))
    notes = [str(one) for block in blocks if isinstance(block, Notes) for _, one in block.items]
    return " ".join([*(str(block.text) for block in blocks if isinstance(block, Paragraph)), *notes])


def test_the_shares_of_all_threads_and_their_cores_are_those_of_the_window():
    found = seen(look(thread(0.1, 0.1, 0.8), thread(0.3, 0.0, 0.7, tid=2)))
    assert (found.running, found.preempted, found.blocked) == pytest.approx((0.2, 0.05, 0.75))
    assert (found.running_cores, found.preempted_cores) == pytest.approx((0.4, 0.1))
    assert (found.threads, found.fullest_cores) == (2, pytest.approx(0.4))


def test_threads_that_sleep_confirm_that_workers_and_threads_are_all_busy():
    diagnosis = concluded(loaded())
    assert diagnosis.cause_kind is SLOTS_BUSY
    assert seen(look(thread(0.05, 0.0, 0.95)), diagnosis).agreement is Agreement.CONFIRMS
    assert seen(look(thread(0.95, 0.0, 0.05)), diagnosis).agreement is Agreement.CONTRADICTS
    assert seen(look(thread(0.2, 0.5, 0.3)), diagnosis).agreement is Agreement.CONTRADICTS


def test_full_cpus_are_confirmed_by_threads_that_ran_all_the_time():
    diagnosis = concluded(loaded(cores=0.98, in_flight=2.0))
    assert seen(look(thread(0.95)), diagnosis).agreement is Agreement.CONFIRMS
    assert seen(look(thread(0.4, 0.0, 0.6)), diagnosis).agreement is Agreement.CONTRADICTS
    assert seen(look(thread(0.8, 0.0, 0.2)), diagnosis).agreement is Agreement.SILENT


@pytest.mark.parametrize(
    ("held", "agreement"),
    [(95, Agreement.CONFIRMS), (60, Agreement.SILENT), (30, Agreement.CONTRADICTS)],
)
def test_whether_threads_took_turns_is_told_by_their_lock(held, agreement):
    found = seen(look(gil__looks=100, gil__held=held))
    assert found.held == held / 100
    assert agreement_of(found, ONE_CORE_FULL, 2) is agreement


def test_other_programs_leave_threads_ready_and_without_a_cpu():
    for preempted_s, agreement in ((0.4, Agreement.CONFIRMS), (0.05, Agreement.CONTRADICTS)):
        found = seen(look(thread(0.5, preempted_s, 0.1)))
        assert agreement_of(found, OTHERS_RAN, 1) is agreement


def test_one_core_is_that_of_the_fullest_process_and_not_of_all():
    two = seen(look(thread(0.5, pid=1), thread(0.5, pid=2, tid=2)))
    one = seen(look(thread(0.5, pid=1), thread(0.5, pid=1, tid=2)))
    assert agreement_of(two, ONE_THREAD_FULL, 2) is Agreement.CONTRADICTS
    assert agreement_of(one, ONE_THREAD_FULL, 2) is Agreement.CONFIRMS


@pytest.mark.parametrize(
    "found",
    [
        Confirmation(Agreement.SILENT),
        Confirmation(Agreement.SILENT, unknown=0.3, running_cores=0.0, preempted_cores=0.0),
    ],
    ids=["nothing was seen", "records were lost"],
)
def test_what_was_not_seen_says_nothing(found):
    assert agreement_of(found, SLOTS_BUSY, 1) is Agreement.SILENT


def test_a_look_that_failed_or_that_the_kernel_refused_says_why():
    failed = replace(look(thread(0.1)), outcome=Failed("load", "it ended"))
    assert seen(failed).missing == ("the trial does not count",)
    refused = replace(look(), missing={"switches.threads": "the kernel refuses"})
    found = seen(refused)
    assert (found.agreement, found.missing) == (Agreement.SILENT, ("the kernel refuses",))
    assert "Not seen: the kernel refuses." in words(found)


def test_a_subject_without_a_look_has_no_confirmation():
    assert concluded(loaded()).confirmation is None
    assert confirmed(concluded(loaded()), Evidence(CELL, loaded())).confirmation is None


def test_a_look_in_words_says_what_threads_did_and_what_that_means():
    said = words(seen(look(thread(0.05, 0.0, 0.95))))
    assert "confirms it: of their time its 1 thread ran 5% (0.05 cores)" in said
    assert "speaks against it" in words(seen(look(thread(0.95, 0.0, 0.05))))
