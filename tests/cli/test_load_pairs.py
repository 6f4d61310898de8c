"""`prony load A --compare B` from outside: alternating windows, a verdict, what is refused."""

import json
import signal
from dataclasses import replace
from types import SimpleNamespace

import pytest

from commands import ended, eventually
from prony._engine import ReferenceServer
from prony.cli.load_pairs import _pairs, why_long_windows
from prony.figures.load_pairs import LoadSide, PairedLoads
from prony.model.address import Address
from prony.model.workload import ClosedLoop, DurationStop, Mix, MixPath, OpenLoop, Workload

MS = 1_000_000
# Of fewer pairs, what one may owe to its neighbour hides a factor of four on a busy machine.
SHORT = ("-d", "150ms", "--warmup", "0s", "-c", "2", "--pairs", "20")


def test_each_pair_of_windows_asks_in_an_order_of_its_own_and_both_sides_in_the_same(monkeypatch):
    seeds = []

    def window(side, *_):
        seeds.append(side.workload.mix.seed)
        return SimpleNamespace(window=SimpleNamespace(interrupted=False))

    monkeypatch.setattr("prony.cli.load_pairs._window", window)
    mixed = Workload(ClosedLoop(2), DurationStop(MS), mix=Mix((MixPath("/"), MixPath("/cart"))))
    side = LoadSide("http://127.0.0.1:1/", mixed, Address("127.0.0.1", 1))
    assert len(list(_pairs(PairedLoads(side, side, 3, 7), None, []))) == 3
    assert seeds == [7, 7, 8, 8, 9, 9]


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
    windows = result["windows"]
    assert (result["version"], windows["pairs"], windows["seed"]) == (1, 20, 7)
    rate = result["loads"][0]["metrics"]["ok_per_s"]
    assert (rate["family"], rate["comparison"]["blocks"]) == ("primary", 20)
    # Pairs may tie, for a short window counts few replies: an end of the interval may be the effect itself.
    assert rate["comparison"]["low"] <= rate["comparison"]["effect"] <= rate["comparison"]["high"] < -0.2


@pytest.mark.parametrize("reference", [{"delay": {"kind": "fixed", "ns": MS}}], indirect=True)
@pytest.mark.quiet  # where the generator may have been the limit, what is worse is not said
def test_two_rates_are_compared_by_latency_and_without_a_p99_by_the_p50(said, folder, reference, slow):
    windows = ("--rate", "200", "-d", "200ms", "--warmup", "0s", "--pairs", "20")
    done = said("load", reference, "--compare", slow, *windows, "--json", "result.json")
    answer = f"{slow} is worse than {reference} in response time of valid replies, p50"
    assert answer in " ".join(done.out.split())
    metrics = json.loads((folder / "result.json").read_text())["loads"][0]["metrics"]
    p99, p50 = metrics["response_ok_p99"], metrics["response_ok_p50"]["comparison"]
    assert (p99["family"], p99["comparison"]) == ("primary", None)
    assert p99["reason"] == "fewer than 10 requests lie above it"
    assert 1 < p50["low"] < p50["effect"] < p50["high"]


def test_windows_that_nobody_set_are_of_half_a_second(said, reference):
    done = said("load", reference, "--compare", reference, "-c", "2", "--pairs", "5", "--json", "-")
    load = done.json["loads"][0]["workload"]
    assert (load["loop"]["kind"], load["stop"]) == ("closed", {"kind": "duration", "duration_ns": 500 * MS})
    assert done.json["windows"]["pairs"] == 5
    assert "windows of" not in done.err


@pytest.mark.parametrize(
    ("loop", "replies", "reason"),
    [
        (ClosedLoop(4), 11, None),
        (ClosedLoop(4), 9, "replies of http://a/ take more than 200 ms"),
        (ClosedLoop(4), 0, "replies of http://a/ take more than 200 ms"),
        (ClosedLoop(1001), 9, "to open 1001 connections takes longer than a short window"),
        (OpenLoop(900.0), 9, "a percentile of an open loop needs many requests"),
    ],
)
def test_windows_are_long_where_short_ones_do_not_show_the_same_and_that_is_said(loop, replies, reason):
    class Looks:
        def run(self, workload, address, seat, on_event):
            assert (workload.stop, workload.warmup_ns) == (DurationStop(500 * MS), 200 * MS)
            window = SimpleNamespace(interrupted=False)
            return SimpleNamespace(window=window, completed=SimpleNamespace(all=replies))

    side = LoadSide("http://a/", Workload(loop, DurationStop(10_000 * MS)), Address("127.0.0.1", 80))
    assert why_long_windows((side, replace(side, url="http://b/")), Looks()) == reason


def test_a_side_that_answers_nothing_is_no_measurement(said, reference):
    done = said("load", reference, "--compare", "http://127.0.0.1:9/", *SHORT)
    assert done.status == 3
    words = " ".join(done.out.split())
    assert "No verdict on http://127.0.0.1:9/ and" in words
    assert "speed does not qualify: its requests fail" in words


def test_an_interruption_keeps_the_whole_pairs_and_names_what_it_drops(prony, folder):
    options = ("-d", "150ms", "--warmup", "0s", "-c", "2", "--pairs", "50", "--json", "result.json")
    with ReferenceServer("{}") as server:
        url = f"http://127.0.0.1:{server.port}/"
        with ended(prony.start("load", url, "--compare", url, *options)) as process:
            # Two connections a window, so the fourth pair has begun.
            assert eventually(lambda: json.loads(server.counts())["connections_accepted"] > 2 * 6, 20)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=20)
    result = json.loads((folder / "result.json").read_text())
    windows = result["windows"]
    assert (process.returncode, err, windows["asked"]) == (130, "", 50)
    assert 3 <= windows["pairs"] < 50
    assert windows["dropped"] in (1, 2)
    assert f"the {windows['pairs']} of 50 pairs that ran to their end" in " ".join(out.split())


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
