"""What a report says of windows without a steady state."""

from dataclasses import replace
from pathlib import Path

import pytest

from golden import build
from prony.analysis.missing import Missing
from prony.analysis.steady_state import Kind, SteadyState, classify
from prony.archive import open_archive
from prony.reading.study import Reading, read_archive
from prony.report.sections.pace import pace_notes

PACES = {
    Kind.FLAT: [100.0] * 8,
    Kind.WARM_UP: [50.0] * 3 + [100.0] * 5,
    Kind.SLOWDOWN: [100.0] * 3 + [50.0] * 5,
    Kind.NONE: [100.0] * 5 + [50.0] * 3,
}


def told(folder: Path, *states: SteadyState | Missing) -> list[str]:
    """Return what is said when the trials of the first subject, and of no other, had these states."""
    with open_archive(build.study_two(folder / "two.prony")) as archive:
        reading = read_archive(archive)
    assert isinstance(reading, Reading)
    first = reading.cells[0]
    trials = tuple(replace(first.counted[0], steady=state) for state in states)
    group = replace(reading.groups[0], cells=(replace(first, counted=trials, ok=len(trials)),))
    return list(map(str, pace_notes(replace(reading, groups=(group,)))))


def state(kind: Kind) -> SteadyState:
    found = classify(PACES[kind])
    assert found.kind is kind
    return found


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (Kind.WARM_UP, "spills over into the window: a longer warm-up would show better figures."),
        (Kind.SLOWDOWN, "it became slower during the window: a longer window would show worse figures."),
        (Kind.NONE, "no steady state within the window: a longer window may show other figures."),
    ],
)
def test_what_most_trials_show_is_told_with_what_it_does_to_the_figures(
    tmp_path: Path, kind: Kind, said: str
) -> None:
    (note,) = told(tmp_path, state(kind), state(Kind.FLAT), state(kind))
    assert "(2 of 3 trials)" in note
    assert note.endswith(said)


def test_one_trial_of_several_may_be_chance_and_is_not_told(tmp_path: Path) -> None:
    assert told(tmp_path, *[state(Kind.WARM_UP), state(Kind.FLAT)] * 2) == []


SHORT = Missing("the window has 3 whole seconds; a change shows from 6 on")


def test_windows_too_short_to_tell_are_told_once(tmp_path: Path) -> None:
    said = "Prony cannot say whether the pace was steady within the windows: the window has 3 whole seconds"
    (note,) = told(tmp_path, SHORT, SHORT)
    assert note.startswith(said)


def test_where_some_trials_tell_nothing_is_said_of_the_others(tmp_path: Path) -> None:
    assert told(tmp_path, SHORT, state(Kind.FLAT)) == []
