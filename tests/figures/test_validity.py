"""One judge says whether a trial counts, and what spoilt it."""

from dataclasses import replace

import pytest

from prony.figures.validity import Circumstances, in_words, judge
from prony.model.trial import Failed, Fault, FaultKind, Invalid, Ok, Trial, TrialRole
from recordings import recording_of

RECORDING = recording_of(little={"residual": 0.0, "in_flight_integral_ns": 10**9})
MEASURED = Trial(1, 0, 0, 0, TrialRole.SUBJECT, Ok(), 0, 0, recording=RECORDING)
SLEPT = Fault(FaultKind.SLEPT, slept_ns=2_000_000_000)
DISTURBED = replace(MEASURED, counters={"machine.suspended_ns": 2_000_000_000})
GENERATOR = Fault(FaultKind.GENERATOR, text="it was killed")
SANDBOX = Fault(FaultKind.SANDBOX, text="no control group")
FAILED = replace(MEASURED, outcome=Failed("load", "it ended"))
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
    assert found.fault == replace(SLEPT, text="the generator: it was killed")
    assert found.outcome == Invalid(f"{in_words(SLEPT)}; the generator: it was killed")


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
        (FAILED, None, Failed("load", f"it ended; {LEFT}")),
    ],
)
def test_processes_that_are_left_spoil_what_comes_after(trial, broke, outcome):
    found = judge(trial, Circumstances(broke, left=2))
    fault = broke and replace(broke, text=f"it was killed; {LEFT}")
    assert (found.outcome, found.fault) == (outcome, fault)


WORDS = {
    FaultKind.SLEPT: "the machine slept for 2.5 s within the window",
    FaultKind.STOLEN_TIME: "the hypervisor gave 25% of the CPUs' time to others",
    FaultKind.OTHER_LOAD: "other programs used 25% of the CPUs of server and generator",
    FaultKind.SANDBOX: "it broke",
    FaultKind.GENERATOR: "the generator: it broke",
    FaultKind.NO_RECORDING: "the generator returned no recording",
    FaultKind.INTERRUPTED: "interrupted",
    FaultKind.LITTLES_LAW: "Little's law is off by +25%: the generator's own figures disagree",
    FaultKind.PRONY: "a fault in Prony: it broke",
}


@pytest.mark.parametrize("kind", FaultKind)
def test_every_kind_of_fault_is_told_in_words_with_its_figure(kind):
    text = "it broke" if "it broke" in WORDS[kind] else None
    assert in_words(Fault(kind, slept_ns=2_500_000_000, share=0.25, text=text)) == WORDS[kind]


def test_what_came_with_a_fault_is_said_after_it():
    fault = Fault(FaultKind.STOLEN_TIME, share=0.25, text=LEFT)
    assert in_words(fault) == f"{WORDS[FaultKind.STOLEN_TIME]}; {LEFT}"


def test_one_process_that_is_left_is_told_in_the_singular():
    found = judge(MEASURED, Circumstances(left=1)).outcome
    assert found == Failed("stop", "it left 1 process that could not be killed and may still run")


def test_a_fault_without_a_figure_has_words_too():
    assert in_words(Fault(FaultKind.SLEPT)) == "the machine slept for 0.0 s within the window"
    assert in_words(Fault(FaultKind.STOLEN_TIME)) == "the hypervisor gave 0% of the CPUs' time to others"


@pytest.mark.parametrize(
    ("residual", "integral_ns", "counts"),
    [(-0.5, 50_000_000, True), (-0.5, 50_000_001, False), (None, 10**9, True), (-0.5, None, True)],
)
def test_littles_law_is_asked_only_where_enough_was_in_flight(residual, integral_ns, counts):
    recording = recording_of(little={"residual": residual, "in_flight_integral_ns": integral_ns})
    assert (judge(replace(MEASURED, recording=recording), Circumstances()).outcome == Ok()) is counts


def test_faults_of_the_environment_are_those_that_another_attempt_may_be_spared():
    around = {kind for kind in FaultKind if kind.is_of_environment}
    assert around == {FaultKind.SLEPT, FaultKind.STOLEN_TIME, FaultKind.OTHER_LOAD, FaultKind.SANDBOX}
