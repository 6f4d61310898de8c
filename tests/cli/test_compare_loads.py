"""`prony compare` of saved loads: the ratio, what the interval holds, what is refused, the exit status."""

import json
from random import Random

import pytest

from golden import build
from histograms import distribution
from prony.model.json_codec import encode
from prony.reading.load import read_load
from prony.report.formats.as_json import document_json
from recordings import with_parts

MS = 1_000_000


def saved(path, ok_per_s=1000, time_ns=MS, *, length_s=10, seed=1, loop=None, errors=None, engine=(), **spec):
    """A file as `prony load --json` writes it: each second has so many replies, within some per cent."""
    noise = Random(seed)
    counts = [round(ok_per_s * (1 + noise.uniform(-0.02, 0.02))) for _ in range(length_s)]
    workload = build.Workload(loop or build.ClosedLoop(10), build.DurationStop(length_s * build.SECOND))
    each = [[round(time_ns * (1 + noise.uniform(-0.3, 0.3))) for _ in range(n)] for n in counts]
    every = [value for one in each for value in one]
    series = [
        {
            **{"second": k, "scheduled": n, "sent": n, "ok": n, "failed": 0, "body_bytes": 0},
            "latency": distribution(times),
        }
        for k, (n, times) in enumerate(zip(counts, each, strict=True))
    ]
    whole = {"target": {"host": "127.0.0.1", "port": 8000}, "workload": encode(workload), **spec}
    parts = {"engine": dict(engine)} if engine else {}
    recording = with_parts(build.recording(workload, every, errors), spec=whole, series=series, **parts)
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document_json(read_load(recording))))
    return path


def folder_of(path, count, **options):
    for k in range(count):
        saved(path / f"{k}.json", seed=1000 * len(path.name) + k, **options)
    return path


def test_one_load_a_side_has_a_ratio_and_an_interval_of_its_seconds_and_no_verdict(said, tmp_path):
    first, second = saved(tmp_path / "a.json", 1000), saved(tmp_path / "b.json", 1100, seed=2)
    done = said("compare", first, second)
    words = " ".join(done.out.split())
    assert done.status == 0
    assert "what differs from one load to the next is not in them, so there is no verdict." in words
    assert "too few runs for a verdict" in words
    assert "Next: `prony load A --compare B`" in words
    rate = said("compare", first, second, "--json").json["loads"][0]["metrics"]["ok_per_s"]
    found = rate["comparison"]
    assert found["effect"] == pytest.approx(rate["second"] / rate["first"] - 1)
    assert 0.05 < found["low"] < found["effect"] < found["high"] < 0.15
    assert (found["blocks"], found["method"]) == (1, "Welch on logarithms of the seconds within the loads")


def test_percentiles_are_those_of_the_whole_loads(said, tmp_path):
    first = saved(tmp_path / "a.json", 1500)
    second = saved(tmp_path / "b.json", 1500, time_ns=2 * MS)
    found = said("compare", first, second, "--json").json["loads"][0]["metrics"]["service_ok_p99"]
    own = json.loads(first.read_text())["latency"]["ok"]["service_ns"]["percentiles"]["99"]
    assert found["first"] == own
    effect = found["second"] / found["first"] - 1
    assert found["comparison"]["effect"] == pytest.approx(effect)
    assert found["comparison"]["low"] < effect < found["comparison"]["high"]


def test_seconds_that_resemble_their_neighbours_widen_the_interval(said, tmp_path):
    def width(shape):
        files = []
        for name in "ab":
            file = saved(tmp_path / f"{name}.json", length_s=20)
            value = json.loads(file.read_text())
            for one, ok in zip(value["series"], shape, strict=True):
                one["ok"] = ok
            file.write_text(json.dumps(value))
            files.append(file)
        found = said("compare", *files, "--json").json["loads"][0]["metrics"]["ok_per_s"]["comparison"]
        return found["high"] - found["low"]

    assert width([900] * 10 + [1100] * 10) > 2 * width([900, 1100] * 10)


