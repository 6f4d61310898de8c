"""Archives with faults, each read by two commands: none breaks what `fuzz.workers` demands."""

import subprocess
import sys
from pathlib import Path

import pytest

from fuzz import mutants, run, workers
from fuzz.workers import Done

FUZZ = Path(__file__).parents[2] / "bench" / "fuzz"


def fuzz(*options):
    return subprocess.run(
        [sys.executable, FUZZ, *map(str, options)], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("count", [30, pytest.param(300, marks=pytest.mark.slow)])
def test_no_mutant_makes_a_command_fail_hang_swell_or_change_anything(count):
    done = fuzz("--count", count, "--commands", 2, "--pages", 0.05)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{count} mutants, 6" in done.stdout


def test_a_seed_makes_the_same_mutant_again(tmp_path):
    from golden.build import study_two

    made = {"small": study_two(tmp_path / "small.prony", blocks=1)}
    for seed in range(20):
        places = [tmp_path / f"{seed}-{name}" / "out.prony" for name in "ab"]
        for place in places:
            place.parent.mkdir()
        assert mutants.mutate(seed, made, places[0]) == mutants.mutate(seed, made, places[1])


def test_the_fuzzer_notices_what_no_command_may_do():
    good = Done(3, 0, "error: `out.prony` is damaged\n", 0.1, 10**8)
    assert workers.breaches(good) == []
    bad = {
        "ended with 4": Done(4, 0, "error: x", 0.1, 10**8),
        "took 11.0 s": Done(0, 9, "", 11, 10**8),
        "took 572 MiB": Done(0, 9, "", 1, 6 * 10**8),
        "showed a traceback": Done(0, 9, "Traceback (most recent call last):", 1, 10**8),
        "blamed Prony": Done(3, 9, "error: a fault in Prony itself", 1, 10**8),
        "wrote nothing": Done(3, 0, "", 1, 10**8),
        "refused more than once": Done(3, 0, "error: a\nerror: b", 1, 10**8),
        "refused in a line without end": Done(3, 0, f"error: {'x' * 1000}", 1, 10**8),
        "refused, and called it done": Done(0, 0, "error: a", 1, 10**8),
    }
    for words, done in bad.items():
        assert words in workers.breaches(done)


def test_the_fuzzer_notices_each_change_of_a_folder(tmp_path):
    file = tmp_path / "a"
    file.write_bytes(b"x")
    before = workers.everything(tmp_path)
    file.write_bytes(b"y")
    assert run._changed(before, workers.everything(tmp_path)) == [str(file)]
    (tmp_path / "b").mkdir()
    assert str(tmp_path / "b") in run._changed(before, workers.everything(tmp_path))


def test_the_fuzzer_notices_each_output_that_nobody_asked_for(tmp_path):
    for name in ("asked", "draft"):
        (tmp_path / name).write_text("x")
    (tmp_path / "folder").mkdir()
    assert run._wrong_outputs(tmp_path, tmp_path / "asked") == ["left draft behind", "left folder behind"]
    assert run._wrong_outputs(tmp_path, tmp_path / "asked") == ["did not write asked"]
    assert run._wrong_outputs(tmp_path, None) == []
