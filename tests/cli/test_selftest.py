"""`prony selftest aa`: false verdicts are counted with their bound, and floors are kept for this machine."""

import json
import random
import re
import shutil
from dataclasses import replace
from functools import partial

import pytest

from golden import build
from made_pages import made_page
from prony.archive import open_archive
from prony.figures.noise_floor import rerandomised
from prony.model.plan import Cell, Plan
from prony.model.workload import ClosedLoop, DurationStop, Workload
from prony.study.calibration import kept_floors

WORKLOAD = Workload(ClosedLoop(10), DurationStop(2 * build.SECOND))


@pytest.fixture(autouse=True)
def own_cache(said, tmp_path, monkeypatch):
    monkeypatch.setenv("PRONY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def archive(path, subjects, blocks, effect=1.0):
    """An archive in which the second subject is `effect` times as fast as the first, with noise of 1 %."""
    cells = tuple(Cell(k, subject, WORKLOAD) for k, subject in enumerate(subjects))
    rng = random.Random(3)
    with build.create(path, Plan("aa", "A/A", "", "quick", cells, blocks, 1), build.FINGERPRINT) as writer:
        for block in range(blocks):
            for k, cell in enumerate(cells):
                count = int(500 * (effect if k else 1) * (1 + rng.gauss(0, 0.01)))
                writer.append(build.trial(cell, block, k, [1_000_000] * count))
        writer.finish(build.RunStatus.FINISHED)
    return path


def twins():
    subject = build.subject("a+hello")
    return [replace(subject, name=f"a+hello ({label})") for label in "AB"]


def draw_few(patch):
    """Let few studies be drawn: for what is no matter of how many there are, a second less each."""
    patch.setattr("prony.figures.noise_floor._PERMUTATIONS", 40)
    patch.setattr("prony.figures.noise_floor.rerandomised", partial(rerandomised, studies=40))


@pytest.fixture
def few_draws(monkeypatch):
    draw_few(monkeypatch)


def test_the_same_subject_under_two_names_measures_the_floor(said, tmp_path, own_cache):
    file = archive(tmp_path / "aa.prony", twins(), 20)
    found = json.loads(said("selftest", "aa", file, "--json").out)
    (test,) = (one for one in found["tests"] if one["metric"] == "ok_per_s" and one["blocks"] == 5)
    assert (test["false"], test["studies"], test["shown"]) == (0, 4, None)
    assert 0.005 < test["noise_floor"] < 0.025
    assert {one["blocks"] for one in found["tests"]} == {5, 10, 15, 20}
    assert found["kept"].startswith(str(own_cache / "noise-floors"))
    (procedure,) = found["procedure"]
    assert {*found, *test, *procedure} <= set(re.findall(r"`(\w+)`", made_page("compare-json.md")))


def test_the_procedure_on_these_data_is_reported_apart_from_real_studies(said, tmp_path):
    subject = build.subject("a+hello")
    names = [replace(subject, name=f"a+hello ({label})") for label in "ABC"]
    file = archive(tmp_path / "aa.prony", names, 10)
    done = said("selftest", "aa", file)
    assert done.status == 0
    assert "Equals are called different in 0 % of studies: at most 6.46 %." in done.out
    (found,) = json.loads(said("selftest", "aa", file, "--json").out)["procedure"]
    assert (found["names"], found["blocks"], found["studies"], found["holds"]) == (3, 10, 2000, True)
    assert found["coverage"] >= 0.935


@pytest.mark.usefixtures("few_draws")
def test_a_few_studies_do_not_show_it(said, tmp_path):
    done = said("selftest", "aa", archive(tmp_path / "aa.prony", twins(), 10))
    assert done.status == 0
    assert "is not shown: 2 real studies of 59 needed" in done.out


@pytest.mark.usefixtures("few_draws")
def test_a_machine_that_favours_one_name_fails(said, tmp_path, monkeypatch):
    # In place of the 59 studies that are needed, of 5 blocks each.
    monkeypatch.setattr("prony.figures.noise_floor.LEAST_STUDIES", 4)
    done = said("selftest", "aa", archive(tmp_path / "aa.prony", twins(), 20, effect=1.2))
    assert (done.status, "More than 5 % of verdicts are false here: valid replies" in done.out) == (1, True)


def test_two_subjects_of_a_study_are_permuted_and_their_floors_not_kept(said, tmp_path, own_cache):
    subjects = [build.subject(name) for name in ("a+hello", "b+hello")]
    found = json.loads(said("selftest", "aa", archive(tmp_path / "s.prony", subjects, 10, 3.0), "--json").out)
    (test,) = (one for one in found["tests"] if one["metric"] == "ok_per_s" and one["blocks"] == 10)
    assert (test["studies"], found["kept"]) == (0, None)
    # The threefold effect is taken out: what is left is noise.
    assert test["noise_floor"] < 0.02
    assert test["permuted_false"] <= 0.05 * test["permuted"]
    assert not (own_cache / "noise-floors").exists()


@pytest.mark.usefixtures("few_draws")
def test_a_floor_that_was_found_later_changes_no_report(said, tmp_path):
    file = archive(tmp_path / "aa.prony", twins(), 20)
    before = said("report", file, "--full").out
    assert said("selftest", "aa", file).status == 0
    assert said("report", file, "--full").out == before


def test_what_has_no_pair_is_a_misuse(said, tmp_path):
    done = said("selftest", "aa", archive(tmp_path / "s.prony", twins()[:1], 5))
    assert (done.status, "has no two subjects under one load" in done.err) == (2, True)


def test_too_few_blocks_measure_nothing(said, tmp_path):
    done = said("selftest", "aa", archive(tmp_path / "s.prony", twins(), 4))
    assert done.status == 3
    assert "fewer than 5 blocks in which both count" in " ".join(done.out.split())
    assert "noise floor" not in done.out and "not kept" not in done.out


@pytest.mark.usefixtures("few_draws")
def test_floors_that_cannot_be_read_are_none(said, tmp_path, own_cache):
    file = archive(tmp_path / "aa.prony", twins(), 10)
    kept = json.loads(said("selftest", "aa", file, "--json").out)["kept"]
    for text in (
        "",
        "{",
        '[{"metric": "ok_per_s"}]',
        '[{"metric": 1, "load": 2, "blocks": "x", "effect": -1}]',
    ):
        with open(kept, "w") as broken:  # noqa: PTH123
            broken.write(text)
        assert kept_floors(own_cache, build.FINGERPRINT) == ()


@pytest.fixture
def floors_as_before(prony):
    """Floors of a machine that is busy with tests must not stay in the cache that tests share."""
    kept = prony.cache / "noise-floors"
    before = {file: file.read_bytes() for file in kept.rglob("*") if file.is_file()}
    yield
    shutil.rmtree(kept, ignore_errors=True)
    for file, content in before.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


@pytest.mark.servers
def test_the_reference_server_runs_against_itself(prony, floors_as_before):
    options = ("--names", "3", "--repeats", "5", "--duration", "300ms", "--out", "aa.prony", "--json")
    done = prony("selftest", "aa", *options, timeout_s=300)
    assert done.status == 0, done.err
    assert {one["studies"] for one in json.loads(done.out)["tests"]} == {1}
    with open_archive(prony.folder / "aa.prony") as opened:
        names = [subject.name for subject in opened.plan().subjects()]
    assert names == [f"reference+hello ({label})" for label in "ABC"]
