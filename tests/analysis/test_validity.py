"""One judge says whether a trial counts, and what spoilt it."""

from dataclasses import replace

import pytest

from prony.analysis.validity import Circumstances, in_words, judge
from prony.model import Failed, Fault, FaultKind, Invalid, Ok, Trial, TrialRole
from recordings import recording_of

RECORDING = recording_of(little={"residual": 0.0, "in_flight_integral_ns": 10**9})
MEASURED = Trial(1, 0, 0, 0, TrialRole.SUBJECT, Ok(), 0, 0, recording=RECORDING)
SLEPT = Fault(FaultKind.SLEPT, slept_ns=2_000_000_000)
DISTURBED = replace(MEASURED, counters={"machine.suspended_ns": 2_000_000_000})
GENERATOR = Fault(FaultKind.GENERATOR, text="it was killed")
SANDBOX = Fault(FaultKind.SANDBOX, text="no control group")
LEFT = "it left 2 processes that could not be killed and may still run"


def test_a_trial_that_nothing_spoilt_counts():
    assert judge(MEASURED, Circumstances()) == MEASURED


@pytest.mark.parametrize(("counts", "outcome"), [(False, Invalid(in_words(SLEPT))), (True, Ok())])
def test_a_disturbed_trial_is_flagged_and_counts_only_when_it_is_to(counts, outcome):
    found = judge(DISTURBED, Circumstances(counts_disturbed=counts))
    assert (found.outcome, found.fault) == (outcome, SLEPT)


@pytest.mark.parametrize("broke", [None, GENERATOR, SANDBOX])
def test_what_went_wrong_in_the_subject_is_data_whatever_else_went_on(broke):
    failed = replace(DISTURBED, outcome=Failed("load", "it ended"), recording=None)
    found = judge(failed, Circumstances(broke))
    assert (found.outcome, found.fault) == (Failed("load", "it ended"), None)


@pytest.mark.parametrize("broke", [GENERATOR, SANDBOX, Fault(FaultKind.PRONY, text="KeyError: 'x'")])
def test_what_broke_off_does_not_count_even_where_disturbances_do(broke):
    found = judge(MEASURED, Circumstances(broke, counts_disturbed=True))
    assert (found.outcome, found.fault) == (Invalid(in_words(broke)), broke)


def test_a_generator_that_failed_on_a_disturbed_machine_may_do_better_in_another_attempt():
    found = judge(DISTURBED, Circumstances(GENERATOR))
    assert (found.outcome, found.fault) == (Invalid("the generator: it was killed"), SLEPT)


@pytest.mark.parametrize(
    ("recording", "fault"),
    [
        (None, Fault(FaultKind.NO_RECORDING)),
        (recording_of(window={"interrupted": True}), Fault(FaultKind.INTERRUPTED)),
        (
            recording_of(little={"residual": -0.5, "in_flight_integral_ns": 10**9}),
            Fault(FaultKind.LITTLES_LAW, share=-0.5),
        ),
    ],
)
def test_a_recording_that_is_none_or_contradicts_itself_does_not_count(recording, fault):
    found = judge(replace(MEASURED, recording=recording), Circumstances(counts_disturbed=True))
    assert (found.outcome, found.fault) == (Invalid(in_words(fault)), fault)


@pytest.mark.parametrize(
    ("trial", "broke", "outcome"),
    [
        (MEASURED, None, Failed("stop", LEFT)),
        (DISTURBED, None, Failed("stop", LEFT)),
        (MEASURED, GENERATOR, Invalid(f"the generator: it was killed; {LEFT}")),
    ],
)
def test_processes_that_are_left_spoil_what_comes_after(trial, broke, outcome):
    found = judge(trial, Circumstances(broke, left=2))
    assert (found.outcome, found.fault) == (outcome, broke)


def test_every_kind_of_fault_has_words():
    assert all(in_words(Fault(kind, slept_ns=1, share=0.5, text="x")) for kind in FaultKind)


def test_faults_of_the_environment_are_those_that_another_attempt_may_be_spared():
    around = {kind for kind in FaultKind if kind.is_of_environment}
    assert around == {FaultKind.SLEPT, FaultKind.STOLEN_TIME, FaultKind.OTHER_LOAD, FaultKind.SANDBOX}
