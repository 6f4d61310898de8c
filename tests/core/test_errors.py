"""What scripts may rely on when something goes wrong."""

import pytest

from prony.core.errors import (
    ArchiveError,
    EngineError,
    ExitCode,
    HostError,
    PronyError,
    SubjectError,
    UsageError,
)


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (PronyError, 4),
        (UsageError, 2),
        (HostError, 3),
        (SubjectError, 3),
        (EngineError, 3),
        (ArchiveError, 3),
    ],
)
def test_each_kind_of_error_has_its_exit_code(kind, status):
    assert kind("it failed").exit_code == status


def test_every_error_of_prony_is_a_prony_error():
    assert {kind.__name__ for kind in PronyError.__subclasses__()} == {
        "UsageError",
        "HostError",
        "SubjectError",
        "EngineError",
        "ArchiveError",
    }


def test_exit_codes_are_as_documented():
    assert {code.name: code.value for code in ExitCode} == {
        "DONE": 0,
        "VERDICT_NEGATIVE": 1,
        "USAGE": 2,
        "COULD_NOT_MEASURE": 3,
        "INTERNAL": 4,
        "HUNG_UP": 129,
        "INTERRUPTED": 130,
        "TERMINATED": 143,
    }


def test_an_error_reads_as_its_message_and_keeps_its_hint_apart():
    error = UsageError("`x` is wrong", hint="try `y`")
    assert (str(error), error.message, error.hint) == ("`x` is wrong", "`x` is wrong", "try `y`")


def test_a_subjects_error_knows_its_stage_and_last_words():
    error = SubjectError("it ended", stage="contract", log="Traceback")
    assert (error.stage, error.log) == ("contract", "Traceback")
    assert SubjectError("it ended").stage == "start"
