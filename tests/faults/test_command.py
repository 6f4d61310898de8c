"""`bench/diagnosis/run`: what it plans, what it refuses, and what it shows of trials that are there."""

from dataclasses import dataclass, replace

import pytest

from faults import test_judge
from lab import CAUSES, PLANTS
from lab.command import main, read_evidence
from lab.evidence_files import SessionFile, write_session
from lab.judge import MOST_OF_A_CPU, judge_plants
from lab.sessions import SessionFacts
from prony.diagnosis.started_under_load import RESTARTED


@dataclass(frozen=True)
class Done:
    status: int
    out: str
    err: str


@pytest.fixture
def lab(capsys, tmp_path, monkeypatch):
    """Return what runs the command, with its exit status and what it said."""
    monkeypatch.setenv("PRONY_CACHE", str(tmp_path / "cache"))

    def run(*words):
        status = main([str(word) for word in words])
        said = capsys.readouterr()
        return Done(status, said.out, said.err)

    return run


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


def test_a_healthy_trial_with_a_certain_finding_is_a_negative_verdict(lab, tmp_path):
    assert lab(evidence(tmp_path / "a.xz")).status == 0
    done = lab(evidence(tmp_path / "b.xz", healthy=test_judge.BUSY))
    assert (done.status, "of 3 healthy trials 3 have a certain finding" in done.out) == (1, True)


def test_a_dry_run_shows_each_fault_with_its_length(lab, tmp_path):
    done = lab("--dry-run", "--only", "lock", "--out", tmp_path / "none")
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
def test_what_a_folder_of_evidence_knows_is_not_planted_again(lab, tmp_path, blocks, left):
    folder = known_folder(tmp_path / "evidence", test_judge.LOCK, blocks)
    done = lab("--dry-run", "--only", "lock", "--into", folder)
    assert f"{left} faults, about" in done.out
    assert (test_judge.LOCK.name in done.out) is (left == 8)


def test_a_folder_of_evidence_is_judged_and_says_where_it_was_measured(lab, tmp_path):
    folder = known_folder(tmp_path / "evidence", test_judge.ASLEEP)
    words = " ".join(lab(folder).out.split())
    assert "1 session of Prony 0.1.0 on CPUs: 2" in words


@pytest.mark.parametrize(
    ("arguments", "said_of_it"),
    [
        (("--only", "no-such"), "no planted fault has such a cause and server"),
        (("--repeats", "0"), "`--repeats 0`: expected at least 1"),
        (("--shard", "9/8"), "`--shard 9/8`: expected one of so many parts, such as `2/8`"),
        (("nowhere.xz",), "holds no evidence of planted faults"),
    ],
)
def test_what_cannot_be_planted_or_read_is_a_misuse(lab, arguments, said_of_it):
    done = lab(*arguments)
    assert (done.status, said_of_it in " ".join(done.err.split())) == (2, True), done.err


# What a connect costs on the loopback is too little to be told from one pair of trials.
HURTS_NOTHING_TO_SEE = {"museum-uwsgi-1097"}


# What a cure does besides: workers are replaced after 100 connections, which is what bounds their memory.
OF_CURES = {"museum-starman-124": {RESTARTED}}


@pytest.mark.servers
@pytest.mark.slow
@pytest.mark.parametrize("cause", [one.name for one in CAUSES if one.named])
def test_each_cause_is_planted_once_and_named(lab, tmp_path, cause):
    plant = next(next(one.plants()) for one in CAUSES if one.name == cause)
    done = lab("--only", plant.name, "--repeats", "1", "--force", "--out", tmp_path / "planted")
    # Where the machine spoilt a trial three times, the message says by what.
    assert done.out, done.err
    (judged,) = judge_plants(PLANTS, read_evidence(tmp_path / "planted"))
    assert {one.symptom for one in judged.faulty} <= plant.cause.named
    assert {kind for one in judged.healthy for kind in one.certain} <= OF_CURES.get(cause, set())
    assert judged.hurt or cause in HURTS_NOTHING_TO_SEE
    assert (judged.generator_cpus or 0.0) <= MOST_OF_A_CPU
