"""Streams of HTTP/2 on Node: a slow one beside others, and a server that resets and leaves at random."""

from statistics import median, quantiles

import pytest

from servers.node import APPS, node_server

PAIRS = 5
MS = 1e6
# Of the percentiles 50 and 90: the latter has what the machine did meanwhile.
MOST_CHANGE = (0.01, 0.05)


def quick_latencies(prony, server, path, streams):
    """Return the percentiles 50 and 90 in ms, as Prony and as the server saw them, and the slow requests."""
    url = f"http://127.0.0.1:{server.port}/{path}"
    load = ("--http2", "-c", "1", "--streams", str(streams), "--warmup", "500ms", "-d", "3s")
    done = prony("load", url, *load, "--json", "-")
    assert done.status == 0, done.err
    account = done.json["account"]
    assert account["ok"] == account["scheduled"] > 100
    assert done.json["connections"]["opened"] in (0, 1)
    counts, seen = server.counts(), done.json["latency"]["ok"]["service_ns"]["percentiles"]
    kept = quantiles(counts["kept"], n=10)
    return (seen["50"] / MS / kept[4], seen["90"] / MS / kept[8]), counts["slow"]


@pytest.mark.slow
@pytest.mark.quiet
def test_a_slow_stream_of_ten_moves_the_others_by_less_than_a_hundredth(prony):
    """Prony's latency over the server's own, beside a slow stream and alone: its timers are in both."""
    with node_server(APPS / "http2" / "streams.js") as server:
        changes = []
        for _ in range(PAIRS):
            alone, none = quick_latencies(prony, server, "alone", 9)
            beside, slow = quick_latencies(prony, server, "beside", 10)
            assert none == 0
            assert slow >= 1
            changes.append([after / before - 1 for after, before in zip(beside, alone, strict=True)])
    for change, most in zip(zip(*changes, strict=True), MOST_CHANGE, strict=True):
        assert abs(median(change)) < most, changes


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3))])
def test_the_account_is_exact_through_a_thousand_resets_and_goaways(prony, seed):
    with node_server(APPS / "http2" / "turmoil.js", seed) as server:
        url = f"http://127.0.0.1:{server.port}/"
        done = prony("load", url, "--http2", "-c", "4", "--streams", "10", "-n", "12000", "--json", "-")
        counts = server.counts()
    assert done.status == 0, done.err
    account, streams, connections = (done.json[name] for name in ("account", "streams", "connections"))
    assert (counts["events"], counts["lost"]) == (1000, 0)
    assert min(counts[name] for name in ("goaways", "reset", "refused", "left")) > 50
    assert account["scheduled"] == 12000
    assert (account["ok"], account["reset"]) == (counts["answered"], counts["reset"])
    assert account["ok"] + account["reset"] == account["scheduled"]
    assert (streams["goaways"], streams["resets"]) == (counts["goaways"], counts["reset"])
    # Those that were turned away went once more, and so did what a connection that was left never looked at.
    assert connections["retried"] == streams["refused"]
    assert connections["requests_sent"] == account["scheduled"] + connections["retried"]
    turned_away = counts["refused"] + counts["left"]
    assert counts["requests"] == account["scheduled"] + turned_away
    assert streams["refused"] >= turned_away
    assert connections["opened"] == counts["connections"]
