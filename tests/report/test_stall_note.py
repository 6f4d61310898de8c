"""Single trials that stalled are named, with their figures where the JSON has them."""

from dataclasses import replace

import pytest

from golden.build import closed_study
from prony.archive import open_archive
from prony.figures.drift import Stall
from prony.reading.study import read_archive
from prony.report.formats.as_json import reading_json
from prony.report.formats.markdown import markdown
from prony.report.sections.notes import notes
from prony.report.study import study_report


@pytest.fixture
def reading(tmp_path):
    with open_archive(closed_study(tmp_path / "a.prony", 6)) as opened:
        found = read_archive(opened)
    (group,) = found.groups
    stalls = {"bjoern+hello": Stall((4,), 6, -0.4)}
    answer = replace(group.answer, ties=())
    return replace(found, groups=(replace(group, stalls=stalls, answer=answer),))


def test_the_notes_name_the_subject_how_often_and_how_far(reading):
    page = " ".join(markdown(study_report(reading)).split())
    assert (
        "bjoern+hello: 1 of 6 trials stalled (valid replies per second: -40.0 % against the median)" in page
    )


def test_a_generators_name_has_its_load_and_no_other_one_follows(reading):
    (group,) = reading.groups
    both = tuple(replace(group, of_generators=True, stalls=stalls) for stalls in (group.stalls, {}))
    (block,) = notes(replace(reading, groups=both)).blocks
    said = [str(words) for _, words in block.items]
    assert any(words.startswith("bjoern+hello: 1 of 6 trials stalled") for words in said)


def test_a_leader_whose_trials_stalled_is_not_simply_the_best(reading):
    page = " ".join(markdown(study_report(reading)).split())
    assert "is best but for its stalled trials (n = 6)" in page


def test_the_json_has_them(reading):
    (group,) = reading_json(reading)["groups"]
    assert group["stalls"] == {"bjoern+hello": {"blocks": [4], "of": 6, "worst": -0.4, "trials": 1}}
