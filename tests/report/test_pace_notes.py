"""What a report says of windows without a steady state."""

from dataclasses import replace
from pathlib import Path

import pytest

from golden import build
from prony.analysis.steady_state import Kind, SteadyState, classify
from prony.archive import open_archive
from prony.report.reading import Reading, read_archive
from prony.report.sections.pace import pace_notes

PACES = {
    Kind.FLAT: [100.0] * 8,
    Kind.WARM_UP: [50.0] * 3 + [100.0] * 5,
    Kind.SLOWDOWN: [100.0] * 3 + [50.0] * 5,
    Kind.NONE: [100.0] * 5 + [50.0] * 3,
}


def told(folder: Path, *kinds: Kind) -> list[str]:
    """Return what is said when the trials of the first subject, and of no other, are of these kinds."""
    with open_archive(build.study_two(folder / "two.prony")) as archive:
        reading = read_archive(archive)
    assert isinstance(reading, Reading)
    first = reading.cells[0]
    trials = tuple(replace(first.counted[0], steady=state(kind)) for kind in kinds)
    group = replace(reading.groups[0], cells=(replace(first, counted=trials, ok=len(trials)),))
    return list(pace_notes(replace(reading, groups=(group,))))


def state(kind: Kind) -> SteadyState:
    found = classify(PACES[kind])
    assert found.kind is kind
    return found


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (Kind.WARM_UP, "spills over into the window: a longer one would show better figures."),
        (Kind.SLOWDOWN, "from some second of the window on: a longer window would show worse figures."),
        (Kind.NONE, "no steady state within the window: a longer one may show other figures."),
    ],
)
def test_what_most_trials_show_is_told_with_what_it_does_to_the_figures(
    tmp_path: Path, kind: Kind, said: str
) -> None:
    (note,) = told(tmp_path, kind, Kind.FLAT, kind)
    assert "(2 of 3 trials)" in note
    assert note.endswith(said)


def test_one_trial_of_several_may_be_chance_and_is_not_told(tmp_path: Path) -> None:
    assert told(tmp_path, Kind.WARM_UP, Kind.FLAT, Kind.WARM_UP, Kind.FLAT) == []
