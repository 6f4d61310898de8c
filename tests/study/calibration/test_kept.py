"""A calibration as JSON and in the cache: what was written is read, and nothing else is taken for one."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.core.errors import HostError
from prony.model.facts import Fitness, GeneratorFitness
from prony.study.calibration import (
    Calibration,
    Change,
    Holding,
    PartFigure,
    PartResult,
    file_of,
    from_json,
    keep,
    kept,
    to_json,
)

number = st.floats(-1e100, 1e100)
part = st.builds(
    PartResult,
    st.text(),
    st.tuples(
        st.builds(
            Change,
            *[st.text()] * 3,
            st.integers(0, 20),
            *[st.none() | number] * 3,
            number,
            st.text(),
            st.text(),
        )
    ),
    st.tuples(st.builds(PartFigure, st.text(), st.text(), number, number, number, st.integers(2, 99))),
    st.tuples(st.builds(Holding, st.text(), st.text(), st.text())),
    st.dictionaries(st.text(), st.text()),
    st.tuples(st.text()),
    st.none()
    | st.builds(
        GeneratorFitness,
        st.sampled_from(Fitness),
        st.tuples(st.text()),
        st.dictionaries(st.text(), st.floats(0, 1e9)),
        st.integers(0, 2**40),
    ),
)
calibrations = st.builds(
    Calibration,
    st.just("abc"),
    st.text(),
    st.text(),
    st.integers(0, 2**40),
    st.text(),
    st.dictionaries(st.text(), part, max_size=3),
)
ONE = Calibration("abc", "a machine", "1.0", 1_790_000_000, "2 blocks", {"limits": PartResult("Limits")})


@given(calibrations)
def test_what_is_written_as_json_is_read_again(calibration):
    assert from_json(json.loads(json.dumps(to_json(calibration)))) == calibration


def test_the_calibration_of_a_machine_is_found_by_its_key_alone(tmp_path):
    assert kept(tmp_path, "abc") is None
    path = keep(ONE, tmp_path)
    assert path == file_of(tmp_path, "abc")
    assert kept(tmp_path, "abc") == ONE
    assert kept(tmp_path, "other") is None


def test_a_new_calibration_takes_the_place_of_the_old_one_and_leaves_no_draft(tmp_path):
    keep(ONE, tmp_path)
    path = keep(Calibration("abc", "a machine", "2.0", 1, "3 blocks", {}), tmp_path)
    assert kept(tmp_path, "abc").prony_version == "2.0"
    assert [one.name for one in path.parent.iterdir()] == ["calibration.json"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "no json",
        '{"version": 2}',
        json.dumps({**to_json(ONE), "version": 3}),
        json.dumps({**to_json(ONE), "parts": {"limits": {}}}),
        json.dumps({**to_json(ONE), "key": None}),
    ],
)
def test_a_file_that_is_no_calibration_is_none(tmp_path, text):
    path = file_of(tmp_path, "abc")
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert kept(tmp_path, "abc") is None


def test_a_cache_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "calibration").write_text("a file")
    with pytest.raises(HostError, match="cannot write the calibration to"):
        keep(ONE, tmp_path)