def test_a_short_load_has_a_ratio_and_no_interval(said, tmp_path):
    first, second = saved(tmp_path / "a.json", length_s=4), saved(tmp_path / "b.json", length_s=4, seed=2)
    found = said("compare", first, second, "--json").json["loads"][0]["metrics"]["ok_per_s"]["comparison"]
    assert (found["low"], found["high"], found["method"]) == (None, None, "no interval: too few seconds")
    assert abs(found["effect"]) < 0.05
    assert said("compare", first, second).status == 0


def test_five_runs_a_side_have_a_verdict(said, tmp_path):
    first = folder_of(tmp_path / "before", 5)
    second = folder_of(tmp_path / "after", 5, ok_per_s=1300, time_ns=MS // 2)
    done = said("compare", first, second)
    words = " ".join(done.out.split())
    assert f"{second} is better than {first} in valid replies per second." in words
    assert "From saved loads, unpaired: includes machine drift" in words
    found = said("compare", first, second, "--json").json
    assert found["loads"][0]["metrics"]["ok_per_s"]["comparison"]["verdict"] == "higher"
    assert len(found["sides"][1]["files"]) == 5


def test_the_exit_status_is_that_of_archives(said, tmp_path):
    first = folder_of(tmp_path / "before", 5)
    second = folder_of(tmp_path / "after", 5, ok_per_s=700)
    assert said("compare", first, second, "--fail-if", "rps < -5%").status == 1
    assert said("compare", second, first, "--fail-if", "rps < -5%").status == 0
    single = said("compare", first / "0.json", second / "0.json", "--fail-if", "rps < -5%")
    assert single.status == 3
    assert "1 runs are too few" in single.out


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"loop": build.ClosedLoop(20)}, "load: closed loop, 10 connections, 10 s and closed loop, 20"),
        ({"loop": build.OpenLoop(1000.0)}, "open loop, 1000/s constant"),
        ({"length_s": 12}, "10 connections, 12 s"),
        ({"engine": {"version": "9.9"}}, "engine: prony-engine 0.1.0 and prony-engine 9.9"),
        ({"engine": {"threads": 4}}, "threads: 1 and 4"),
        ({"target": {"host": "127.0.0.1", "port": 80, "wire": {"kind": "http2"}}}, "the protocol"),
    ],
)
def test_loads_that_differ_are_refused_and_named_with_force(said, tmp_path, changes, words):
    first, second = saved(tmp_path / "a.json"), saved(tmp_path / "b.json", **changes)
    done = said("compare", first, second)
    assert done.status == 2
    assert "cannot be compared, because their loads differ" in done.err
    assert words in done.err
    forced = said("compare", first, second, "--force")
    assert forced.status == 0
    assert words in " ".join(forced.out.split())


def test_another_address_is_no_difference(said, tmp_path):
    first = saved(tmp_path / "a.json")
    second = saved(tmp_path / "b.json", target={"host": "127.0.0.1", "port": 9000})
    assert said("compare", first, second).status == 0


def test_a_side_that_fails_has_no_verdict_on_speed(said, tmp_path):
    first, second = saved(tmp_path / "a.json"), saved(tmp_path / "b.json", errors={"reset": 900})
    words = " ".join(said("compare", first, second).out.split())
    assert "speed does not qualify: its requests fail" in words
    assert "were not answered as expected" in words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{}", "load.version: expected 1"),
        ('{"version": 1, "engine"', "is no saved load"),
        ('{"version": 1}', "load.engine"),
        ("{" * 100_000, "is no saved load"),
    ],
)
def test_what_is_no_saved_load_is_named(said, tmp_path, text, words):
    first, second = saved(tmp_path / "a.json"), tmp_path / "b.json"
    second.write_text(text)
    done = said("compare", first, second)
    assert done.status == 2
    assert words in done.err


def test_sides_are_of_one_kind(said, tmp_path):
    first = saved(tmp_path / "a.json")
    (tmp_path / "b.prony").write_bytes(b"SQLite format 3\0")
    assert "are not of one kind" in said("compare", first, tmp_path / "b.prony").err
    (tmp_path / "empty").mkdir()
    assert "are not of one kind" in said("compare", first, tmp_path / "empty").err
