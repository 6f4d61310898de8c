"""`bench/why_knobs`: its studies can be run, and only a knob that is named where it is turned passes."""

import subprocess
import sys

import pytest

from benches import BENCH, bench
from prony.diagnosis.busy_slots import SLOTS_BUSY
from prony.diagnosis.throttled import THROTTLED

KNOBS = bench("why_knobs").KNOBS


def test_each_of_the_five_studies_has_a_knob():
    assert len({one.study for one in KNOBS}) == len(KNOBS) == 5


@pytest.mark.parametrize("is_turned", [False, True], ids=["as it is", "turned"])
@pytest.mark.parametrize("knob", KNOBS, ids=lambda one: one.study)
def test_a_knob_is_a_setting_of_its_study(said, knob, is_turned):
    done = said("run", *knob.words(is_turned=is_turned), "--repeats", "2", "--no-calibration", "--dry-run")
    assert done.status == 0, done.err
    # One subject under one load.
    assert "2 trials" in done.out, done.out


@pytest.mark.parametrize(
    ("plain", "turned", "right"),
    [
        (None, THROTTLED, True),
        (SLOTS_BUSY, THROTTLED, True),
        (THROTTLED, THROTTLED, False),
        (None, SLOTS_BUSY, False),
        (None, None, False),
    ],
)
def test_a_cause_counts_that_is_named_where_the_knob_is_turned_and_only_there(
    monkeypatch, capsys, tmp_path, plain, turned, right
):
    module = bench("why_knobs")
    knob = next(one for one in KNOBS if THROTTLED in one.causes)
    named = {f"{knob.study}-plain.prony": plain, f"{knob.study}-turned.prony": turned}
    monkeypatch.setattr(module, "measure", lambda words, archive, options: None)
    monkeypatch.setattr(module, "subjects", lambda archive: [why(named[archive.name])])
    assert module.is_named(knob, tmp_path, None) is right
    assert ("WRONG" in capsys.readouterr().out) is not right


def why(kind):
    found = None if kind is None else {"finding": {"kind": kind.value}}
    return {"diagnosis": {"sentence": "limited by something", "cause": found}}


@pytest.mark.servers
@pytest.mark.slow
@pytest.mark.parametrize("study", [one.study for one in KNOBS])
def test_a_knob_that_is_turned_is_named(study):
    words = [sys.executable, str(BENCH / "why_knobs"), "--study", study, "--force"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
