"""What a report says of trials that do not count."""

from dataclasses import replace
from pathlib import Path

from golden import build
from prony.archive import open_archive
from prony.figures.summary import TrialFigures
from prony.figures.validity import in_words
from prony.model.observation import LogTail
from prony.model.trial import Failed, Fault, FaultKind, Invalid, Outcome
from prony.reading.study import StudyResults, read_archive
from prony.report.document import Notes, Paragraph
from prony.report.sections.figures import uncounted

Spoilt = Outcome | Fault | tuple[Outcome, Fault]


def _spoilt(trial: TrialFigures, by: Spoilt) -> TrialFigures:
    match by:
        case Fault():
            return replace(trial, outcome=Invalid(in_words(by)), fault=by)
        case (outcome, fault):
            return replace(trial, outcome=outcome, fault=fault)
        case _:
            return replace(trial, outcome=by)


def told(folder: Path, *outcomes: Spoilt) -> tuple[list[str], list[str]]:
    """Return the paragraphs and the lines of logs when a subject's trials ended so, block by block."""
    with open_archive(build.study_two(folder / "two.prony")) as archive:
        reading = read_archive(archive)
    assert isinstance(reading, StudyResults)
    first = reading.cells[0]
    others = tuple(
        replace(_spoilt(first.counted[0], outcome), block=block, log=LogTail("the server's own words", False))
        for block, outcome in enumerate(outcomes)
    )
    cell = replace(first, counted=(), ok=0, total=len(others), others=others)
    group = replace(reading.groups[0], cells=(cell,))
    section = uncounted(replace(reading, groups=(group,), trials=()))
    assert section is not None
    paragraphs = [str(block.text) for block in section.blocks if isinstance(block, Paragraph)]
    notes = [block for block in section.blocks if isinstance(block, Notes)]
    return paragraphs, [str(text) for block in notes for mark, text in block.items if mark]


def test_trials_that_differ_in_a_figure_only_are_told_together(tmp_path: Path) -> None:
    paragraphs, _ = told(
        tmp_path, *(Fault(FaultKind.OTHER_LOAD, share=share) for share in (0.57, 0.41, 0.93))
    )
    (text,) = paragraphs
    said = "not valid: other programs used 41% to 93% of the CPUs of server and generator"
    assert text.endswith(f"3 of 3 trials (blocks 1 to 3): {said}")


def test_trials_of_different_kinds_of_fault_are_told_apart(tmp_path: Path) -> None:
    faults = Fault(FaultKind.OTHER_LOAD, share=0.4), Fault(FaultKind.STOLEN_TIME, share=0.4)
    assert len(told(tmp_path, *faults)[0]) == 2


def test_what_one_trial_left_behind_is_not_lost_among_others(tmp_path: Path) -> None:
    also = "it left 1 process that could not be killed and may still run"
    fault = Fault(FaultKind.OTHER_LOAD, share=0.4)
    paragraphs, _ = told(tmp_path, fault, *(replace(fault, share=share, text=also) for share in (0.4, 0.5)))
    assert paragraphs[1].endswith(f"used 40% to 50% of the CPUs of server and generator; {also}")


def test_a_fault_in_the_words_of_another_prony_is_known_by_its_kind(tmp_path: Path) -> None:
    faults = (Fault(FaultKind.OTHER_LOAD, share=share) for share in (0.4, 0.6))
    paragraphs, _ = told(tmp_path, *((Invalid("others had the CPUs"), fault) for fault in faults))
    (text,) = paragraphs
    assert text.endswith("used 40% to 60% of the CPUs of server and generator")


def test_the_figure_of_one_trial_is_told(tmp_path: Path) -> None:
    paragraphs, _ = told(tmp_path, Fault(FaultKind.OTHER_LOAD, share=0.41))
    said = "not valid: other programs used 41% of the CPUs of server and generator"
    assert paragraphs[0].endswith(f"1 of 1 trial (block 1): {said}")


def test_the_log_of_a_server_is_shown_when_it_failed_not_when_the_machine_did(tmp_path: Path) -> None:
    assert told(tmp_path, Invalid("steal was 4 %"))[1] == []


def test_the_log_of_a_server_that_failed_is_shown(tmp_path: Path) -> None:
    assert told(tmp_path, Failed("start", "it ended"))[1] == ["the server's own words"]
