"""What a report says of trials that do not count."""

from dataclasses import replace
from pathlib import Path

from golden import build
from prony.archive import open_archive
from prony.model import Failed, Invalid, LogTail, Outcome
from prony.reading.study import Reading, read_archive
from prony.report.document import Notes, Paragraph
from prony.report.sections.uncounted import uncounted


def told(folder: Path, *outcomes: Outcome) -> tuple[list[str], list[str]]:
    """Return the paragraphs and the lines of logs when a subject's trials ended so, block by block."""
    with open_archive(build.study_two(folder / "two.prony")) as archive:
        reading = read_archive(archive)
    assert isinstance(reading, Reading)
    first = reading.cells[0]
    others = tuple(
        replace(first.counted[0], outcome=outcome, block=block, log=LogTail("the server's own words", False))
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
    paragraphs, _ = told(tmp_path, *(Invalid(f"other programs used {share}%") for share in (41, 57, 93)))
    (text,) = paragraphs
    assert text.endswith("3 of 3 trials (blocks 1 to 3): not valid: other programs used … %")


def test_the_figure_of_one_trial_is_told(tmp_path: Path) -> None:
    paragraphs, _ = told(tmp_path, Invalid("other programs used 41%"))
    assert paragraphs[0].endswith("1 of 1 trial (block 1): not valid: other programs used 41%")


def test_the_log_of_a_server_is_shown_when_it_failed_not_when_the_machine_did(tmp_path: Path) -> None:
    assert told(tmp_path, Invalid("steal was 4 %"))[1] == []


def test_the_log_of_a_server_that_failed_is_shown(tmp_path: Path) -> None:
    assert told(tmp_path, Failed("start", "it ended"))[1] == ["the server's own words"]
