"""`prony selftest diagnosis`: what it plans, what it refuses, and what it shows of trials that are there."""

import json

import pytest

from faults import test_judge
from prony.cli.selftest_diagnosis import read_evidence, write_evidence
from prony.faults import CAUSES


@pytest.fixture(autouse=True)
def own_cache(said, tmp_path, monkeypatch):
    monkeypatch.setenv("PRONY_CACHE", str(tmp_path / "cache"))


def evidence(path, **kwargs):
    write_evidence(path, [*test_judge.planted(test_judge.ASLEEP, **kwargs)])
    return path


def test_evidence_reads_as_it_was_written_and_the_same_trials_give_the_same_bytes(tmp_path):
    one, again = evidence(tmp_path / "a.xz"), tmp_path / "b.xz"
    write_evidence(again, list(read_evidence(one)))
    assert list(read_evidence(again)) == list(read_evidence(one))
    once_more = tmp_path / "c.xz"
    write_evidence(once_more, list(read_evidence(again)))
    assert once_more.read_bytes() == again.read_bytes()


def test_a_healthy_trial_with_a_certain_finding_is_a_negative_verdict(said, tmp_path):
    assert said("selftest", "diagnosis", evidence(tmp_path / "a.xz"), "--json").status == 0
    alarming = evidence(tmp_path / "b.xz", healthy=test_judge.BUSY)
    done = said("selftest", "diagnosis", alarming, "--json")
    found = json.loads(done.out)["parts"]["held_out"]
    assert (done.status, found["false_certain"]["count"]) == (1, 3)


def test_the_matrix_is_drawn_on_demand(said, tmp_path):
    picture = tmp_path / "matrix.svg"
    said("selftest", "diagnosis", evidence(tmp_path / "a.xz"), "--picture", picture)
    assert picture.read_text().startswith("<svg") and "asleep" in picture.read_text()


def test_a_dry_run_shows_each_fault_with_its_length(said, tmp_path):
    done = said("selftest", "diagnosis", "--dry-run", "--only", "lock", "--out", tmp_path / "none")
    assert done.out.count("lock-") == 8
    assert "8 faults, about 8 min" in done.out
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("arguments", "said_of_it"),
    [
        (("--only", "no-such"), "no planted fault has such a cause and server"),
        (("--shard", "9/8"), "`--shard 9/8`: expected one of so many parts, such as `2/8`"),
        (("--plants", "5%"), "`--plants` only works with `prony selftest planted`"),
        (("nowhere.xz",), "holds no evidence of planted faults"),
    ],
)
def test_what_cannot_be_planted_or_read_is_a_misuse(said, arguments, said_of_it):
    done = said("selftest", "diagnosis", *arguments)
    assert (done.status, said_of_it in " ".join(done.err.split())) == (2, True), done.err


@pytest.mark.servers
@pytest.mark.slow
@pytest.mark.parametrize("cause", [one.name for one in CAUSES if one.named])
def test_each_cause_is_planted_once_and_named(prony, cause):
    plant = next(next(one.plants()) for one in CAUSES if one.name == cause)
    options = ("--only", plant.name, "--repeats", "1", "--force", "--json", "--out", "planted")
    done = prony("selftest", "diagnosis", *options, timeout_s=300)
    # Where the machine spoilt a trial three times, the message says by what.
    assert done.out, done.err
    (found,) = json.loads(done.out)["plants"]
    assert {one["named"] for one in found["faulty"]} <= {kind.value for kind in plant.cause.named}
    assert [one["certain"] for one in found["healthy"]] == [[]]
