"""`prony load A --compare B` from outside: alternating windows, a verdict, what is refused."""

import json
import signal

import pytest

from commands import ended, eventually
from prony._engine import ReferenceServer

MS = 1_000_000
# Of fewer pairs, what one may owe to its neighbour hides a factor of four on a busy machine.
SHORT = ("-d", "150ms", "--warmup", "0s", "-c", "2", "--pairs", "20")


@pytest.fixture
def slow():
    delay = {"kind": "fixed", "ns": 4 * MS}
    with ReferenceServer(json.dumps({"port": 0, "delay": delay})) as server:
        yield f"http://127.0.0.1:{server.port}/"


@pytest.mark.parametrize("reference", [{"delay": {"kind": "fixed", "ns": MS}}], indirect=True)
def test_a_slower_server_is_told_apart(said, reference, slow):
    done = said("load", reference, "--compare", slow, *SHORT, "--json", "result.json")
    assert done.status == 0
    words = " ".join(done.out.split())
    assert f"{slow} is worse than {reference} in" in words
    assert "20 pairs of windows" in words


@pytest.mark.parametrize("reference", [{"delay": {"kind": "fixed", "ns": MS}}], indirect=True)
def test_its_json_has_ratio_and_interval_and_repeats_the_order_by_seed(said, reference, slow):
    result = said("load", reference, "--compare", slow, *SHORT, "--seed", "7", "--json", "-").json
    assert (result["version"], result["pairs"], result["seed"]) == (1, 20, 7)
    rate = result["figures"][0]
    assert (rate["metric"], rate["pairs"], rate["comparison"]["verdict"]) == ("ok_per_s", 20, "lower")
    # Pairs may tie, for a short window counts few replies: an end of the interval may be the effect itself.
    assert rate["comparison"]["low"] <= rate["comparison"]["effect"] <= rate["comparison"]["high"] < -0.2


@pytest.mark.parametrize("reference", [{"delay": {"kind": "fixed", "ns": MS}}], indirect=True)
def test_two_rates_are_compared_by_latency_and_without_a_p99_by_the_p50(said, folder, reference, slow):
    windows = ("--rate", "200", "-d", "200ms", "--warmup", "0s", "--pairs", "20")
    done = said("load", reference, "--compare", slow, *windows, "--json", "result.json")
    answer = f"{slow} is worse than {reference} in response time of valid replies, p50."
    assert answer in " ".join(done.out.split())
    figures = json.loads((folder / "result.json").read_text())["figures"]
    p99, p50 = (one["comparison"] for one in figures[:2])
    assert p99["verdict"] == "too few blocks for a verdict"
    assert 1 < p50["low"] < p50["effect"] < p50["high"]


def test_a_side_that_answers_nothing_is_no_measurement(said, reference):
    done = said("load", reference, "--compare", "http://127.0.0.1:9/", *SHORT)
    assert done.status == 3
    assert "No verdict on speed" in done.out


def test_an_interruption_keeps_the_whole_pairs_and_names_what_it_drops(prony, folder):
    windows = ("-d", "150ms", "--warmup", "0s", "-c", "2", "--pairs", "50", "--json", "result.json")
    with ReferenceServer("{}") as server:
        url = f"http://127.0.0.1:{server.port}/"
        with ended(prony.start("load", url, "--compare", url, *windows)) as process:
            # Two connections a window, so the fourth pair has begun.
            assert eventually(lambda: json.loads(server.counts())["connections_accepted"] > 2 * 6, 20)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=20)
    result = json.loads((folder / "result.json").read_text())
    assert (process.returncode, err, result["interrupted"], result["asked_pairs"]) == (130, "", True, 50)
    assert 3 <= result["pairs"] < 50
    assert result["dropped_windows"] in (1, 2)
    assert f"the {result['pairs']} of 50 pairs that ran to their end" in " ".join(out.split())


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--compare", "http://192.0.2.1/"), "is not this machine"),
        (("--compare", "nonsense"), "`nonsense` is not a target"),
        (("--compare", "127.0.0.1:9", "--fail-if", "p50 > 1s"), "`--fail-if` does not work with `--compare`"),
        (("--compare", "127.0.0.1:9", "--stages", "1s:1"), "`--stages` does not work with `--compare`"),
        (("--compare", "127.0.0.1:9", "--latencies", "a"), "`--latencies` does not work with `--compare`"),
        (("--compare", "127.0.0.1:9", "--pairs", "4"), "at least 5"),
        (("--compare", "127.0.0.1:9", "--arrivals", "poisson"), "`--arrivals` only works in an open loop"),
        (("--pairs", "7"), "`--pairs` only works with `--compare`"),
    ],
)
def test_what_has_no_meaning_for_two_loads_is_refused(said, options, told):
    done = said("load", "127.0.0.1:9", *options)
    assert done.status == 2
    assert told in done.err
