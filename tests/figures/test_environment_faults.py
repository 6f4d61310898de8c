"""A trial is invalid for what the machine did to it, and not for less."""

from dataclasses import replace

import pytest

from prony.figures.missing import Missing
from prony.figures.validity import (
    environment_fault,
    environment_metrics,
    in_words,
    load_beside_generator,
    other_load,
    steal_share,
)
from prony.model.facts import TrialFacts
from prony.model.trial import Fault, FaultKind, Ok, Trial, TrialRole

SECOND = 1_000_000_000


def counters(*, other_s=0.0, steal_s=0.0, subject_s=6.0, prony_s=3.0, **more):
    """Two CPUs over ten seconds."""
    busy_s = subject_s + prony_s + other_s
    times = {"busy": busy_s, "interrupts": 0.5, "steal": steal_s, "idle": 19.5 - busy_s - steal_s}
    found = {f"cpus.{name}_ns": round(value * SECOND) for name, value in times.items()}
    used = {"subject.cpu_ns": round(subject_s * SECOND), "prony.cpu_ns": round(prony_s * SECOND)}
    return {**found, **used, **more}


def trial(found):
    return Trial(1, 0, 0, 0, TrialRole.SUBJECT, Ok(), 0, 0, counters=found)


def test_a_machine_that_does_nothing_else_has_no_fault():
    assert environment_fault(trial(counters())) is None


def test_a_trial_without_these_counters_has_no_known_fault():
    assert environment_fault(trial({"ListenOverflows": 3})) is None


@pytest.mark.parametrize(("other_s", "share"), [(3.9, None), (4.5, "22%")])
def test_other_programs_on_a_fifth_of_the_cpus_make_a_trial_invalid(other_s, share):
    fault = environment_fault(trial(counters(other_s=other_s)))
    words = f"other programs used {share} of the CPUs of server and generator"
    assert (fault and in_words(fault)) == (words if share else None)


@pytest.mark.parametrize(("steal_s", "invalid"), [(1.9, False), (2.1, True)])
def test_a_tenth_of_stolen_time_makes_a_trial_invalid(steal_s, invalid):
    fault = environment_fault(trial(counters(steal_s=steal_s)))
    assert (fault is not None) is invalid
    assert not invalid or fault.kind is FaultKind.STOLEN_TIME


def test_a_machine_that_slept_makes_a_trial_invalid():
    asleep = counters(**{"machine.suspended_ns": 2 * SECOND})
    assert environment_fault(trial(asleep)) == Fault(FaultKind.SLEPT, slept_ns=2 * SECOND)


def test_what_only_the_control_groups_saw_is_the_subjects():
    found = counters(other_s=5.0, **{"cgroup.server.cpu_ns": 9 * SECOND, "cgroup.db.cpu_ns": 2 * SECOND})
    assert other_load(found) == 0
    assert environment_fault(trial(found)) is None


def test_the_kernels_two_books_may_differ_without_a_negative_load():
    assert other_load(counters(other_s=-0.3)) == 0


def test_shares_are_of_all_the_trials_cpus():
    found = counters(other_s=2.0, steal_s=1.0)
    assert (other_load(found), steal_share(found)) == (pytest.approx(0.1), pytest.approx(0.05))
    assert environment_metrics(trial(found)) == {"other_load_percent": pytest.approx(10)}


@pytest.mark.parametrize(
    ("busy_s", "share"),
    [(None, 0.0), (2.9, 0.0), (4.0, 0.05), (9.0, 0.1)],
    ids=["unknown", "own", "some", "all"],
)
def test_what_ran_beside_the_generator_is_what_it_and_prony_did_not_do_on_its_cpus(busy_s, share):
    busy = {} if busy_s is None else {"generator_cpus.busy_ns": round(busy_s * SECOND)}
    found = counters(other_s=2.0, prony_s=3.0, **busy)
    assert load_beside_generator(trial(found)) == pytest.approx(share)


@pytest.mark.parametrize(("strays", "share"), [(None, 0.1), (0, 0.1), (1, 0.0)])
def test_what_strayed_to_the_generators_cpus_is_no_other_program_there(strays, share):
    found = trial(counters(other_s=2.0, prony_s=3.0, **{"generator_cpus.busy_ns": 9 * SECOND}))
    strayed = replace(found, facts=TrialFacts(strays=strays))
    assert load_beside_generator(strayed) == pytest.approx(share)


@pytest.mark.parametrize("name", ["cpus.busy_ns", "subject.cpu_ns", "prony.cpu_ns", "cpus.idle_ns"])
def test_without_one_of_the_figures_there_is_no_load_and_a_reason(name):
    found = counters()
    del found[name]
    assert isinstance(other_load(found), Missing)
