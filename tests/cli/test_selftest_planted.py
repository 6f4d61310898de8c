"""`prony selftest planted`: effects of known size are found at their size, or verdicts are called wrong."""

import json
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

from golden import build
from made_pages import made_page
from prony.archive import open_archive
from prony.figures.planted import work_path
from prony.model.exchange import Request
from prony.model.plan import Cell, Plan
from prony.model.workload import ClosedLoop, DurationStop, Workload

WORKS = (1000, 1020, 1050, 1100)
OVERHEAD_US = 250
GOLDEN = Path(__file__).parents[1] / "golden" / "selftest"


@pytest.fixture(autouse=True)
def own_cache(said, tmp_path, monkeypatch):
    monkeypatch.setenv("PRONY_CACHE", str(tmp_path / "cache"))


def cells(works):
    subject = build.subject("gunicorn+page-cpu")
    for number, work in enumerate(works):
        load = Workload(ClosedLoop(10), DurationStop(2 * build.SECOND), Request(path=work_path(work)))
        yield Cell(number, replace(subject, name=f"{subject.name} ({work} us)"), load)


def archive(path, blocks=10, truth=lambda work: work, noise=0.005, works=WORKS):
    """An archive of one thread that is never idle: each request takes it 250 us and the work; `truth`: the
    work that is really done.
    """
    planned, rng = tuple(cells(works)), random.Random(5)
    plan = Plan("selftest-planted", "Planted", "", "quick", planned, blocks, 1)
    with build.create(path, plan, build.FINGERPRINT) as writer:
        for block in range(blocks):
            for cell, work in zip(planned, works, strict=True):
                each_s = 1e-6 * (OVERHEAD_US + truth(work)) * (1 + rng.gauss(0, noise))
                # The archive's maker adds 9 ms a second.
                usage = {"cores": 1 - 0.009}
                writer.append(build.trial(cell, block, cell.id, [1_000_000] * round(2 / each_s), **usage))
        writer.finish(build.RunStatus.FINISHED)
    return path


def plants(done, metric):
    return [one for one in json.loads(done.out)["plants"] if one["metric"] == metric]


@pytest.mark.parametrize("metric", ["cpu_ns_per_request", "ok_per_s"])
def test_what_is_planted_is_expected_found_and_covered(said, tmp_path, metric):
    done = said("selftest", "planted", archive(tmp_path / "p.prony"), "--json")
    found = plants(done, metric)
    more = [extra / (OVERHEAD_US + 1000) for extra in (20, 50, 100)]
    expected = more if metric == "cpu_ns_per_request" else [-one / (1 + one) for one in more]
    assert [one["expected"] for one in found] == pytest.approx(expected, rel=0.01)
    assert [one["extra_us"] for one in found] == [20, 50, 100]
    assert [one["covers"] for one in found] == [True] * 3
    assert all(abs(one["bias"]) < 0.005 for one in found)
    assert found[2]["verdict"] == ("higher" if metric == "cpu_ns_per_request" else "lower")
    assert [one["right"] for one in found][1:] == [True] * 2
    assert done.status == 0


def test_power_rises_with_the_size_and_what_is_within_the_margin_is_not_found(said, tmp_path):
    file = archive(tmp_path / "p.prony", 40, noise=0.01)
    found = plants(said("selftest", "planted", file, "--json"), "ok_per_s")
    power = [next(row for row in one["power"] if row["blocks"] == 5) for one in found]
    assert [row["studies"] for row in power] == [8] * 3
    assert power[0]["found"] == 0
    assert power[1]["found"] < power[2]["found"] == 8
    assert power[2]["least"] == pytest.approx(0.05 ** (1 / 8))
    assert {row["blocks"] for row in found[0]["power"]} == {5, 10, 15, 20}


