"""What is said to be done about a cause: of a certain one what to change, of another one how to test it."""

import pytest

from prony.diagnosis.evidence import Confidence, Finding
from prony.diagnosis.few_at_a_time import LOOP_BLOCKED, PEER_SLOW
from prony.report.diagnoses import cause_note


@pytest.mark.parametrize("kind", [LOOP_BLOCKED, PEER_SLOW], ids=str)
def test_only_what_is_certain_says_what_to_change(kind):
    note = str(cause_note(Finding(kind, Confidence.CERTAIN), Confidence.CERTAIN, ""))
    assert note.startswith("Means: ")
    assert f" Try: {kind.meaning.advice.words}. To confirm: {kind.meaning.experiment.words}." in note


@pytest.mark.parametrize("sure", [Confidence.LIKELY, Confidence.POSSIBLE])
def test_what_is_likely_says_first_how_to_test_it(sure):
    note = str(cause_note(Finding(LOOP_BLOCKED, sure), sure, ""))
    meaning = LOOP_BLOCKED.meaning
    assert "Try:" not in note
    assert note.endswith(f"Test it: {meaning.experiment.words}. If that is so: {meaning.advice.words}.")


def test_a_finding_that_few_trials_have_is_not_sure_of_its_cause():
    assert "Try:" not in str(cause_note(Finding(LOOP_BLOCKED, Confidence.CERTAIN), Confidence.LIKELY, ""))
