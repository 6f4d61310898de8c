"""`prony selftest diagnosis`: what it plans, what it refuses, and what it shows of trials that are there."""

import json
from dataclasses import replace

import pytest

from faults import test_judge
from prony.cli.selftest_diagnosis import read_evidence
from prony.diagnosis import Symptom
from prony.faults import CAUSES
from prony.faults.judge import MOST_OF_A_CPU
from prony.faults.sessions import SessionFacts
from prony.study.evidence_files import SessionFile, write_session


@pytest.fixture(autouse=True)
def own_cache(said, tmp_path, monkeypatch):
    monkeypatch.setenv("PRONY_CACHE", str(tmp_path / "cache"))


def evidence(path, **kwargs):
    write_session(path, [*test_judge.planted(test_judge.ASLEEP, **kwargs)])
    return path


def test_evidence_reads_as_it_was_written_and_the_same_trials_give_the_same_bytes(tmp_path):
    one, again = evidence(tmp_path / "a.xz"), tmp_path / "b.xz"
    write_session(again, list(read_evidence(one)))
    assert list(read_evidence(again)) == list(read_evidence(one))
    once_more = tmp_path / "c.xz"
    write_session(once_more, list(read_evidence(again)))
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


def known_folder(folder, plant, blocks=3):
    """A folder of evidence that knows one fault, with its name."""
    facts = SessionFacts(1_000_000_000, "0.1.0", "a" * 12, {"CPUs": "2"})
    trials = [replace(one, planted=plant.digest) for one in test_judge.planted(plant, blocks=blocks)]
    SessionFile(folder, facts).add(trials)
    return folder


@pytest.mark.parametrize(("blocks", "left"), [(3, 7), (2, 8)], ids=["as many pairs", "fewer"])
def test_what_a_folder_of_evidence_knows_is_not_planted_again(said, tmp_path, blocks, left):
    folder = known_folder(tmp_path / "evidence", test_judge.LOCK, blocks)
    done = said("selftest", "diagnosis", "--dry-run", "--only", "lock", "--into", folder)
    assert f"{left} faults, about" in done.out
    assert (test_judge.LOCK.name in done.out) is (left == 8)


def test_a_folder_of_evidence_is_judged_and_says_where_it_was_measured(said, tmp_path):
    folder = known_folder(tmp_path / "evidence", test_judge.ASLEEP)
    found = json.loads(said("selftest", "diagnosis", folder, "--json").out)
    (session,) = found["sessions"]
    assert (session["machine"], session["of_machine"], found["outdated"]) == ({"CPUs": "2"}, 1, [])
    words = " ".join(said("selftest", "diagnosis", folder).out.split())
    assert "1 session of Prony 0.1.0 on CPUs: 2" in words


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


# What a connect costs on the loopback is too little to be told from one pair of trials.
HURTS_NOTHING_TO_SEE = {"museum-uwsgi-1097"}


# What a cure does besides: workers are replaced after 100 connections, which is what bounds their memory.
OF_CURES = {"museum-starman-124": {Symptom.RESTARTED.value}}


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
    (faulty,) = found["faulty"]
    assert faulty["named"] in {kind.value for kind in plant.cause.named}
    (healthy,) = found["healthy"]
    assert set(healthy["certain"]) <= OF_CURES.get(cause, set())
    assert found["hurt"] or cause in HURTS_NOTHING_TO_SEE
    assert (found["generator_cpus"] or 0.0) <= MOST_OF_A_CPU