@pytest.mark.parametrize(
    ("truth", "right"),
    [
        pytest.param(lambda work: 1000, "equivalent", id="nothing is added"),
        pytest.param(lambda work: 2000 - work, "higher", id="work is taken away"),
    ],
)
def test_a_plant_that_is_not_there_makes_verdicts_wrong(said, tmp_path, truth, right):
    file = archive(tmp_path / "p.prony", truth=truth)
    done = said("selftest", "planted", file, "--json")
    (most,) = [one for one in plants(done, "ok_per_s") if one["extra_us"] == 100]
    assert (most["verdict"], most["right"], most["covers"], done.status) == (right, False, False, 1)
    assert "Wrong verdicts: " in said("selftest", "planted", file).out


def test_noise_hides_plants_and_is_no_wrong_verdict(said, tmp_path):
    file = archive(tmp_path / "p.prony", 5, noise=0.2)
    done = said("selftest", "planted", file, "--json")
    assert [one["right"] for one in json.loads(done.out)["plants"]] == [None] * 6
    assert done.status == 0


def test_the_report_of_planted_effects(said, tmp_path, update_golden):
    archive(tmp_path / "p.prony", 20)
    text = said("selftest", "planted", tmp_path / "p.prony").out.replace(f"{tmp_path}/", "")
    path = GOLDEN / "planted.txt"
    if update_golden:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


def test_every_key_is_documented(said, tmp_path):
    document = json.loads(said("selftest", "planted", archive(tmp_path / "p.prony"), "--json").out)
    one = document["plants"][0]
    assert {*document, *one, *one["power"][0]} <= set(re.findall(r"`(\w+)`", made_page("compare-json.md")))


def test_too_few_blocks_tell_nothing(said, tmp_path):
    done = said("selftest", "planted", archive(tmp_path / "p.prony", 4))
    assert done.status == 3
    assert "fewer than 5 blocks in which both count" in " ".join(done.out.split())


def test_an_archive_without_plants_is_a_misuse(said, tmp_path):
    done = said("selftest", "planted", archive(tmp_path / "p.prony", works=WORKS[:1]))
    assert (done.status, "has no planted effects" in done.err) == (2, True)


def test_plants_are_no_pair_of_the_same(said, tmp_path):
    found = json.loads(said("selftest", "aa", archive(tmp_path / "p.prony"), "--json").out)
    assert found["kept"] is None
    assert {one["studies"] for one in found["tests"]} == {0}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("planted", "--app", "hello"), "`--app` only works with `prony selftest aa`"),
        (("aa", "--plants", "5%"), "`--plants` only works with `prony selftest planted`"),
        (("aa", "--force"), "`--force` only works with `prony selftest planted`"),
        (("planted", "--plants", "5"), "`5` is not a percentage"),
        (("planted", "--plants", "2000%"), "expected 0.1% to 1000%"),
        (("planted", "--server", "waitress"), "serves 4 requests at a time"),
    ],
)
def test_what_cannot_be_planted_is_a_misuse(said, arguments, told):
    done = said("selftest", *arguments)
    assert (done.status, told in " ".join(done.err.split())) == (2, True), done.err


@pytest.mark.servers
@pytest.mark.slow
def test_half_as_much_work_again_is_found_on_real_trials(prony):
    options = (
        "--plants",
        "50%",
        "--repeats",
        "5",
        "--duration",
        "1s",
        "--force",
        "--out",
        "p.prony",
        "--json",
    )
    done = prony("selftest", "planted", *options, timeout_s=400)
    assert done.status == 0, done.err
    cpu, speed = json.loads(done.out)["plants"]
    assert (cpu["verdict"], cpu["right"], cpu["extra_us"]) == ("higher", True, 500)
    # Each request takes a small server a millisecond of work, and less than another to be served.
    assert 0.25 < cpu["expected"] < 0.5
    # What else runs on the machine of a test disturbs both, not exactly alike: three tenths of the effect.
    assert abs(cpu["bias"]) < 0.3 * cpu["expected"]
    assert speed["right"] is not False and speed["effect"] < 0
    with open_archive(prony.folder / "p.prony") as opened:
        paths = [cell.workload.request.path for cell in opened.plan().cells]
    assert paths == ["/cpu?us=1000", "/cpu?us=1500"]
