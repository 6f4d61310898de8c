"""Reports of a machine whose noise is known ask for more than noise, and say so."""

import pytest

from golden.build import closed_study, with_floors
from prony.analysis.compare import Verdict
from prony.archive import open_archive
from prony.faces.json_report import reading_json
from prony.faces.markdown import markdown
from prony.model.facts import Floor
from prony.reading.study import read_archive
from prony.report.study import study_report

NOISY = (Floor("ok_per_s", "closed", 5, 1.5), Floor("ok_per_s", "open", 5, 0.5))


@pytest.fixture
def reading(tmp_path):
    """The Reading of a study on a machine that shows these differences by itself."""

    def of(floors):
        with open_archive(with_floors(closed_study(tmp_path / f"{len(floors)}.prony", 6), floors)) as opened:
            return read_archive(opened)

    return of


def verdicts(reading):
    groups = reading.groups
    return {one.verdict for group in groups for one in group.answer.comparisons.values()}


def test_the_floor_takes_verdicts_away_that_noise_may_have_made(reading):
    assert Verdict.LOWER in verdicts(reading(()))
    assert not verdicts(reading(NOISY)) & {Verdict.HIGHER, Verdict.LOWER, Verdict.EQUIVALENT}


def test_the_report_says_what_the_machine_shows_by_itself(reading):
    said = "This machine shows differences of up to 150.00 % in valid replies per second between equal"
    noisy, quiet = reading(NOISY), reading(())
    assert said in markdown(study_report(noisy))
    assert "between equal servers" not in markdown(study_report(quiet))
    assert {group["noise_floor"] for group in reading_json(noisy)["groups"]} == {1.5}
    assert {group["noise_floor"] for group in reading_json(quiet)["groups"]} == {None}
