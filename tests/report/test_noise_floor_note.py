"""Reports of a machine whose noise is known ask for more than noise, and say so."""

import pytest

from golden.build import closed_study
from prony.analysis.compare import Verdict
from prony.analysis.noise_floor import Floor
from prony.archive import open_archive
from prony.faces.json_report import reading_json
from prony.faces.markdown import markdown
from prony.reading.study import read_archive
from prony.report.study import study_report

NOISY = (Floor("ok_per_s", "closed", 5, 1.5), Floor("ok_per_s", "open", 5, 0.5))


@pytest.fixture
def archive(tmp_path):
    closed_study(tmp_path / "a.prony", 6)
    with open_archive(tmp_path / "a.prony") as opened:
        yield opened


def verdicts(archive, floors):
    groups = read_archive(archive, floors).groups
    return {one.verdict for group in groups for one in group.answer.comparisons.values()}


def test_the_floor_takes_verdicts_away_that_noise_may_have_made(archive):
    assert Verdict.LOWER in verdicts(archive, ())
    assert not verdicts(archive, NOISY) & {Verdict.HIGHER, Verdict.LOWER, Verdict.EQUIVALENT}


def test_the_report_says_what_the_machine_shows_by_itself(archive):
    said = "This machine shows differences of up to 150.00 % in valid replies per second between equal"
    assert said in markdown(study_report(read_archive(archive, NOISY)))
    assert "between equal servers" not in markdown(study_report(read_archive(archive)))
    assert {group["noise_floor"] for group in reading_json(read_archive(archive, NOISY))["groups"]} == {1.5}
    assert {group["noise_floor"] for group in reading_json(read_archive(archive))["groups"]} == {None}
